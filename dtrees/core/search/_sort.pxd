"""Declarations of the sort; see _sort.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct Keyed:
    double key
    int64_t bin

ctypedef fused sorted_t:
    uint64_t
    Keyed

cdef void merge_sort(sorted_t* items, sorted_t* scratch, int64_t n) noexcept nogil
cdef void sort_bins(Keyed* bins, Keyed* scratch, int64_t n) noexcept nogil
cdef void sort_by_code(uint64_t* entries, uint64_t* scratch, int64_t n,
                       uint32_t n_codes) noexcept nogil
