"""Columns of many codes in a shared node: by intervals, then those that are alive code by code.

    255 intervals    | . . . . . . . . . . . |      histograms of all columns, by cell
    bounds             3 4 4 5 7 9 8 6 5 4 3        of each member; the best boundary scores 8
    alive                      7 9 8                those that reach it, and their neighbours
    codes                      456789               of these, for the members that need them

The second pass (`_alive_scan`) is only of columns that have an interval that is alive. A boundary
that wins lies between two codes of intervals that are alive, so that the split is that of the exact
search.

O(rows + intervals x members) for a column.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport Column
from dtrees.core.data._memory cimport claim
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.histogram._layout cimport COUNT, PACKED, SUM, WEIGHTED_SUM, CellKind, decode
from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._intervals cimport (
    bound_classes, bound_sums, least_at_end, lowest_best
)
from dtrees.core.search._search cimport NONE, Search, begin_column, by_class
from dtrees.core.stores.shared._alive_scan cimport scan_alive
from dtrees.core.stores.shared._shared_histogram cimport bins_of_member, count_by_cell
from dtrees.core.stores.shared._shared_nodes cimport MOST_SETS, SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore, class_weights


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


cdef void count_away(SharedStore* s, const SharedNode* node, const uint8_t* numbers,
                     int64_t width) noexcept nogil:
    """Distances from the mean, by interval; of all rows, whoever has them."""
    cdef int64_t* away = s.bounds.away
    cdef int64_t i
    memset(away, 0, width * sizeof(int64_t))
    for i in range(node.n):
        away[numbers[node.rows[i]]] += s.added[i]
    for i in range(node.n_some):
        away[numbers[node.some[i]]] += s.added[node.n + i]


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
        count_away(s, node, <const uint8_t*>column.codes, width)
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


# ---------------------------------------------------------------------------------------------
# one member

cdef void bound_member(SharedStore* s, const SharedNode* node, int32_t number, int m,
                       int64_t width) noexcept nogil:
    cdef Search* q = s.searches[node.set_of[m]]
    begin_column(q, number)
    s.bounds.least = lowest_best(s.best[m])
    if by_class(q):
        bins_of_member(s, q, node, m, width)
        bound_classes(q, s.intervals[number].last, width, &s.bounds)
        return
    if s.layout.kind == PACKED:
        sum_up(s, node, m, width, PACKED, 1)
    elif s.layout.kind == COUNT:
        sum_up(s, node, m, width, COUNT, 1)
    elif s.layout.kind == SUM:
        sum_up(s, node, m, width, SUM, 2)
    else:
        sum_up(s, node, m, width, WEIGHTED_SUM, 3)
    bound_sums(q, s.intervals[number].last, width, &s.bounds)


cdef inline void sum_up(SharedStore* s, const SharedNode* node, int m, int64_t width,
                        CellKind kind, int64_t n_words) noexcept nogil:
    """Sums of a member up to each interval; `kind` and `n_words` are constants where it is called.
    """
    cdef Bounds* bounds = &s.bounds
    cdef const int64_t* all = s.all
    cdef const int64_t* lacking = s.lacking[m]
    cdef const int64_t* more = s.more
    cdef const int64_t* of_class = NULL
    cdef int64_t[3] sums
    cdef int64_t i, k, weight
    if s.of_class != NULL:
        of_class = class_weights(s, node, m)
    if more != NULL:
        more += m * s.size
    sums[0] = sums[1] = sums[2] = 0
    bounds.n[0] = bounds.weight[0] = bounds.target[0] = 0
    for i in range(width):
        for k in range(n_words):
            sums[k] += all[i * n_words + k] - lacking[i * n_words + k]
            if more != NULL:
                sums[k] += more[i * n_words + k]
        bounds.n[i + 1] = decode(sums, kind, 2, &bounds.weight[i + 1], &bounds.target[i + 1])
    for i in range(1, width + 1 if s.of_class != NULL else 0):
        weight = of_class[0] * (bounds.weight[i] - bounds.target[i])
        bounds.target[i] *= of_class[1]
        bounds.weight[i] = weight + bounds.target[i]
