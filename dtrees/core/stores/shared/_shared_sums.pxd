"""Sums of shared nodes; see _shared_sums.pyx."""
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef void sum_cells(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void sum_members(SharedStore* s, SharedNode* node) noexcept nogil
