"""The children of a shared node: members with tests on one column go on together."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport Column, last_ordered
from dtrees.core.data._structs cimport IN_SUBSET
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search
from dtrees.core.stores._partition cimport route_of
from dtrees.core.stores.shared._shared_nodes cimport (
    MOST_SETS, Partitioning, SharedNode, claimed, free_shared, mark_codes_left, new_shared,
    partition_shared
)
from dtrees.core.stores.shared._shared_store cimport (
    SharedStore, bins_of_member, count_by_cell, number_codes
)
from dtrees.core.stores.shared._shared_sums cimport sum_cells, sum_members
from dtrees.core.grow._node_buffer cimport NodeBuffer, write_test


cdef SharedNode* partition_members(SharedStore* s, NodeBuffer* records, SharedNode* node,
                                   uint64_t together, int32_t number) noexcept nogil:
    """The children of members with tests on one column: the left one, the right one below it. NULL
    without memory."""
    cdef const Column* column = s.params.columns + number
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef Partitioning p
    cdef int member[MOST_SETS]
    cdef int n = 0
    cdef int k, m
    cdef int64_t i
    cdef bint has_subset = False
    cdef SharedNode* left
    cdef SharedNode* right
    cdef Search* q
    cdef uint64_t* who = node.who
    for m in range(node.n_members):
        if together >> m & 1:
            q = s.searches[node.set_of[m]]
            has_subset |= q.split.test == IN_SUBSET
            p.route[n] = route_of(&q.split, last_ordered(column), q.split_subset,
                                  q.split_subset_words)
            member[n] = m
            n += 1
    p.n = n
    p.left_of = NULL
    if width <= 2 * node.n + 64:
        mark_codes_left(p.route, n, width, s.left_of)
        p.left_of = s.left_of
    left = new_shared(n, node.n_cells, s.params)
    right = new_shared(n, node.n_cells, s.params)
    if n < node.n_members:
        who = <uint64_t*>claimed(NULL, (node.n_some + 1) * sizeof(uint64_t))
    s.out_of_memory = left == NULL or right == NULL or who == NULL and node.n_some > 0
    if not s.out_of_memory:
        left.n_cells = right.n_cells = place_cells(node, together, &p, left.without)
        memcpy(right.without, left.without, left.n_cells * sizeof(uint64_t))
        memcpy(left.constant, node.constant, s.params.limits.n_columns)
        memcpy(right.constant, node.constant, s.params.limits.n_columns)
        for i in range(node.n_some if n < node.n_members else 0):
            who[i] = placed(node.who[i], together)
        s.out_of_memory = not partition_shared(node, column, s.counting.added, who, &p, left, right)
    if n < node.n_members:
        free(who)
    if s.out_of_memory:
        free_shared(left)
        free_shared(right)
        return NULL
    for k in range(n):
        left.set_of[k] = right.set_of[k] = node.set_of[member[k]]
    open_members(s, node, left, member, p.left_sums, True)
    open_members(s, node, right, member, p.right_sums, False)
    if has_subset:
        width = number_codes(s, node, column)
        count_by_cell(s, node, column, width)
    for k in range(n if not s.out_of_memory else 0):
        m = member[k]
        q = s.searches[node.set_of[m]]
        if q.split.test == IN_SUBSET:
            bins_of_member(s, q, node, m, width)
        write_test(&records[node.set_of[m]], node.open[m].record,
                   &s.params_of[node.set_of[m]], q, &s.codes, &left.open[k].totals,
                   &right.open[k].totals)
    left.below = right
    return left


cdef void open_members(SharedStore* s, const SharedNode* node, SharedNode* child, const int* member,
                       const int64_t* sums, bint is_left) noexcept nogil:
    """Sums and descriptions of the members of a child; `sums` by cell where rows are packed."""
    cdef const OpenNode* parent
    cdef OpenNode* open
    cdef int k
    if s.is_packed:
        memcpy(s.sums, sums, child.n_cells * sizeof(int64_t))
    else:
        sum_cells(s, child)
    for k in range(child.n_members):
        parent = &node.open[member[k]]
        open = &child.open[k]
        open.depth = parent.depth + 1
        open.path = hash64(parent.path, 1 if is_left else 2)
        open.parent = parent.record
        open.is_left = is_left
    sum_members(s, child)


cdef inline uint64_t placed(uint64_t members, uint64_t together) noexcept nogil:
    """The bits of the members that are together, moved to their places among these."""
    cdef uint64_t moved = 0
    cdef uint64_t bit = 1
    while together != 0:
        if members & together & -together:
            moved |= bit
        together &= together - 1
        bit <<= 1
    return moved


cdef int place_cells(const SharedNode* node, uint64_t together, Partitioning* p,
                     uint64_t* without) noexcept nogil:
    """The cells of the children: those that the same members lack become one, and what all of them
    lack is left behind. Returns how many.

    p : `full` and `place` are filled here. without : by cell of the children, filled.
    """
    cdef uint64_t full = (<uint64_t>1 << p.n) - 1 if p.n < 64 else <uint64_t>-1
    cdef uint64_t lack
    cdef int n = 0
    cdef int c, k
    for c in range(node.n_cells):
        lack = placed(node.without[c], together)
        p.full[c] = full & ~lack
        p.place[c] = 0
        if lack == full:
            continue
        k = 0
        while k < n and without[k] != lack:
            k += 1
        without[k] = lack
        p.place[c] = <uint8_t>k
        n = k + 1 if k == n else n
    return n
