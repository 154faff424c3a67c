"""Members of a shared node whose trees are known; see _known_members.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.grow._known_tree cimport Known
from dtrees.core.grow._node_buffer cimport NodeBuffer
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef uint64_t copy_known(NodeBuffer* out, const Known* trees, SharedNode* node, uint64_t active,
                         int64_t* n_known) noexcept nogil
cdef int leave_out_known(SharedNode* node) noexcept nogil
cdef void give_tests(SharedStore* s, const Known* trees, const SharedNode* node) noexcept nogil
