"""One node: recorded, searched, and split if that gains enough.

    record ──▶ search ──▶ enough gain? ──▶ which codes go left ──▶ part the rows ──▶ write the test
                 store                          store                  store

The step does not know where rows are; it asks the store (`stores._store`). It knows the *members*
of a node: training sets that have it, which part where their tests look at different columns. Most
stores have one. Its parts stand in the declarations, so that loops over one member are none.

Depth first takes the whole step, level by level and in rounds its parts, as the rows allow:

    depth first, shared     record, search, split
    level by level          record;  search on several threads;  split
    rounds                  record;  search, split, once more while no drawn column can be split

Children get their keys, sums and limits where the store opens them (`search._open_node`).
"""
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.grow._node_buffer cimport NodeBuffer


cdef inline void only_member(Member* member, Store* store, OpenNode* node, OpenNode* left,
                             OpenNode* right) noexcept nogil:
    member.node = node
    member.params = store.params
    member.search = store.search
    member.number = 0
    member.left = left
    member.right = right


cdef bint grow_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                    OpenNode* right) noexcept nogil:
    """Record a node and split it; False: it stays a leaf, and there are no children."""
    cdef Member member
    only_member(&member, store, node, left, right)
    record_members(out, &member, 1, 1)
    search_members(store, &member, 1)
    return split_members(store, out, &member, 1) != 0


cdef bint search_and_split(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                           OpenNode* right) noexcept nogil:
    """The same for a node that is recorded."""
    cdef Member member
    only_member(&member, store, node, left, right)
    search_members(store, &member, 1)
    return split_members(store, out, &member, 1) != 0


cdef bint split_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                     OpenNode* right) noexcept nogil:
    """The same for a node that is recorded and searched."""
    cdef Member member
    only_member(&member, store, node, left, right)
    return split_members(store, out, &member, 1) != 0
