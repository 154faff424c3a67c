"""Sums of numbers that are the same in any order of them, at the price of a few additions each.

A number is cut in two parts of 40 bits, counted from the largest one, and both are added as
integers::

    largest 3.1 < 2**2      unit of the first part 2**-38, of the second 2**-78
    1.7                   = 467289276416 x 2**-38  + the rest x 2**-78

So a sum is that of all bits down to 2**-80 of the largest number, rounded once. `math.fsum`, which
looks at all bits, takes thirty times as long.
"""
import math

import numpy as np

from libc.math cimport fabs, frexp, ldexp
from libc.stdint cimport int64_t, uint8_t, uint64_t

from dtrees.core.data._structs cimport int128_t

cdef extern from "losses/exponential.h" nogil:
    const double ROUNDING
    uint64_t bits_of(double x)

cdef enum:
    PART = 40                   # bits
    AT_ONCE = 1 << 22           # numbers: their parts fill 62 bits
    LEAST_EXPONENT = -900       # below, there are no numbers for the units


cdef bint is_summed(const double* values, int64_t n, double* sum) noexcept nogil:
    """OUT the sum of numbers; False where they are not finite, or very small."""
    cdef double largest = 0
    cdef double scale, number, first, rest
    cdef int64_t firsts, rests, begin, i
    cdef int128_t total = 0
    cdef bint is_finite = True
    cdef int exponent
    for i in range(n):
        number = fabs(values[i])
        is_finite &= number <= 1.7976931348623157e308
        largest = number if number > largest else largest
    frexp(largest, &exponent)
    if not is_finite or exponent < LEAST_EXPONENT:
        return False
    scale = ldexp(1.0, PART - exponent)
    begin = 0
    while begin < n:
        firsts = rests = 0
        for i in range(begin, min(n, begin + AT_ONCE)):
            number = values[i] * scale
            first = number + ROUNDING
            rest = (number - (first - ROUNDING)) * <double>(<int64_t>1 << PART) + ROUNDING
            firsts += <int64_t>(bits_of(first) - bits_of(ROUNDING))
            rests += <int64_t>(bits_of(rest) - bits_of(ROUNDING))
        total += <int128_t>firsts * (<int64_t>1 << PART) + rests
        begin += AT_ONCE
    sum[0] = ldexp(<double>total, exponent - 2 * PART)
    return True


def sum_in_any_order(const double[::1] values not None):
    """The sum of numbers.

    Parameters
    ----------
    values : float64 (n,)

    Returns
    -------
    float
        As by `math.fsum`, up to 2**-80 of the largest number for each. Infinite where it is too
        large; nan where a number is nan, or where infinities have both signs. O(n).
    """
    cdef int64_t n = values.shape[0]
    cdef double sum = 0
    cdef bint is_known = True
    if n > 0:
        with nogil:
            is_known = is_summed(&values[0], n, &sum)
    return sum if is_known else _slow(values)


def sums_in_any_order(const double[:, ::1] values not None):
    """The same of each row of an array: float64 (n_rows,)."""
    cdef int64_t n = values.shape[1]
    cdef double[::1] sums = np.zeros(values.shape[0])
    cdef uint8_t[::1] is_known = np.ones(values.shape[0], dtype=np.uint8)
    cdef int64_t i
    if n > 0:
        with nogil:
            for i in range(values.shape[0]):
                is_known[i] = is_summed(&values[i, 0], n, &sums[i])
    for i in range(values.shape[0]):
        if not is_known[i]:
            sums[i] = _slow(values[i])
    return np.asarray(sums)


def mean_in_any_order(values, weight):
    """The mean of numbers, float64 (n,), with weights or None; of an array, those of its rows."""
    if weight is None:
        return _sum_of(values) / values.shape[values.ndim - 1]
    return _sum_of(values * weight) / sum_in_any_order(weight)


cdef object _sum_of(values):
    return sum_in_any_order(values) if values.ndim == 1 else sums_in_any_order(values)


cdef object _slow(const double[::1] values):
    """The same of numbers that are not finite, or very small."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs
        return math.nan
