"""Columns of many codes in a shared node: by intervals, then those that are alive code by code.

    255 intervals    | . . . . . . . . . . . |      histograms of all columns, by cell
    bounds             3 4 4 5 7 9 8 6 5 4 3        of each member; the best boundary scores 8
    alive                      7 9 8                those that reach it, and their neighbours
    codes                      456789               of these, for the members that need them

The second pass is only of columns that have an interval that is alive. A boundary that wins lies
between two codes of intervals that are alive, so that the split is that of the exact search.

The rows of these intervals are few. They are sorted by code once for all members; each member scans
those that it has, in the intervals that are alive for it, and adds the others as a whole::

    intervals    | . . . . . | 7   9   8 | . . . . |    alive for somebody
    entries                    r4  r9  r2  r7           their rows, by code: one sort
    member 0     + whole bins  r4      r2  r7   whole   those that it has
    member 1     + whole bins  r4  r9                   dead for it from here on

The scan is that of a tree that grows alone (`search._entry_scan`), which starts from the sums of
what lies before. So scores are the same doubles, and a tie is settled as there: missing values on
the right first, then the lowest code. Nothing here grows with the number of codes.

O(rows + intervals x members) for a column, and O(alive rows x members) where some are alive.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dtrees.core.data._columns cimport STORED_U16, Column
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport AT_MOST
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport PACKED, Layout
from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._entry_scan cimport LAST, NOTHING, scan
from dtrees.core.search._intervals cimport bound_intervals, least_at_end, lowest_best
from dtrees.core.search._search cimport NONE, Search, add_bin, begin_column, begin_pass, take_best
from dtrees.core.stores.presorted._sorted_entries cimport sort_by_code
from dtrees.core.stores.shared._shared_entries cimport weigh_entries
from dtrees.core.stores.shared._shared_histogram cimport bins_of_member, count_by_cell
from dtrees.core.stores.shared._shared_nodes cimport MOST_SETS, SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef enum:
    PICKED = 4096           # rows that are looked at before there is room for those that are alive


cdef bint has_bounds(const SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil:
    """Whether a column is searched by intervals in a node."""
    return (s.intervals != NULL and s.intervals[number].column.codes != NULL
            and s.store.params.columns[number].n_codes >= s.interval_codes
            and node.n + node.n_some >= s.interval_rows
            and PATH_IS_ON("intervals_of_shared_nodes"))


cdef void bound_columns(SharedStore* s, const SharedNode* node, int64_t first,
                        int64_t step) noexcept nogil:
    """The first pass: bounds of every `step`-th column, of those that have intervals, for all
    active members. `s.best` has the best boundary of all columns so far."""
    cdef int64_t i = first
    cdef int32_t j
    cdef int m
    for m in range(node.n_members):
        s.best[m] = max(s.best[m], s.searches[node.set_of[m]].split.score)
    while i < s.n_dense and not s.store.out_of_memory:
        j = s.dense[i]
        if has_bounds(s, node, j) and not node.constant[i]:
            if s.bounds.lowest > s.bounds.highest:
                find_range(s, node)
            bound_column(s, node, j)
            s.n_bounded += 1
        i += step


cdef void search_intervals(SharedStore* s, const SharedNode* node, const double* best,
                           int64_t first, int64_t step) noexcept nogil:
    """The second pass: those columns that may hold the best boundary of a member.

    best : by member, of the boundaries of all columns that were looked at.
    """
    cdef double floor[MOST_SETS]  # what decides is the same for any division of the columns
    cdef int64_t i = first
    cdef int32_t j
    cdef int m
    for m in range(node.n_members):
        s.best[m] = floor[m] = lowest_best(best[m])
    while i < s.n_dense and not s.store.out_of_memory:
        j = s.dense[i]
        if has_bounds(s, node, j) and not node.constant[i] and reaches(s, node, floor, j):
            if s.bounds.lowest > s.bounds.highest:
                find_range(s, node)
            search_alive(s, node, j)
            s.n_alive += 1
        i += step


# ---------------------------------------------------------------------------------------------
# targets

cdef inline void widen_range(SharedStore* s, uint32_t row) noexcept nogil:
    cdef double target = <double>s.of_row.target[row]
    if s.of_row.weight != NULL:
        if s.of_row.weight[row] == 0:
            return
        target = target / <double>s.of_row.weight[row]
    s.bounds.lowest = min(s.bounds.lowest, target)
    s.bounds.highest = max(s.bounds.highest, target)


cdef void find_range(SharedStore* s, const SharedNode* node) noexcept nogil:
    """The least and the greatest target of the rows of a node, for their weights; where these are
    numbers, their distances from the mean."""
    cdef Bounds* bounds = &s.bounds
    cdef int64_t i
    bounds.lowest = 0
    bounds.highest = 1
    bounds.has_away = False
    bounds.mean = 0
    if s.of_row.value == NULL:
        return
    bounds.lowest = 1e300
    bounds.highest = -1e300
    for i in range(node.n):
        widen_range(s, node.rows[i])
    for i in range(node.n_some):
        widen_range(s, node.some[i])
    measure_away(s, node)


cdef inline int64_t distance(const SharedStore* s, uint32_t row) noexcept nogil:
    """Of the target of a row from the mean, for its weight."""
    cdef int64_t weight = 1 if s.of_row.weight == NULL else s.of_row.weight[row]
    cdef int64_t away = s.of_row.target[row] - s.bounds.mean * weight
    return -away if away < 0 else away


cdef void measure_away(SharedStore* s, const SharedNode* node) noexcept nogil:
    """By row, the distance of its target from the mean of a set, if all of them fit 64 bits."""
    cdef int64_t n = node.n + node.n_some
    cdef double largest = max(1.0, max(abs(s.bounds.lowest), abs(s.bounds.highest)))
    cdef double weight = 0
    cdef int64_t i
    cdef int last = 0
    for i in range(node.n_members):
        weight += <double>node.open[i].totals.weight
        if node.open[i].totals.weight > node.open[last].totals.weight:
            last = <int>i
    if node.open[last].totals.weight <= 0 or weight * largest >= 2.0**60:
        return
    s.bounds.mean = node.open[last].totals.target // node.open[last].totals.weight
    if n > s.n_added:
        s.n_added = n if claim(<void**>&s.added, n * sizeof(int64_t)) else 0
        if s.added == NULL:
            s.store.out_of_memory = True
            return
    for i in range(node.n):
        s.added[i] = distance(s, node.rows[i])
    for i in range(node.n_some):
        s.added[node.n + i] = distance(s, node.some[i])
    s.bounds.has_away = True


cdef void count_away(SharedStore* s, const SharedNode* node, const Column* numbers,
                     int64_t width) noexcept nogil:
    """Distances from the mean, by interval; of all rows, whoever has them."""
    cdef Layout layout
    cdef NodeRows rows
    memset(s.bounds.away, 0, width * sizeof(int64_t))
    memset(&rows, 0, sizeof(NodeRows))
    layout.kind = PACKED  # a number
    rows.n, rows.rows, rows.target = node.n, node.rows, s.added
    count_column(numbers, &rows, &layout, s.bounds.away)
    rows.n, rows.rows, rows.target = node.n_some, node.some, s.added + node.n
    count_column(numbers, &rows, &layout, s.bounds.away)


# ---------------------------------------------------------------------------------------------
# one column

cdef int64_t count_intervals(SharedStore* s, const SharedNode* node,
                             int64_t number) noexcept nogil:
    """Histograms of the intervals of a column; returns how many there are."""
    cdef const Column* column = &s.intervals[number].column
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef int64_t i
    s.rank_of = NULL
    for i in range(width):
        s.code[i] = <uint32_t>i
    s.store.work += node.n + width * node.n_members
    if count_by_cell(s, node, column, width) and s.bounds.has_away:
        count_away(s, node, column, width)
    return width


cdef void bound_column(SharedStore* s, const SharedNode* node, int32_t number) noexcept nogil:
    """The best boundary between intervals, and the highest score that there may be."""
    cdef int64_t width = count_intervals(s, node, number)
    cdef double best, highest
    cdef int64_t i
    cdef int m
    for m in range(node.n_members if not s.store.out_of_memory else 0):
        if not node.active >> m & 1:
            continue
        bound_member(s, node, number, m, width)
        highest = best = NONE
        for i in range(width):
            best = max(best, s.bounds.at_end[i])
            highest = max(highest, max(s.bounds.at_end[i], s.bounds.inside[i]))
        s.best[m] = max(s.best[m], least_at_end(s.searches[node.set_of[m]], &s.bounds, best))
        s.highest[number * s.n_sets + m] = highest


cdef bint reaches(const SharedStore* s, const SharedNode* node, const double* floor,
                  int64_t number) noexcept nogil:
    """Whether a column may have the best boundary of a member."""
    cdef double highest
    cdef int m
    for m in range(node.n_members):
        highest = s.highest[number * s.n_sets + m]
        if node.active >> m & 1 and highest > NONE and highest >= floor[m]:
            return True
    return False


cdef void search_alive(SharedStore* s, const SharedNode* node, int32_t number) noexcept nogil:
    """Search the intervals that may have the best boundary of a member."""
    cdef int64_t width = count_intervals(s, node, number)
    cdef int m
    if s.store.out_of_memory:
        return
    memset(s.alive.of_interval, 0, sizeof(s.alive.of_interval))
    s.alive.members = 0
    for m in range(node.n_members):
        if node.active >> m & 1:
            bound_member(s, node, number, m, width)
            mark_alive(s, m, width)
    scan_alive(s, node, number, width)
    for m in range(node.n_members):
        s.best[m] = max(s.best[m], lowest_best(s.searches[node.set_of[m]].split.score))


cdef void mark_alive(SharedStore* s, int member, int64_t width) noexcept nogil:
    """Intervals with boundaries, inside or at an end, that may be the best of a member."""
    cdef const Bounds* bounds = &s.bounds
    cdef double least = s.best[member] if s.best[member] > NONE else 0.5 * NONE
    cdef uint64_t bit = <uint64_t>1 << member
    cdef int64_t i
    for i in range(width):
        if bounds.inside[i] >= least:
            s.alive.of_interval[i] |= bit
            s.alive.members |= bit
        if bounds.at_end[i] >= least:
            s.alive.of_interval[i] |= bit
            s.alive.members |= bit
            if i + 1 < width:
                s.alive.of_interval[i + 1] |= bit


cdef void bound_member(SharedStore* s, const SharedNode* node, int32_t number, int m,
                       int64_t width) noexcept nogil:
    """Scores and bounds of the intervals of a column, of a member."""
    cdef Search* q = s.searches[node.set_of[m]]
    begin_column(q, number)
    s.bounds.least = lowest_best(s.best[m])
    bins_of_member(s, q, node, m, width)
    bound_intervals(q, s.intervals[number].last, width, &s.bounds)


# ---------------------------------------------------------------------------------------------
# rows of intervals that are alive

cdef void free_alive(SharedStore* s) noexcept nogil:
    free(s.alive.entries)
    free(s.alive.scratch)
    free(s.alive.who)
    free(s.alive.row)
    free(s.alive.own)


cdef void scan_alive(SharedStore* s, const SharedNode* node, int32_t number,
                     int64_t width) noexcept nogil:
    """Search the intervals of a column that are alive for a member, for this member.

    The column is counted by interval, `width` of them, and `s.alive.of_interval` is filled.
    """
    cdef const Column* column = s.store.params.columns + number
    cdef Search* q
    cdef int m
    s.store.work += node.n + node.n_some
    if not gather_alive(s, node, column, <const uint8_t*>s.intervals[number].column.codes):
        s.store.out_of_memory = True
        return
    sort_alive(s, column.n_codes)
    for m in range(node.n_members):
        if not s.alive.members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        take_rows(s, m)
        if not weigh_entries(s, node, s.alive.own, s.alive.n_own, m):
            return
        scan_member(s, q, number, m)
        s.store.work += s.alive.n


cdef inline int64_t pick_alive(const uint8_t* numbers, const uint32_t* rows, int64_t n,
                               const uint64_t* of_interval, uint32_t* picked) noexcept nogil:
    """Which of n rows are in intervals that are alive; without a branch."""
    cdef int64_t found = 0
    cdef int64_t i
    for i in range(n):
        picked[found] = <uint32_t>i
        found += of_interval[numbers[rows[i]]] != 0
    return found


cdef bint gather_alive(SharedStore* s, const SharedNode* node, const Column* column,
                       const uint8_t* numbers) noexcept nogil:
    """The alive rows of a node: code, number, and a bit for each member that has them, in an
    interval that is alive for it. False without memory."""
    s.alive.n = 0
    return (gather(s, column, numbers, node.rows, node.n, node.cell, node.without, NULL)
            and gather(s, column, numbers, node.some, node.n_some, NULL, NULL, node.who))


cdef inline bint gather(SharedStore* s, const Column* column, const uint8_t* numbers,
                        const uint32_t* rows, int64_t n_rows, const uint8_t* cell,
                        const uint64_t* without, const uint64_t* who) noexcept nogil:
    """Those of some rows, which have a cell, or members that have them."""
    cdef uint32_t picked[PICKED]
    cdef int64_t first = 0
    cdef int64_t found, i, k, n
    cdef uint32_t row
    cdef uint64_t mine
    while first < n_rows:
        found = pick_alive(numbers, rows + first, min(PICKED, n_rows - first),
                           s.alive.of_interval, picked)
        if not reserve_alive(s, s.alive.n + found):
            return False
        n = s.alive.n
        for k in range(found):
            i = first + picked[k]
            row = rows[i]
            mine = ~without[cell[i]] if who == NULL else who[i]
            mine &= s.alive.of_interval[numbers[row]]
            s.alive.entries[n] = <uint64_t>code_in(column, row) << 32 | <uint64_t>n
            s.alive.row[n] = row
            s.alive.who[n] = mine
            n += mine != 0
        s.alive.n = n
        first += PICKED
    return True


cdef inline uint32_t code_in(const Column* column, uint32_t row) noexcept nogil:
    """The code of a row in a column that has intervals."""
    if column.storage == STORED_U16:
        return (<const uint16_t*>column.codes)[row]
    return (<const uint32_t*>column.codes)[row]


cdef bint reserve_alive(SharedStore* s, int64_t n) noexcept nogil:
    """Room for so many alive rows, with those that are there; False without memory."""
    cdef int64_t room = n + n // 2 + 64
    if n < s.alive.room:
        return True
    if not (resize(<void**>&s.alive.entries, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.scratch, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.who, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.row, room * sizeof(uint32_t))
            and resize(<void**>&s.alive.own, room * sizeof(uint64_t))):
        return False
    s.alive.room = room
    return True


cdef void sort_alive(SharedStore* s, uint32_t n_codes) noexcept nogil:
    """Sort the alive rows by code; entries get the rows, and `who` the same order."""
    cdef uint64_t* entries = s.alive.entries
    cdef uint64_t* who = s.alive.scratch
    cdef int64_t i
    cdef uint32_t k
    sort_by_code(entries, s.alive.scratch, s.alive.n, n_codes)
    for i in range(s.alive.n):
        k = <uint32_t>entries[i]
        who[i] = s.alive.who[k]
        entries[i] = entries[i] >> 32 << 32 | s.alive.row[k]
    s.alive.scratch = s.alive.who
    s.alive.who = who


cdef void take_rows(SharedStore* s, int member) noexcept nogil:
    """The entries that a member has, in intervals that are alive for it."""
    cdef const uint64_t* entries = s.alive.entries
    cdef const uint64_t* who = s.alive.who
    cdef uint64_t* own = s.alive.own
    cdef int64_t n = 0
    cdef int64_t i
    for i in range(s.alive.n):
        own[n] = entries[i]
        n += who[i] >> member & 1
    s.alive.n_own = n


cdef void scan_member(SharedStore* s, Search* q, int32_t number, int member) noexcept nogil:
    """Offer the boundaries in intervals that are alive for a member; its bins are all intervals."""
    cdef uint64_t* own = s.alive.own
    cdef int64_t first = 1 if q.bins.count > 0 and q.bins.rank[0] == 0 else 0
    cdef int64_t missing
    # Equal or better ones are sought only: a boundary between intervals scores more than this.
    cdef double floor = s.best[member] if s.best[member] > 0 else NONE
    begin_column(q, number)
    q.best = floor
    for missing in range(first + 1):
        begin_pass(q, AT_MOST, missing)
        if missing:
            add_bin(q, 0, 1)
        scan_intervals(s, q, member, first, first == 1 and not missing)
    if q.best > floor and take_best(q, number, first):
        if q.best_at == LAST:
            q.split.boundary = <uint32_t>(own[s.alive.n_own - 1] >> 32)
        else:
            q.split.boundary = <uint32_t>(own[q.best_at - 1] >> 32)
            q.split.beyond = <uint32_t>(own[q.best_at] >> 32)


cdef void scan_intervals(SharedStore* s, Search* q, int member, int64_t first,
                         bint close) noexcept nogil:
    """One pass over the intervals from `first` on; `close`: all of them are a candidate too."""
    cdef const uint32_t* rank = q.bins.rank
    cdef int64_t begin = 0
    cdef int64_t end
    cdef int64_t i = first
    while i < q.bins.count:
        if not s.alive.of_interval[rank[i]] >> member & 1:
            add_bin(q, i, 1)
            i += 1
            continue
        end = begin
        while i < q.bins.count and s.alive.of_interval[rank[i]] >> member & 1:
            end += q.bins.n[i]
            i += 1
        q.side_is_clear = False  # by what is added, or for all that the scan may know
        scan(q, <const uint64_t*>s.alive.own, begin, end,
             LAST if close and i == q.bins.count else NOTHING, False, False, 0)
        begin = end
