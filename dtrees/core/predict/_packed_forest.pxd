"""Declarations of the walk of coded rows; see _forest.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t

from dtrees.core.predict._forest_nodes cimport ForestNodes

cdef enum:
    MISSING = 65535

cdef void walk_tree(ForestNodes forest, int64_t tree, const uint16_t* rows, int64_t n,
                    int32_t* leaves, bint with_missing) noexcept nogil
cdef void walk_row(ForestNodes forest, const uint16_t* row, int32_t* leaves,
                   bint with_missing) noexcept nogil
cdef void to_nodes(ForestNodes forest, int64_t tree, int32_t* leaves, int64_t n) noexcept nogil
