"""The children of a shared node; see _shared_children.pyx."""
from libc.stdint cimport int32_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_store cimport SharedStore
from dtrees.core.grow._node_buffer cimport NodeBuffer


cdef SharedNode* partition_members(SharedStore* s, NodeBuffer* records, SharedNode* node,
                                   uint64_t together, int32_t number) noexcept nogil
