"""Declarations of the leaves of a packed forest; see _forest_leaves.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.predict._forest_nodes cimport ForestNodes

cdef void add_values(ForestNodes forest, int64_t tree, const int32_t* leaves, int64_t n,
                     double* total) noexcept nogil
cdef void add_row(ForestNodes forest, const int32_t* leaves, double* total) noexcept nogil
