"""Codes of values by given cuts: code = 1 + number of cuts below the value; NaN has code 0.

A table over the leading bits of the key says where among the cuts to begin, a few steps of
bisection do the rest.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.coding._keys cimport code_t, key_of, value_t


def cut_column(const value_t[::1] values, const value_t[::1] cuts, code_t[::1] codes):
    """Codes of one column by ascending cuts of its type; ``codes`` OUT."""
    cdef int64_t n = values.shape[0], n_cuts = cuts.shape[0], i, k, at, widest = 0
    cdef int64_t slots = 256, step, top
    cdef int shift = 0
    cdef uint64_t first = 0, span = 0, key
    cdef value_t x
    if n == 0:
        return
    if n_cuts == 0:
        with nogil:
            for i in range(n):
                codes[i] = <code_t>(values[i] == values[i])
        return
    while slots < 16 * n_cuts and slots < (1 << 18):
        slots *= 2
    cdef uint32_t* begin = <uint32_t*>malloc((slots + 1) * sizeof(uint32_t))
    cdef value_t* padded = <value_t*>malloc((2 * n_cuts + 4) * sizeof(value_t))
    if begin == NULL or padded == NULL:
        free(begin)
        free(padded)
        raise MemoryError("no memory for the scratch space of coding")
    with nogil:
        first = key_of(cuts[0])
        span = key_of(cuts[n_cuts - 1]) - first
        while (span >> shift) >= <uint64_t>slots:
            shift += 1
        # begin[s]: cuts that stand before slot s
        k = 0
        for i in range(slots + 1):
            while k < n_cuts and <int64_t>((key_of(cuts[k]) - first) >> shift) < i:
                k += 1
            begin[i] = <uint32_t>k
        for i in range(slots):
            widest = begin[i + 1] - begin[i] if begin[i + 1] - begin[i] > widest else widest
        top = 1
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
