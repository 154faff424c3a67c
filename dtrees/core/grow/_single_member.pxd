"""Declarations of sets that leave a shared node; see _single_member.pyx."""
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.grow._depth_first cimport Growth

cdef bint begin_member(Growth* growth, Buffers* view, SharedStore* s, const SharedNode* node,
                       int member) noexcept nogil
cdef bint reserve_weights(Buffers* view, const SharedStore* s) noexcept nogil
cdef void free_view(Buffers* view) noexcept nogil
