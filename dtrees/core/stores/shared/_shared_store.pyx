"""A node of several sets: its search, column by column, and its children.

    one column          | H0 | H1 | ... | Hk |         counted once, by cell
    member i            H0 + H1 + ... + Hk - Hi        exact: sums of integers

Columns of many codes come last, and by intervals. Members with tests on one column go on together.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._bits cimport prefetch, trailing_zeros
from dtrees.core.data._columns cimport STORED_SPARSE, Column, last_ordered
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._structs cimport IN_SUBSET, LEAF, RowStatistics, Totals
from dtrees.core.search._open_node cimport open_child
from dtrees.core.search._parameters cimport Limits, TrainParameters, may_follow, may_use
from dtrees.core.search._search cimport (
    NONE, Boundaries, Search, borrow_scratch, enlarge, free_bins, free_search, is_better,
    keep_ranks, new_search
)
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns
from dtrees.core.stores.shared._shared_entries cimport (
    bins_of_subsets, forget_members, note_members, push_children, read_drawn, reserve_drawn,
    search_entries, share_entries, spread_codes
)
from dtrees.core.stores.shared._shared_histogram cimport (
    bins_of_member, count_by_cell, number_codes, search_counted, sum_cells, sum_members
)
from dtrees.core.stores.shared._shared_intervals cimport (
    bound_columns, free_alive, has_bounds, search_intervals
)
from dtrees.core.stores.shared._shared_nodes cimport (
    MOST_CELLS, Partitioning, SharedNode, free_shared, mark_codes_left, new_shared,
    partition_shared
)
from dtrees.core.stores.shared._shared_state cimport ABSENT, SharedStore, packed

cdef enum:
    MUCH_SMALLER = 8        # than a node before: room for its rows is given back
    AHEAD = 8               # columns that are drawn

# ---------------------------------------------------------------------------------------------
# memory

cdef bint begin_store(SharedStore* s) noexcept nogil:
    """Searches and scratch for the parameters of the sets; False without memory."""
    cdef int64_t K = s.store.params.criterion.n_classes
    cdef int64_t n_columns = s.store.params.limits.n_columns
    cdef int64_t most_codes = 0
    cdef int64_t j
    cdef int i
    s.store.choose = choose
    s.store.codes.same = True
    if not (claim_zeros(<void**>&s.searches, s.n_sets * sizeof(Search*))
            and claim(<void**>&s.boundaries, sizeof(Boundaries))
            and claim(<void**>&s.order, (n_columns + 1) * sizeof(int32_t))
            and claim(<void**>&s.swapped, (n_columns + 1) * sizeof(int32_t))):
        return False
    for i in range(s.n_sets):
        s.searches[i] = new_search(&s.params_of[i].criterion, s.params_of[i].layout.kind,
                                   s.of_row[0], &s.params_of[i].limits)
        if s.searches[i] == NULL:
            return False
        borrow_scratch(s.searches[i], &s.bins, s.boundaries)
    for j in range(n_columns):
        s.order[j] = <int32_t>j
        if s.store.params.columns[j].n_codes > most_codes:
            most_codes = s.store.params.columns[j].n_codes
    if s.intervals != NULL and not claim(<void**>&s.own_highest,
                                         n_columns * s.n_sets * sizeof(double)):
        return False
    s.highest = s.own_highest
    if s.n_dense < n_columns and not (
            claim_zeros(<void**>&s.who_of, (s.n_rows + 1) * sizeof(uint64_t))
            and claim(<void**>&s.code_of, (s.n_rows + 1) * sizeof(uint32_t))
            and claim(<void**>&s.cell_of, s.n_rows + 1)
            and claim_zeros(<void**>&s.side, s.n_rows + 1)):
        return False
    if s.cell_of != NULL:
        memset(s.cell_of, ABSENT, s.n_rows + 1)
    return (claim(<void**>&s.code, (most_codes + 2) * sizeof(uint32_t))
            and claim(<void**>&s.rank, (most_codes + 2) * sizeof(uint32_t))
            and claim_zeros(<void**>&s.hit, ((most_codes >> 6) + 2) * sizeof(uint64_t))
            and claim(<void**>&s.left_of, (most_codes + 2) * sizeof(uint64_t))
            and claim(<void**>&s.sums, MOST_CELLS * sizeof(int64_t))
            and claim(<void**>&s.totals, MOST_CELLS * sizeof(Totals))
            and claim(<void**>&s.class_totals, MOST_CELLS * (K + 1) * sizeof(int64_t)))


cdef void free_store(SharedStore* s) noexcept nogil:
    cdef int i
    for i in range(s.n_sets if s.searches != NULL else 0):
        free_search(s.searches[i])
    free(s.searches)
    free(s.boundaries)
    free_bins(&s.bins)
    free(s.order)
    free(s.swapped)
    free(s.histograms)
    free(s.added)
    free(s.code)
    free(s.rank)
    free(s.hit)
    free(s.left_of)
    free(s.sums)
    free(s.totals)
    free(s.class_totals)
    free(s.own_highest)
    free_alive(s)
    free(s.who_of)
    free(s.code_of)
    free(s.cell_of)
    free(s.side)
    free(s.listed.rows)
    free(s.listed.cell)
    free(s.listed.some)
    free(s.listed.who)
    free(s.own_entries)
    free(s.own_statistics.label)
    free(s.own_statistics.weight)
    free(s.own_statistics.target)


# ---------------------------------------------------------------------------------------------
# the node at hand

cdef Member* take_node(SharedStore* s, SharedNode* node) noexcept nogil:
    """Make a node the one at hand; returns its members, for the node step."""
    cdef Member* member
    cdef int m
    s.node = node
    for m in range(node.n_members):
        member = &s.members[m]
        member.number = node.set_of[m]
        member.node = &node.open[m]
        member.params = &s.params_of[member.number]
        member.search = s.searches[member.number]
    return s.members


cdef void begin_search(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Gather what columns are counted from, and forget what was known of another node."""
    cdef const TrainParameters* params = s.store.params
    cdef int m
    gather_rows(s, node)
    s.bounds.lowest = 1  # of targets: above the highest, not known yet
    s.bounds.highest = 0
    for m in range(node.n_members):
        s.best[m] = NONE
    if s.n_dense < params.limits.n_columns:
        note_members(s, node)


cdef void gather_rows(SharedStore* s, const SharedNode* node) noexcept nogil:
    """What the rows of a node add, one behind the other, where they are packed and a column is
    dense."""
    cdef const RowStatistics* of_row = s.of_row
    cdef int64_t n = node.n + node.n_some
    cdef int64_t* some
    cdef int64_t i
    s.gathered = NULL
    if not s.is_packed or s.n_dense == 0:
        return
    if n > s.n_added or n < s.n_added // MUCH_SMALLER:
        s.n_added = n if claim(<void**>&s.added, n * sizeof(int64_t)) else 0
        if s.added == NULL:
            s.store.out_of_memory = True
            return
    some = s.added + node.n
    for i in range(node.n):
        s.added[i] = packed(of_row, node.rows[i])
    for i in range(node.n_some):
        some[i] = packed(of_row, node.some[i])
    s.gathered = node.rows


# ---------------------------------------------------------------------------------------------
# its search

cdef void search_node(Store* store, Member* members) noexcept nogil:
    """The best split of every active member."""
    cdef SharedStore* s = <SharedStore*>store
    cdef SharedNode* node = s.node
    cdef const TrainParameters* params = store.params
    cdef int64_t n_columns = params.limits.n_columns
    cdef int64_t first = 0
    cdef int64_t count = params.limits.max_features
    cdef int64_t n_used = 0  # those that the node may not use do not count as drawn
    cdef uint64_t wanting = node.active
    cdef int64_t i
    cdef int32_t column
    cdef int m
    begin_search(s, node)
    if not s.params_of[0].draws:
        search_columns(s, node, 0, 1)
        search_intervals(s, node, s.best, 0, 1)
    elif count >= n_columns:
        search_drawn(s, node, s.order, n_columns, node.active)
    else:
        while first < n_columns and wanting != 0:
            count = draw_columns(params, node.open[0].path, s.order, s.swapped, first,
                                 count)
            search_drawn(s, node, s.order + first, count, wanting)
            for i in range(first, first + count):
                n_used += may_use(&params.limits, node.open[0].above.sets, s.order[i])
            for m in range(node.n_members):
                if (members[m].search.split.test != LEAF
                        and n_used >= params.limits.max_features):
                    wanting &= ~(<uint64_t>1 << m)
            first += count
            count = 1
        for i in range(first - 1, -1, -1):
            column = s.order[i]
            s.order[i] = s.order[s.swapped[i]]
            s.order[s.swapped[i]] = column
    forget_members(s, node)


cdef void search_columns(SharedStore* s, const SharedNode* node, int64_t first,
                         int64_t step) noexcept nogil:
    """Search every `step`-th column, from `first` on, for all active members.

    Columns of many codes come last, and of these only the boundaries between intervals are looked
    at. What is inside is left to `search_intervals`, when the best boundary of all is known.
    """
    cdef int64_t i = first
    cdef int32_t j
    while i < s.n_dense:
        j = s.dense[i]
        if not has_bounds(s, node, j):
            search_column(s, node, j, node.active)
        i += step
    search_entries(s, node, first, step, node.active)
    bound_columns(s, node, first, step)


cdef void take_better(SharedStore* s, const SharedStore* other) noexcept nogil:
    """Take the splits that another thread has found of the node at hand, where they are better."""
    cdef Search* mine
    cdef const Search* found
    cdef int64_t n_bytes
    cdef int i
    s.store.out_of_memory |= other.store.out_of_memory
    for i in range(s.n_sets):
        mine = s.searches[i]
        found = other.searches[i]
        if not is_better(mine, &found.split):
            continue
        mine.split = found.split
        if found.split.test == IN_SUBSET:
            n_bytes = found.split_subset_words * sizeof(uint64_t)
            if not enlarge(mine, <void**>&mine.split_subset, n_bytes):
                s.store.out_of_memory = True
                return
            mine.split_subset_words = found.split_subset_words
            memcpy(mine.split_subset, found.split_subset, n_bytes)


cdef void search_column(SharedStore* s, const SharedNode* node, int32_t number,
                        uint64_t members) noexcept nogil:
    """Search a dense column for these members, if it is not known to be constant."""
    cdef const Column* column = s.store.params.columns + number
    cdef int32_t slot = s.slot[number]
    cdef int64_t width
    cdef bint varies
    if column.n_codes == 0 or node.constant[slot] or s.store.out_of_memory:
        return
    width = number_codes(s, node, column)
    s.store.work += node.n
    if count_by_cell(s, node, column, width):
        varies = search_counted(s, node, number, last_ordered(column), width, members, NULL)
        node.constant[slot] = not varies and members == node.active


cdef void search_drawn(SharedStore* s, SharedNode* node, const int32_t* drawn, int64_t count,
                       uint64_t members) noexcept nogil:
    """Search some columns, in any order, for these members; Those that
    the node may not use are left out."""
    cdef const TrainParameters* params = s.store.params
    cdef const uint64_t* sets = node.open[0].above.sets  # those of all members
    cdef int64_t before = node.n_features
    cdef int64_t i
    if s.n_dense < params.limits.n_columns and not reserve_drawn(s, node, drawn, count):
        s.store.out_of_memory = True
        return
    for i in range(count):
        if not may_use(&params.limits, sets, drawn[i]):
            continue
        if params.columns[drawn[i]].storage != STORED_SPARSE:
            search_column(s, node, drawn[i], members)
            continue
        if i + AHEAD < count:
            prefetch(params.columns[drawn[i + AHEAD]].rows)
        read_drawn(s, node, drawn[i])
    if node.n_features > before:
        search_entries(s, node, before, 1, members)


# ---------------------------------------------------------------------------------------------
# its children

cdef void choose(Store* store, Member* members, uint64_t together) noexcept nogil:
    """For members whose split is a subset the chosen column is counted once more."""
    cdef SharedStore* s = <SharedStore*>store
    cdef int32_t number = members[trailing_zeros(together)].search.split.column
    cdef const Column* column = store.params.columns + number
    cdef uint64_t subsets = 0
    cdef int64_t width = 0
    cdef int m
    store.last_ordered = last_ordered(column)
    for m in range(s.node.n_members):
        if together >> m & 1 and members[m].search.split.test == IN_SUBSET:
            subsets |= <uint64_t>1 << m
    if column.storage == STORED_SPARSE and subsets != 0:
        bins_of_subsets(s, s.node, number, subsets)
        return
    for m in range(s.node.n_members):
        if subsets >> m & 1:
            if width == 0:
                width = number_codes(s, s.node, column)
                if not count_by_cell(s, s.node, column, width):
                    return
            bins_of_member(s, members[m].search, s.node, m, width)
            keep_ranks(members[m].search)
            s.store.out_of_memory |= members[m].search.out_of_memory


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
