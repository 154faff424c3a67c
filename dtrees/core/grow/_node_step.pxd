"""One node: searched, and split if that gains enough; see _node_step.pyx."""
from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport Limits, gains_enough
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport Store
from dtrees.core.grow._node_buffer cimport NodeBuffer


cdef inline bint has_split(const Search* q, const Limits* limits) noexcept nogil:
    """Whether a search that is finished has found a split that gains enough."""
    return q.split.test != LEAF and gains_enough(limits, q.split.gain)


cdef bint grow_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                    OpenNode* right) noexcept nogil
cdef bint split_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                     OpenNode* right) noexcept nogil
