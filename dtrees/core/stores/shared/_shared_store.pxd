"""The store of rows with cell and mask: its search and its children; see _shared_store.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.shared._shared_nodes cimport SharedNode, SharedStore


cdef bint begin_store(SharedStore* s) noexcept nogil
cdef void free_store(SharedStore* s) noexcept nogil
cdef Member* take_node(SharedStore* s, SharedNode* node) noexcept nogil
cdef void begin_search(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void search_node(Store* store, Member* members) noexcept nogil
cdef void search_columns(SharedStore* s, const SharedNode* node, int64_t first,
                         int64_t step) noexcept nogil
cdef void take_better(SharedStore* s, const SharedStore* other) noexcept nogil
cdef void partition_members(Store* store, Member* members, uint64_t together) noexcept nogil
cdef void search_intervals(SharedStore* s, const SharedNode* node, const double* best,
                           int64_t first, int64_t step) noexcept nogil
cdef void sum_cells(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void sum_members(SharedStore* s, SharedNode* node) noexcept nogil
