"""The store of rows with cell and mask; see _shared_store.pyx."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.stores._store cimport Member
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef bint begin_store(SharedStore* s) noexcept nogil
cdef void free_store(SharedStore* s) noexcept nogil
cdef Member* take_node(SharedStore* s, SharedNode* node) noexcept nogil
cdef void gather_rows(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void begin_search(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void search_column(SharedStore* s, const SharedNode* node, int32_t number,
                        uint64_t members) noexcept nogil
