"""Thresholds between codes that are neighbours in a node."""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from dtrees.coding._keys cimport value_t

cdef enum:
    TOGETHER = 16           # thresholds whose codes are looked for side by side

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
    cdef const Pair[::1] pairs = by_column(column, left, right, n_ordered.shape[0])
    cdef Pair pair
    cdef int64_t i, j, m, end
    cdef int64_t k = 0
    cdef double above, step
    cdef int64_t[TOGETHER] base, first, last
    cdef double[TOGETHER] between
    cdef bint is_random = fractions is not None
    with nogil:
        for i in range(column.shape[0]):
            if left[i] == 0:
                threshold[i] = NAN
                code[i] = 0
            elif right[i] == 0:
                threshold[i] = INFINITY
                code[i] = <uint32_t>n_ordered[column[i]]
        while k < pairs.shape[0]:
            m = min(TOGETHER, pairs.shape[0] - k)
            for j in range(m):
                pair = pairs[k + j]
                base[j] = offsets[pair.column] - 1
                first[j] = base[j] + pair.left
                last[j] = base[j] + pair.right - 1
                above = low[last[j] + 1]
                if is_random:
                    # halves, since a difference of huge values is infinite
                    above = high[last[j] + 1]
                    step = fractions[pair.node] * (above / 2 - <double>high[first[j]] / 2)
                    between[j] = (<double>high[first[j]] + step) + step
                else:
                    between[j] = <double>high[first[j]] / 2 + above / 2
                if not between[j] < above:
                    between[j] = high[first[j]]
            find_codes(&high[0], between, first, last, m)
            for j in range(m):
                pair = pairs[k + j]
                if not exact[pair.column]:
                    # halves, since a difference of huge values is infinite
                    end = base[j] + pair.right - 1
                    if not is_random and first[j] < end and (
                            <double>high[first[j] + 1] / 2 - between[j] / 2
                            < between[j] / 2 - <double>high[first[j]] / 2):
                        first[j] += 1
                    between[j] = high[first[j]]
                threshold[pair.node] = between[j]
                code[pair.node] = <uint32_t>(first[j] - base[j])
            k += m
    return np.asarray(threshold), np.asarray(code)


cdef const Pair[::1] by_column(const int32_t[:] column, const uint32_t[:] left,
                               const uint32_t[:] right, int64_t n_columns):
    """The pairs of codes that have a threshold between them; by column where they are many.

    The values of one column stay near the processor, those of all columns may not.
    """
    cdef bint is_grouped = n_columns < column.shape[0]
    cdef int64_t[::1] place = np.zeros((n_columns if is_grouped else 1) + 1, dtype=np.int64)
    cdef int64_t i, j
    with nogil:
        for i in range(column.shape[0]):
            if left[i] != 0 and right[i] != 0:
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
