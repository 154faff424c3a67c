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
from libc.stdint cimport uint64_t

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._open_node cimport OpenNode, has_constraints, restrict_children
from dtrees.core.search._parameters cimport gains_enough
from dtrees.core.search._search cimport Search, finish_node
from dtrees.core.stores._partition cimport route_of
from dtrees.core.stores._store cimport Member, Store, begin_members, only_member
from dtrees.core.grow._node_buffer cimport NodeBuffer, write_record, write_test

cdef enum Part:
    # Of the step, and the one that it begins with.
    RECORD
    SEARCH
    SPLIT


cdef inline void record_members(NodeBuffer* out, Member* members, int n,
                                uint64_t who) noexcept nogil:
    """Record a node, for some of its n members. out : by number of the set."""
    cdef int m
    for m in range(n):
        if who >> m & 1:
            write_record(&out[members[m].number], members[m].params, members[m].node)


cdef inline void search_members(Store* store, Member* members, int n) noexcept nogil:
    begin_members(members, n)
    store.search_node(store, members)


cdef inline uint64_t split_members(Store* store, NodeBuffer* out, Member* members,
                                   int n) noexcept nogil:
    """Split a node that is recorded and searched; returns a bit for each member that is split.

    Members with tests on one column go on together. Where memory ends nothing more is written; the
    children of a node of one member can be freed then.
    """
    cdef uint64_t is_split = 0
    cdef uint64_t left, together
    cdef const Search* first
    cdef const Search* q
    cdef int m
    for m in range(n):
        finish_node(members[m].search)
        q = members[m].search
        if q.split.test != LEAF and gains_enough(&members[m].params.limits, q.split.gain):
            is_split |= <uint64_t>1 << m
    left = is_split
    while left != 0:
        first = members[trailing_zeros(left)].search
        together = 0
        for m in range(n):
            if left >> m & 1 and members[m].search.split.column == first.split.column:
                together |= <uint64_t>1 << m
        left &= ~together
        store.choose(store, members, together)
        for m in range(n):
            q = members[m].search
            if together >> m & 1:
                members[m].route = route_of(&q.split, store.last_ordered, q.split_subset,
                                            q.split_subset_words)
        store.partition(store, members, together)
        if store.out_of_memory or first.out_of_memory:
            return is_split
        for m in range(n):
            if (together >> m & 1 and has_constraints(members[m].params)
                    and not restrict_children(members[m].params, members[m].node,
                                              first.split.column, members[m].left,
                                              members[m].right)):
                members[m].search.out_of_memory = True
                return is_split
            if together >> m & 1:
                write_test(&out[members[m].number], members[m].node.record, members[m].params,
                           members[m].search, &store.codes, &members[m].left.totals,
                           &members[m].right.totals)
    return is_split


cdef inline bint grow_node(Store* store, NodeBuffer* out, OpenNode* node, OpenNode* left,
                           OpenNode* right, Part first) noexcept nogil:
    """The step for one member; False: the node stays a leaf, and there are no children."""
    cdef Member member = only_member(node, store.params, store.search, left, right)
    if first == RECORD:
        record_members(out, &member, 1, 1)
    if first != SPLIT:
        search_members(store, &member, 1)
    return split_members(store, out, &member, 1) != 0
