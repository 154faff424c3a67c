"""The search of a shared node, column by column; those of many codes by intervals, and as exact.

    255 intervals    | . . . . . . . . . . . |      histograms of all columns, by cell
    bounds             3 4 4 5 7 9 8 6 5 4 3        of each member; the best boundary scores 8
    alive                      7 9 8                those that reach it, and their neighbours
    numbers            0 1 2 3 456789 10 11 12      codes of these, and each of the others as one

The second pass is the ordinary one, over these numbers, and only of columns that have an interval
that is alive; that is one column, rarely two. A boundary that wins lies between two codes of
intervals that are alive, so that the split is that of the exact search.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport MOST_INTERVALS, Column
from dtrees.core.data._structs cimport IN_SUBSET, LEAF
from dtrees.core.search._intervals cimport Bounds, bound_intervals, lowest_best
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport NONE, Search, enlarge, is_better
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns
from dtrees.core.stores.shared._shared_blocks cimport bins_of_member, count_by_cell
from dtrees.core.stores.shared._drawn_entries cimport search_drawn
from dtrees.core.stores.shared._shared_entries cimport forget_members, search_entries
from dtrees.core.stores.shared._shared_histogram cimport rank_codes
from dtrees.core.stores.shared._shared_store cimport begin_search, search_codes, search_column


cdef bint has_bounds(const SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil:
    """Whether a column is searched by intervals in a node."""
    return (s.intervals != NULL and s.intervals[number].column.codes != NULL
            and s.store.params.columns[number].n_codes >= s.interval_codes
            and node.n + node.n_some >= s.interval_rows)


cdef void search_node(Store* store, Member* members) noexcept nogil:
    """The best split of every active member."""
    cdef SharedStore* s = <SharedStore*>store
    cdef SharedNode* node = s.node
    cdef const TrainParameters* params = store.params
    cdef int64_t n_columns = params.limits.n_columns
    cdef int64_t first = 0
    cdef int64_t count = params.limits.max_features
    cdef uint64_t wanting = node.active
    cdef int64_t i
    cdef int32_t column
    cdef int m
    begin_search(s, node)
    if not s.params_of[0].draws:
        search_columns(s, node, 0, 1)
    elif count >= n_columns:
        search_drawn(s, node, s.order, n_columns, node.active)
    else:
        while first < n_columns and wanting != 0:
            count = draw_columns(params, node.open[0].path, s.order, s.swapped, first,
                                 count)
            search_drawn(s, node, s.order + first, count, wanting)
            for m in range(node.n_members):
                if members[m].search.split.test != LEAF:
                    wanting &= ~(<uint64_t>1 << m)
            first += count
            count = 1
        for i in range(first - 1, -1, -1):
            column = s.order[i]
            s.order[i] = s.order[s.swapped[i]]
            s.order[s.swapped[i]] = column
    if s.params_of[0].draws and s.n_dense < n_columns:
        forget_members(s, node)


cdef void search_columns(SharedStore* s, const SharedNode* node, int64_t first,
                         int64_t step) noexcept nogil:
    """Search every `step`-th column, from `first` on, for all active members.

    Columns of many codes come last: of these only the intervals are searched that may hold a better
    boundary than all columns before (`search_by_intervals`).
    """
    cdef bint any = False
    cdef int64_t i = first
    cdef int32_t j
    while i < s.n_dense:
        j = s.dense[i]
        if has_bounds(s, node, j):
            any = True
        else:
            search_column(s, node, j, node.active)
        i += step
    search_entries(s, node, first, step, node.active)
    if any and not s.store.out_of_memory:
        search_by_intervals(s, node, first, step)


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


cdef inline void widen_range(SharedStore* s, uint32_t row) noexcept nogil:
    cdef double target = <double>s.of_row.target[row]
    if s.of_row.weight != NULL:
        if s.of_row.weight[row] == 0:
            return
        target = target / <double>s.of_row.weight[row]
    s.bounds.lowest = min(s.bounds.lowest, target)
    s.bounds.highest = max(s.bounds.highest, target)


cdef void find_range(SharedStore* s, const SharedNode* node) noexcept nogil:
    """The least and the greatest target of the rows of a node, for their weights."""
    cdef Bounds* bounds = &s.bounds
    cdef int64_t i
    bounds.lowest = 0
    bounds.highest = 1
    if s.of_row.value == NULL:
        return
    bounds.lowest = 1e300
    bounds.highest = -1e300
    for i in range(node.n):
        widen_range(s, node.rows[i])
    for i in range(node.n_some):
        widen_range(s, node.some[i])


cdef void search_by_intervals(SharedStore* s, const SharedNode* node, int64_t first,
                              int64_t step) noexcept nogil:
    """Search every `step`-th column, of those that have intervals, for all active members."""
    cdef uint8_t alive[MOST_INTERVALS + 1]
    cdef int64_t i = first
    cdef int32_t j
    cdef int m
    if s.bounds.lowest > s.bounds.highest:
        find_range(s, node)
    for m in range(node.n_members):
        s.best[m] = s.searches[node.set_of[m]].split.score
    while i < s.n_dense:
        j = s.dense[i]
        if has_bounds(s, node, j) and not node.constant[i]:
            bound_column(s, node, j)
            s.n_bounded += 1
        if s.store.out_of_memory:
            return
        i += step
    for m in range(node.n_members):
        s.best[m] = lowest_best(s.best[m])
    i = first
    while i < s.n_dense:
        j = s.dense[i]
        if has_bounds(s, node, j) and not node.constant[i] and reaches(s, node, j):
            mark_alive(s, node, j, alive)
            s.n_alive += 1
            if s.store.out_of_memory:
                return
            search_codes(s, node, j, node.active, number_alive(s, node, j, alive))
        i += step


cdef void bound_member(SharedStore* s, const SharedNode* node, int64_t number, int m,
                       int64_t width) noexcept nogil:
    cdef Search* q = s.searches[node.set_of[m]]
    bins_of_member(s, q, node, m, width)
    bound_intervals(q, s.intervals[number].last, &s.bounds)


cdef int64_t count_intervals(SharedStore* s, const SharedNode* node,
                             int64_t number) noexcept nogil:
    """Histograms of the intervals of a column; returns how many there are."""
    cdef const Column* column = &s.intervals[number].column
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef int64_t i
    s.counting.rank = NULL
    for i in range(width):
        s.code[i] = <uint32_t>i
    s.store.work += node.n + width * node.n_members
    count_by_cell(s, node, column, width)
    return width


cdef void bound_column(SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil:
    """The best boundary between intervals, and the highest score that there may be."""
    cdef int64_t width = count_intervals(s, node, number)
    cdef double highest
    cdef int64_t i
    cdef int m
    for m in range(node.n_members if not s.store.out_of_memory else 0):
        if not node.active >> m & 1:
            continue
        bound_member(s, node, number, m, width)
        highest = NONE
        for i in range(s.searches[node.set_of[m]].bins.count):
            s.best[m] = max(s.best[m], s.bounds.at_end[i])
            highest = max(highest, max(s.bounds.at_end[i], s.bounds.inside[i]))
        s.highest[number * s.n_sets + m] = highest


cdef bint reaches(const SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil:
    """Whether a column may have the best boundary of a member."""
    cdef double highest
    cdef int m
    for m in range(node.n_members):
        highest = s.highest[number * s.n_sets + m]
        if node.active >> m & 1 and highest > NONE and highest >= s.best[m]:
            return True
    return False


cdef void mark_alive(SharedStore* s, const SharedNode* node, int64_t number,
                     uint8_t* alive) noexcept nogil:
    """Intervals with boundaries, inside or at an end, that may be the best of a member."""
    cdef int64_t width = count_intervals(s, node, number)
    cdef const Bounds* bounds = &s.bounds
    cdef const uint32_t* rank
    cdef int64_t i, count
    cdef int m
    memset(alive, 0, MOST_INTERVALS + 1)
    for m in range(node.n_members if not s.store.out_of_memory else 0):
        if not node.active >> m & 1:
            continue
        bound_member(s, node, number, m, width)
        count = s.searches[node.set_of[m]].bins.count
        rank = s.searches[node.set_of[m]].bins.rank
        for i in range(count):
            if bounds.inside[i] > NONE and bounds.inside[i] >= s.best[m]:
                alive[rank[i]] = 1
            if bounds.at_end[i] > NONE and bounds.at_end[i] >= s.best[m]:
                alive[rank[i]] = 1
                if i + 1 < count:
                    alive[rank[i + 1]] = 1


cdef int64_t number_alive(SharedStore* s, const SharedNode* node, int64_t number,
                          const uint8_t* alive) noexcept nogil:
    """Number the codes of a node: those of intervals that are alive, and other intervals."""
    cdef const Column* column = s.store.params.columns + number
    cdef const uint32_t* last = &s.intervals[number].last[0]
    cdef int64_t n_codes = rank_codes(node, column, s.hit, s.code, s.rank)
    cdef int64_t width = 0
    cdef int64_t before = -1
    cdef int64_t interval = 0
    cdef int64_t i
    for i in range(n_codes):
        while s.code[i] > last[interval]:
            interval += 1
        if alive[interval] or interval != before:
            s.code[width] = s.code[i]
            width += 1
        before = interval
        s.rank[s.code[i]] = <uint32_t>(width - 1)
    s.counting.rank = s.rank
    return width
