"""Thresholds between codes that are neighbours in a node."""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from dtrees.coding._keys cimport value_t

cdef enum:
    TOGETHER = 16           # thresholds whose codes are looked for side by side
    BLOCK = 16              # values of a column, of which the first is looked at before the others
    WORTH = 64              # a column has blocks if it has so many values a threshold, or fewer

cdef packed struct Pair:
    uint32_t node
    int32_t column
    uint32_t left
    uint32_t right

PAIR = np.dtype([("node", "u4"), ("column", "i4"), ("left", "u4"), ("right", "u4")])


def thresholds(const value_t[::1] low, book, const int32_t[:] column, const uint32_t[:] left,
               const uint32_t[:] right, const double[::1] fractions):
    """Thresholds, float64 (m,), and the greatest codes whose ``high`` is at most them, uint32 (m,).

    Parameters
    ----------
    low : float32 or float64
        Least value of every code of the book, whose ``high`` has the same type.
    book : CodeBook
    column : int32 (m,)
    left, right : uint32 (m,)
        0 on the left: there is no threshold, nan. 0 on the right: all ordered codes go left, inf.
    fractions : float64 (m,) or None
        Of random cuts: 0 <= fraction < 1, from the left code to the right one.

    Notes
    -----
    O(log (right - left)) each. Exact columns: ``high[left] / 2 + low[right] / 2``, or
    ``high[left]`` where that is not below ``low[right]``. Others: the ``high`` between that is
    nearest to it. Random cuts: the point at the fraction between ``high[left]`` and
    ``high[right]``, and for columns that are not exact the greatest ``high`` that is at most this
    point.
    """
    cdef const value_t[::1] high = book.high
    cdef const int64_t[::1] offsets = np.asarray(book.offsets, dtype=np.int64)
    cdef const int64_t[::1] n_ordered = np.asarray(book.n_ordered, dtype=np.int64)
    cdef const uint8_t[::1] exact = book.exact.view(np.uint8)
    cdef double[::1] threshold = np.empty(len(column), dtype=np.float64)
    cdef uint32_t[::1] code = np.empty(len(column), dtype=np.uint32)
    cdef bint is_grouped = n_ordered.shape[0] < column.shape[0]
    cdef const Pair[::1] pairs = by_column(column, left, right, n_ordered, is_grouped, threshold,
                                           code)
    cdef Pair pair
    cdef int64_t i, j, m, k = 0
    cdef double above, step
    cdef int64_t[TOGETHER] base, first, last
    cdef double[TOGETHER] between
    cdef bint is_random = fractions is not None
    cdef int64_t most = np.max(n_ordered) if is_grouped and len(pairs) > 0 else 0
    cdef value_t[::1] heads = np.empty(most // BLOCK + 1, dtype=np.asarray(low).dtype)
    cdef int64_t of_heads = -1      # the column of which they are, or none
    cdef bint has_heads = False
    with nogil:
        while k < pairs.shape[0]:
            m = min(TOGETHER, pairs.shape[0] - k)
            if is_grouped and pairs[k].column != of_heads:
                of_heads = pairs[k].column
                i = k + n_ordered[of_heads] // WORTH
                has_heads = i < pairs.shape[0] and pairs[i].column == of_heads
                take_heads(&high[offsets[of_heads]], n_ordered[of_heads] if has_heads else 0,
                           &heads[0])
            for j in range(m):
                pair = pairs[k + j]
                base[j] = offsets[pair.column] - 1
                first[j] = base[j] + pair.left
                last[j] = base[j] + pair.right - 1
                above = low[last[j] + 1]
                if is_random:  # halves, since a difference of huge values is infinite
                    above = high[last[j] + 1]
                    step = fractions[pair.node] * (above / 2 - <double>high[first[j]] / 2)
                    between[j] = (<double>high[first[j]] + step) + step
                else:
                    between[j] = <double>high[first[j]] / 2 + above / 2
                if not between[j] < above:
                    between[j] = high[first[j]]
            if has_heads and pairs[k + m - 1].column == of_heads:
                find_blocks(&heads[0], offsets[of_heads], between, first, last, m)
            find_codes(&high[0], between, first, last, m)
            for j in range(m):
                pair = pairs[k + j]
                if not exact[pair.column]:
                    if not is_random:
                        first[j] = nearest(&high[0], first[j], base[j] + pair.right - 1,
                                           between[j])
                    between[j] = high[first[j]]
                threshold[pair.node] = between[j]
                code[pair.node] = <uint32_t>(first[j] - base[j])
            k += m
    return np.asarray(threshold), np.asarray(code)


cdef inline int64_t nearest(const value_t* high, int64_t i, int64_t end,
                            double between) noexcept nogil:
    """i, or i + 1 if that is at most `end` and its `high` is nearer to what lies between them."""
    # halves, since a difference of huge values is infinite
    if i < end and <double>high[i + 1] / 2 - between / 2 < between / 2 - <double>high[i] / 2:
        return i + 1
    return i


cdef const Pair[::1] by_column(const int32_t[:] column, const uint32_t[:] left,
                               const uint32_t[:] right, const int64_t[::1] n_ordered,
                               bint is_grouped, double[::1] threshold, uint32_t[::1] code):
    """The pairs of codes that have a threshold between them, by column if they are grouped.

    Nodes without such a pair get their threshold and their code here. The values of one column stay
    near the processor, those of all columns may not.
    """
    cdef int64_t n_columns = n_ordered.shape[0]
    cdef int64_t[::1] place = np.zeros((n_columns if is_grouped else 1) + 1, dtype=np.int64)
    cdef int64_t i, j
    with nogil:
        for i in range(column.shape[0]):
            if left[i] == 0:
                threshold[i] = NAN
                code[i] = 0
            elif right[i] == 0:
                threshold[i] = INFINITY
                code[i] = <uint32_t>n_ordered[column[i]]
            else:
                place[(column[i] if is_grouped else 0) + 1] += 1
        for j in range(1, place.shape[0]):
            place[j] += place[j - 1]
    cdef Pair[::1] pairs = np.empty(place[place.shape[0] - 1], dtype=PAIR)
    with nogil:
        for i in range(column.shape[0]):
            if left[i] != 0 and right[i] != 0:
                j = column[i] if is_grouped else 0
                pairs[place[j]] = Pair(<uint32_t>i, column[i], left[i], right[i])
                place[j] += 1
    return pairs


cdef void take_heads(const value_t* high, int64_t n, value_t* heads) noexcept nogil:
    """The first of each block of n values."""
    cdef int64_t i
    for i in range((n + BLOCK - 1) // BLOCK):
        heads[i] = high[i * BLOCK]


cdef inline void find_blocks(const value_t* heads, int64_t start, const double* between,
                             int64_t* first, int64_t* last, int64_t m) noexcept nogil:
    """Narrow ``first .. last`` to what lies in one block of a column, which begins at `start`.

    heads : the first `high` of each block, which stay near the processor.
    """
    cdef int64_t[TOGETHER] low, end
    cdef int64_t j
    for j in range(m):
        low[j] = (first[j] - start) // BLOCK
        end[j] = (last[j] - start) // BLOCK
    find_codes(heads, between, low, end, m)
    for j in range(m):
        low[j] = start + low[j] * BLOCK
        first[j] = max(first[j], low[j])
        last[j] = min(last[j], low[j] + BLOCK - 1)


cdef inline void find_codes(const value_t* high, const double* between, int64_t* first,
                            int64_t* last, int64_t m) noexcept nogil:
    """The last of ``first .. last`` whose `high` is at most the threshold, if any beyond the first.

    Binary searches of several thresholds side by side, so that they wait for memory together, and
    without a branch that depends on a value. Writes to `first`; `last` is lost.
    """
    cdef int64_t longest = 0
    cdef int64_t j, half
    for j in range(m):
        last[j] -= first[j]
        longest = max(longest, last[j])
    while longest > 0:
        for j in range(m):
            half = (last[j] + 1) >> 1
            first[j] += half & -<int64_t>(high[first[j] + half] <= between[j])
            last[j] -= half  # may count one more than there are: it is beyond the threshold
        longest >>= 1
