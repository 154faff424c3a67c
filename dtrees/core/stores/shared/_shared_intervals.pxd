"""Declarations of the search by intervals; see _shared_intervals.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef bint has_bounds(const SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil
cdef void bound_columns(SharedStore* s, const SharedNode* node, int64_t first,
                        int64_t step) noexcept nogil
cdef void search_intervals(SharedStore* s, const SharedNode* node, const double* best,
                           int64_t first, int64_t step) noexcept nogil
cdef void free_alive(SharedStore* s) noexcept nogil
