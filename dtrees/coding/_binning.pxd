"""Declarations of the sort; see _binning.pyx."""
from libc.stdint cimport int64_t, uint64_t

cdef void sort_pairs(uint64_t* a, uint64_t* b, int64_t n, int bits) noexcept nogil
