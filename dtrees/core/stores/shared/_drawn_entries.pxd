"""Columns that a shared node draws; see _drawn_entries.pyx."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef void search_drawn(SharedStore* s, SharedNode* node, const int32_t* drawn, int64_t count,
                       uint64_t members) noexcept nogil
