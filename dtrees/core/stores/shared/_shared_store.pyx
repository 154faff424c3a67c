"""The search of a shared node: columns are counted once, and searched for each member.

    one column          | H0 | H1 | ... | Hk |         one pass, by cell
    member i            H0 + H1 + ... + Hk - Hi        exact: sums of integers
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_SPARSE, Column, last_ordered
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._structs cimport IN_SUBSET, RowStatistics, Totals
from dtrees.core.search._bins cimport search_bins
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport (
    NONE, Boundaries, Search, borrow_scratch, free_bins, free_search, keep_ranks, new_search
)
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.shared._alive_scan cimport free_alive
from dtrees.core.stores.shared._shared_entries cimport bins_of_subsets, note_members
from dtrees.core.stores.shared._shared_histogram cimport (
    bins_of_member, count_by_cell, number_codes
)
from dtrees.core.stores.shared._shared_nodes cimport MOST_CELLS, SharedNode
from dtrees.core.stores.shared._shared_state cimport ABSENT, SharedStore, packed

cdef enum:
    MUCH_SMALLER = 8        # than a node before: room for its rows is given back


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


cdef void search_column(SharedStore* s, const SharedNode* node, int32_t number,
                        uint64_t members) noexcept nogil:
    cdef const Column* column = s.store.params.columns + number
    cdef int32_t slot = s.slot[number]
    if column.n_codes == 0 or node.constant[slot] or s.store.out_of_memory:
        return
    node.constant[slot] = not search_codes(s, node, number, members,
                                           number_codes(s, node, column))


cdef bint search_codes(SharedStore* s, const SharedNode* node, int32_t number, uint64_t members,
                       int64_t width) noexcept nogil:
    """Search a column by the codes in `code`; False where it is constant for all members."""
    cdef const Column* column = s.store.params.columns + number
    cdef int m
    cdef Search* q
    cdef bint varies = members != node.active
    s.store.work += node.n + width * node.n_members
    if not count_by_cell(s, node, column, width):
        return True
    for m in range(node.n_members):
        if members >> m & 1:
            q = s.searches[node.set_of[m]]
            bins_of_member(s, q, node, m, width)
            if q.bins.count > 1:
                varies = True
                if s.store.params.limits.random_splits:
                    search_random(q, number, last_ordered(column),
                                  s.store.params.values + s.store.params.first_value[number])
                else:
                    search_bins(q, number, last_ordered(column))
                s.store.out_of_memory |= q.out_of_memory
    return varies


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
