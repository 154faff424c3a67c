"""Declarations of the walk of coded rows; see _packed_forest.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t

from dtrees.core.predict._forest_nodes cimport MISSING, ForestNodes


cdef inline uint16_t code_of(double x, const double* thresholds, int64_t n) noexcept nogil:
    """How many thresholds are below x: binary search without a branch."""
    cdef int64_t low = 0
    cdef int64_t half
    while n > 0:
        half = (n + 1) >> 1
        low += half if thresholds[low + half - 1] < x else 0
        n -= half
    return <uint16_t>low if x == x else MISSING


cdef void walk_row(ForestNodes forest, const uint16_t* row, int32_t* leaves,
                   bint with_missing) noexcept nogil
cdef void to_nodes(ForestNodes forest, int64_t tree, int32_t* leaves, int64_t n) noexcept nogil
