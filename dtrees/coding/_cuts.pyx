"""Cuts at quantiles, and codes of values by cuts: 1 + number of cuts below a value; NaN has code 0.

A table over the leading bits of the key says where among the cuts to begin, a few steps of
bisection do the rest.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.coding._keys cimport code_t, key_of, value_t

import numpy as np


def cut_column(const value_t[::1] values, const value_t[::1] cuts, code_t[::1] codes):
    """Codes of one column by ascending cuts of its type; ``codes`` OUT."""
    cdef int64_t n = values.shape[0], n_cuts = cuts.shape[0]
    cdef bint is_cut = n == 0
    if n > 0:
        with nogil:
            is_cut = cut_values(&values[0], n, &cuts[0] if n_cuts > 0 else NULL, n_cuts, &codes[0])
    if not is_cut:
        raise MemoryError("no memory for the scratch space of coding")


cdef bint cut_values(const value_t* values, int64_t n, const value_t* cuts, int64_t n_cuts,
                     code_t* codes) noexcept nogil:
    """Codes of n values by ascending cuts; False without memory."""
    cdef int64_t i, k = 0, at, widest = 0, slots = 256, step, top = 1
    cdef int shift = 0
    cdef uint64_t first, span, key
    cdef value_t x
    if n_cuts == 0:
        for i in range(n):
            codes[i] = <code_t>(values[i] == values[i])
        return True
    while slots < 16 * n_cuts and slots < (1 << 18) and slots < n:
        slots *= 2
    cdef uint32_t* begin = <uint32_t*>malloc((slots + 1) * sizeof(uint32_t))
    cdef value_t* padded = <value_t*>malloc((2 * n_cuts + 4) * sizeof(value_t))
    if begin == NULL or padded == NULL:
        free(begin)
        free(padded)
        return False
    first = key_of(cuts[0])
    span = key_of(cuts[n_cuts - 1]) - first
    while (span >> shift) >= <uint64_t>slots:
        shift += 1
    # begin[s]: cuts that stand before slot s
    for i in range(slots + 1):
        while k < n_cuts and <int64_t>((key_of(cuts[k]) - first) >> shift) < i:
            k += 1
        begin[i] = <uint32_t>k
    for i in range(slots):
        widest = begin[i + 1] - begin[i] if begin[i + 1] - begin[i] > widest else widest
    while 2 * top <= widest:
        top *= 2
    for i in range(2 * n_cuts + 4):
        padded[i] = cuts[i] if i < n_cuts else INFINITY
    for i in range(n):
        x = values[i]
        key = key_of(x)
        key = (key - first) >> shift if key > first else 0
        key = key if key < <uint64_t>slots else slots - 1
        at = begin[key]
        step = top
        while step > 0:
            at += step if padded[at + step - 1] < x else 0
            step >>= 1
        codes[i] = <code_t>(at + 1 if x == x else 0)
    free(begin)
    free(padded)
    return True


cdef int64_t quantiles(const value_t* ordered, const int64_t* weights, int64_t n, int64_t zeros,
                       int64_t max_bins, value_t* low, value_t* high) noexcept nogil:
    """Least and greatest value of every code, from a sample; returns how many codes there are.

    ordered : values that were sampled, ascending. weights : of each; NULL: one. zeros : total
    weight of the zeros that were sampled beside them. low, high : min(max_bins, n + 1), OUT.

    Of a total weight W, cut k of K is the value at which the weight of all values up to it reaches
    k W / K. Equal cuts are one.
    """
    cdef int64_t total = zeros, up_to = 0, i = 0, k = 1, wanted, n_codes = 0
    cdef bint begins = True, is_beside = zeros > 0
    cdef value_t x
    if weights == NULL:
        total += n
    else:
        for i in range(n):
            total += weights[i]
        i = 0
    wanted = _share(total, 1, max_bins)
    while i < n or is_beside:
        if is_beside and (i == n or ordered[i] >= 0):
            x = 0
            up_to += zeros
            is_beside = False
        else:
            x = ordered[i]
        while i < n and ordered[i] == x:
            up_to += 1 if weights == NULL else weights[i]
            i += 1
        if begins:
            low[n_codes] = x
            begins = False
        if up_to >= wanted:
            high[n_codes] = x
            n_codes += 1
            begins = True
            while k <= max_bins and wanted <= up_to:
                k += 1
                wanted = _share(total, k, max_bins)
    return n_codes


cdef inline int64_t _share(int64_t total, int64_t k, int64_t n) noexcept nogil:
    """k n-ths of a total, rounded up; k and n are below 2**31, the product of all may be large."""
    return total // n * k + (total % n * k + n - 1) // n


def quantile_codes(const value_t[::1] ordered, int64_t max_bins, int64_t zeros=0,
                   const int64_t[::1] weights=None):
    """Least and greatest value of every code, from a sample.

    Parameters
    ----------
    ordered : float32 or float64 (m,)
        Sampled values, ascending, without NaN.
    max_bins : int
    zeros : int, default=0
        Zeros that were sampled beside these values (rows that a sparse column does not store), or
        their total weight.
    weights : int64 (m,) or None, default=None
        None: every value counts once.

    Returns
    -------
    low, high : same type (n_codes,)
        A value x has the first code with ``x <= high[code - 1]``; the last when there is none.
    """
    cdef int64_t n = ordered.shape[0], room = min(max_bins, n + 1), n_codes
    found = np.empty((2, room), dtype=np.float32 if value_t is float else np.float64)
    cdef value_t[:, ::1] to = found
    n_codes = quantiles(&ordered[0] if n > 0 else NULL,
                        &weights[0] if weights is not None and n > 0 else NULL,
                        n, zeros, max_bins, &to[0, 0], &to[1, 0])
    return found[0, :n_codes], found[1, :n_codes]


def cut_sparse(const value_t[::1] data, const int64_t[::1] indptr, const int64_t[::1] columns,
               const double[::1] cuts, const int64_t[::1] cut_start, const int64_t[::1] target,
               uint32_t[::1] codes, uint32_t[::1] fill):
    """Codes of the stored values of some sparse columns, and of zero.

    The cuts of column ``columns[i]`` stand from ``cut_start[i]`` to ``cut_start[i + 1]``. Its codes
    are written from ``target[i]`` on, OUT, and the code of zero to ``fill[i]``, OUT.
    """
    cdef int64_t i, p, at
    cdef double x
    with nogil:
        for i in range(columns.shape[0]):
            at = target[i]
            fill[i] = _code_by_cuts(cuts, cut_start[i], cut_start[i + 1], 0.0)
            for p in range(indptr[columns[i]], indptr[columns[i] + 1]):
                x = data[p]
                codes[at] = _code_by_cuts(cuts, cut_start[i], cut_start[i + 1], x)
                at += 1


cdef inline uint32_t _code_by_cuts(const double[::1] cuts, int64_t first, int64_t last,
                                   double x) noexcept nogil:
    """1 + how many of ``cuts[first:last]`` are below x; 0 for NaN. Bisection."""
    cdef int64_t low = first, high = last, middle
    if x != x:
        return 0
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < x:
            low = middle + 1
        else:
            high = middle
    return <uint32_t>(low - first + 1)
