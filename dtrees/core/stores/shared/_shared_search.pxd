"""Declarations of the search of a shared node; see _shared_search.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef void search_node(Store* store, Member* members) noexcept nogil
cdef void search_columns(SharedStore* s, const SharedNode* node, int64_t first,
                         int64_t step) noexcept nogil
cdef void take_better(SharedStore* s, const SharedStore* other) noexcept nogil
