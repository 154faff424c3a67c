"""One node: recorded, searched, and split if that gains enough.

    record ──▶ search ──▶ enough gain? ──▶ which codes go left ──▶ partition ──▶ write the test
                 store                          store                  store

The step does not know where rows are; it asks the store (`stores._store`). It knows the *members*
of a node: training sets that have it, which go apart where their tests look at different columns.
Most stores have one. The parts of the step are inlined, so loops over one member are none
(measured: .97 to 1.01 times as long as a step that knows no members).

An order of growth takes the whole step, or its parts when it has what they need:

    depth first, shared     record, search, split
    large nodes             record;  search, on several threads;  split
    rounds                  record;  search, split: again, while no drawn column can be split

Children get their keys, sums and limits where the store opens them (`search._open_node`).
"""
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.stores._store cimport Member, Store, only_member
from dtrees.core.grow._node_buffer cimport NodeBuffer


cdef bint grow_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left, OpenNode* right,
                    Part first) noexcept nogil:
    """The step for one member; False: the node stays a leaf, and there are no children."""
    cdef Member member = only_member(node, store.params, store.search, left, right)
    if first == RECORD:
        record_members(out, &member, 1, 1)
    if first != SPLIT:
        search_members(store, &member, 1)
    return split_members(store, out, &member, 1) != 0


cdef allow(OpenNode* node, above):
    """Let a root that is a node of a larger tree have what its ancestors allow it."""
    cdef const uint8_t[::1] words
    lower, upper, sets = above
    node.above.has_lower, node.above.has_upper = lower is not None, upper is not None
    node.above.lower = 0.0 if lower is None else lower
    node.above.upper = 0.0 if upper is None else upper
    if sets is not None:
        words = sets
        node.above.sets = <uint64_t*>malloc(len(sets))
        if node.above.sets == NULL:
            raise MemoryError
        memcpy(node.above.sets, &words[0], len(sets))
