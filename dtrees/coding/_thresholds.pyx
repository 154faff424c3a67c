"""Thresholds between codes that are neighbours in a node."""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

import numpy as np

from dtrees.coding._keys cimport value_t


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
    cdef int64_t i, first, end, half, base
    cdef double above, between, step
    cdef bint is_random = fractions is not None
    with nogil:
        for i in range(column.shape[0]):
            if left[i] == 0:
                threshold[i] = NAN
                code[i] = 0
                continue
            if right[i] == 0:
                threshold[i] = INFINITY
                code[i] = <uint32_t>n_ordered[column[i]]
                continue
            base = offsets[column[i]] - 1
            first = base + left[i]
            end = base + right[i] - 1
            above = low[end + 1]
            if is_random:
                # halves, since a difference of huge values is infinite
                above = high[end + 1]
                step = fractions[i] * (above / 2 - <double>high[first] / 2)
                between = (<double>high[first] + step) + step
            else:
                between = <double>high[first] / 2 + above / 2
            if not between < above:
                between = high[first]
            while first < end:
                half = (first + end + 1) >> 1
                if high[half] <= between:
                    first = half
                else:
                    end = half - 1
            if not exact[column[i]]:
                # halves, since a difference of huge values is infinite
                end = base + right[i] - 1
                if not is_random and first < end and (
                        <double>high[first + 1] / 2 - between / 2
                        < between / 2 - <double>high[first] / 2):
                    first += 1
                between = high[first]
            threshold[i] = between
            code[i] = <uint32_t>(first - base)
    return np.asarray(threshold), np.asarray(code)
