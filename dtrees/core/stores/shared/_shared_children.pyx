"""The children of a shared node: members with tests on one column go on together."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_SPARSE, Column
from dtrees.core.search._open_node cimport open_child
from dtrees.core.search._parameters cimport Limits, may_follow
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.shared._entry_lists cimport push_children, share_entries
from dtrees.core.stores.shared._shared_entries cimport spread_codes
from dtrees.core.stores.shared._shared_nodes cimport (
    Partitioning, SharedNode, free_shared, mark_codes_left, new_shared, partition_shared
)
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.stores.shared._shared_histogram cimport sum_cells, sum_members


cdef void partition_members(Store* store, Member* members, uint64_t together) noexcept nogil:
    """Children for members with tests on one column: the left one, the right one below it, on top
    of the nodes that wait."""
    cdef SharedStore* s = <SharedStore*>store
    cdef SharedNode* node = s.node
    cdef int32_t number = members[trailing_zeros(together)].search.split.column
    cdef const Column* column = store.params.columns + number
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef Column spread
    cdef Partitioning p
    cdef SharedNode* left
    cdef SharedNode* right
    cdef int m
    p.n = 0
    for m in range(node.n_members):
        if together >> m & 1:
            p.route[p.n] = members[m].route
            p.n += 1
    if column.storage == STORED_SPARSE:
        spread_codes(s, node, number, &spread)
        column = &spread
    p.left_of = NULL
    if width <= 2 * node.n + 64:
        mark_codes_left(p.route, p.n, width, s.left_of)
        p.left_of = s.left_of
    left = new_shared(p.n, node.n_cells, store.params, s.n_dense)
    right = new_shared(p.n, node.n_cells, store.params, s.n_dense)
    if (left == NULL or right == NULL
            or not fill_children(s, column, together, &p, left, right)):
        store.out_of_memory = True
        free_shared(left)
        free_shared(right)
        return
    p.n = 0
    for m in range(node.n_members):
        if together >> m & 1:
            left.set_of[p.n] = right.set_of[p.n] = members[m].number
            members[m].left = &left.open[p.n]
            members[m].right = &right.open[p.n]
            open_child(members[m].node, True, members[m].left)
            open_child(members[m].node, False, members[m].right)
            p.n += 1
    sum_child(s, left, p.left_sums)
    sum_child(s, right, p.right_sums)
    if store.params.limits.n_set_words > 0:
        bar_columns(s, number, left, right)
    left.is_left = True
    store.out_of_memory |= not (share_entries(node, left) and share_entries(node, right))
    push_children(s, left, right)


cdef bint fill_children(SharedStore* s, const Column* column, uint64_t together, Partitioning* p,
                        SharedNode* left, SharedNode* right) noexcept nogil:
    """Partition the cells and the rows of the node at hand; False without memory."""
    cdef SharedNode* node = s.node
    cdef uint64_t* who = node.who
    cdef bint found
    cdef int64_t i
    left.n_cells = right.n_cells = number_cells(node, together, p, left.without)
    memcpy(right.without, left.without, left.n_cells * sizeof(uint64_t))
    memcpy(left.constant, node.constant, s.n_dense)
    memcpy(right.constant, node.constant, s.n_dense)
    if p.n < node.n_members:
        who = <uint64_t*>malloc((node.n_some + 1) * sizeof(uint64_t))
        if who == NULL:
            return False
        for i in range(node.n_some):
            who[i] = bits_among(node.who[i], together)
    found = partition_shared(node, column, s.added if s.gathered != NULL else NULL, who, p,
                             left, right)
    if p.n < node.n_members:
        free(who)
    return found


cdef void bar_columns(const SharedStore* s, int32_t number, SharedNode* left,
                      SharedNode* right) noexcept nogil:
    """Dense columns that may not be used below a test of a column are passed over from here on, as
    if they were constant. All members inherit the same sets: the tests above are on one column."""
    cdef const Limits* limits = &s.store.params.limits
    cdef const uint64_t* sets = s.node.open[0].above.sets
    cdef int64_t i
    for i in range(s.n_dense):
        if not may_follow(limits, sets, number, s.dense[i]):
            left.constant[i] = right.constant[i] = 1


cdef void sum_child(SharedStore* s, SharedNode* child, const int64_t* sums) noexcept nogil:
    """Sums of the members of a child; `sums` by cell where what rows add was gathered."""
    if s.gathered != NULL:
        memcpy(s.sums, sums, child.n_cells * sizeof(int64_t))
    else:
        sum_cells(s, child)
    sum_members(s, child)


cdef inline uint64_t bits_among(uint64_t members, uint64_t together) noexcept nogil:
    """The bits of the members that are together, moved to their numbers among these."""
    cdef uint64_t moved = 0
    cdef uint64_t bit = 1
    while together != 0:
        if members & together & -together:
            moved |= bit
        together &= together - 1
        bit <<= 1
    return moved


cdef int number_cells(const SharedNode* node, uint64_t together, Partitioning* p,
                      uint64_t* without) noexcept nogil:
    """The cells of the children: those that the same members lack become one, and what all of them
    lack is left behind. Returns how many.

    p : `full` and `new_cell` are filled here. without : by cell of the children, filled.
    """
    cdef uint64_t full = (<uint64_t>1 << p.n) - 1 if p.n < 64 else <uint64_t>-1
    cdef uint64_t lack
    cdef int n = 0
    cdef int c, k
    for c in range(node.n_cells):
        lack = bits_among(node.without[c], together)
        p.full[c] = full & ~lack
        p.new_cell[c] = 0
        if lack == full:
            continue
        k = 0
        while k < n and without[k] != lack:
            k += 1
        without[k] = lack
        p.new_cell[c] = <uint8_t>k
        n = k + 1 if k == n else n
    return n
