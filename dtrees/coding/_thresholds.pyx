"""Thresholds between codes that are neighbours in a node."""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from dtrees.coding._keys cimport value_t

cdef enum:
    TOGETHER = 16           # thresholds whose codes are looked for side by side


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
    cdef int64_t i, j, end
    cdef int64_t m = 0
    cdef double above, step
    cdef int64_t[TOGETHER] number, base, first, last
    cdef double[TOGETHER] between
    cdef bint is_random = fractions is not None
    with nogil:
        for i in range(column.shape[0] + 1):
            if m == TOGETHER or (i == column.shape[0] and m > 0):
                find_codes(&high[0], between, first, last, m)
                for j in range(m):
                    if not exact[column[number[j]]]:
                        # halves, since a difference of huge values is infinite
                        end = base[j] + right[number[j]] - 1
                        if not is_random and first[j] < end and (
                                <double>high[first[j] + 1] / 2 - between[j] / 2
                                < between[j] / 2 - <double>high[first[j]] / 2):
                            first[j] += 1
                        between[j] = high[first[j]]
                    threshold[number[j]] = between[j]
                    code[number[j]] = <uint32_t>(first[j] - base[j])
                m = 0
            if i == column.shape[0]:
                break
            if left[i] == 0:
                threshold[i] = NAN
                code[i] = 0
                continue
            if right[i] == 0:
                threshold[i] = INFINITY
                code[i] = <uint32_t>n_ordered[column[i]]
                continue
            number[m] = i
            base[m] = offsets[column[i]] - 1
            first[m] = base[m] + left[i]
            last[m] = base[m] + right[i] - 1
            above = low[last[m] + 1]
            if is_random:
                # halves, since a difference of huge values is infinite
                above = high[last[m] + 1]
                step = fractions[i] * (above / 2 - <double>high[first[m]] / 2)
                between[m] = (<double>high[first[m]] + step) + step
            else:
                between[m] = <double>high[first[m]] / 2 + above / 2
            if not between[m] < above:
                between[m] = high[first[m]]
            m += 1
    return np.asarray(threshold), np.asarray(code)


cdef inline void find_codes(const value_t* high, const double* between, int64_t* first,
                            int64_t* last, int64_t m) noexcept nogil:
    """The last of ``first .. last`` whose `high` is at most the threshold, if any beyond the first.

    Binary searches of several thresholds side by side, so that they wait for memory together.
    """
    cdef int64_t longest = 0
    cdef int64_t j, half
    cdef bint is_right
    for j in range(m):
        longest = max(longest, last[j] - first[j])
    while longest > 0:
        for j in range(m):
            half = (first[j] + last[j] + 1) >> 1
            is_right = half > first[j] and high[half] <= between[j]
            last[j] = last[j] if is_right or half == first[j] else half - 1
            first[j] = half if is_right else first[j]
        longest >>= 1
