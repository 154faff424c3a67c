"""A node of several sets: its search, column by column, and its children.

Codes are counted cell by cell, and a member has the histogram of its rows from these::

    rows of the node          12  13  17  20  ...
    cells of a column      | H0 | H1 | ... | Hk |   a row goes to the histogram of its cell
    all                      H0 + H1 + ... + Hk
    member i               all - what it lacks + what it has of the rows that only some have

Rows that only some members have go to a histogram of each of these. Sums are integers, so nothing
is lost. Neighbouring rows mostly belong to different cells, so an addition seldom waits for the one
before. What all rows of a node add up to is found in the same way, without codes. Members with
tests on one column go on together.

Columns of many codes come last. They are counted by intervals of codes first::

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
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._bits cimport prefetch, trailing_zeros
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, code_t, last_ordered
)
from dtrees.core.data._memory cimport claim, claim_zeros, resize
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, LEAF, RowStatistics, Totals
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport add_words, subtract_words
from dtrees.core.histogram._totals cimport (
    add_to_totals, add_totals, are_alike, clear_totals, weigh_totals
)
from dtrees.core.search._bins cimport bins_of_histogram, search_bins, weigh_bins
from dtrees.core.search._criterion cimport NONE
from dtrees.core.search._entry_scan cimport LAST, NOTHING, scan
from dtrees.core.search._intervals cimport Bounds, bound_intervals, least_at_end, lowest_best
from dtrees.core.search._open_node cimport OpenNode, describe, open_child
from dtrees.core.search._parameters cimport Limits, TrainParameters, may_follow, may_use
from dtrees.core.search._search cimport (
    Boundaries, Search, add_bin, begin_column, begin_pass, borrow_scratch, enlarge, free_bins,
    free_search, is_better, keep_ranks, new_search, take_best
)
from dtrees.core.search._sort cimport sort_by_code
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns
from dtrees.core.stores.shared._shared_entries cimport (
    bins_of_subsets, forget_members, note_members, push_children, read_drawn, reserve_drawn,
    search_entries, share_entries, spread_codes, weigh_entries
)
from dtrees.core.stores.shared._shared_nodes cimport (
    MOST_CELLS, MOST_SETS, Partitioning, SharedNode, SharedStore, class_weights, free_shared,
    mark_codes_left, new_shared, partition_shared
)

cdef enum:
    AHEAD = 8               # columns that are drawn
    PICKED = 4096           # rows that are looked at before there is room for those that are alive

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
            and claim_zeros(<void**>&s.side, s.n_rows + 1)):
        return False
    return (claim(<void**>&s.code, (most_codes + 2) * sizeof(uint32_t))
            and claim(<void**>&s.rank, (most_codes + 2) * sizeof(uint32_t))
            and claim_zeros(<void**>&s.hit, ((most_codes >> 6) + 2) * sizeof(uint64_t))
            and claim(<void**>&s.left_of, (most_codes + 2) * sizeof(uint64_t))
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
    free(s.code)
    free(s.rank)
    free(s.hit)
    free(s.left_of)
    free(s.totals)
    free(s.class_totals)
    free(s.own_highest)
    free(s.alive.entries)
    free(s.alive.scratch)
    free(s.alive.who)
    free(s.alive.row)
    free(s.alive.own)
    free(s.who_of)
    free(s.code_of)
    free(s.side)
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
    s.bounds.lowest = 1  # of targets: above the highest, not known yet
    s.bounds.highest = 0
    for m in range(node.n_members):
        s.best[m] = NONE
    if s.n_dense < params.limits.n_columns:
        note_members(s, node)


# ---------------------------------------------------------------------------------------------
# codes

cdef inline void mark_hits(const SharedNode* node, const code_t* codes,
                           uint64_t* hit) noexcept nogil:
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.n):
        code = codes[node.rows[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)
    for i in range(node.n_some):
        code = codes[node.some[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef int64_t rank_codes(const SharedNode* node, const Column* column, uint64_t* hit,
                        uint32_t* code, uint32_t* rank) noexcept nogil:
    """The codes that occur in a node, ascending, and by code their numbers; returns how many.

    hit : a bit per code, all zero, before and after.
    """
    cdef int64_t n = 0
    cdef int64_t word
    cdef uint64_t bits
    if column.storage == STORED_U8:
        mark_hits(node, <const uint8_t*>column.codes, hit)
    elif column.storage == STORED_U16:
        mark_hits(node, <const uint16_t*>column.codes, hit)
    else:
        mark_hits(node, <const uint32_t*>column.codes, hit)
    for word in range((column.n_codes >> 6) + 1):
        bits = hit[word]
        hit[word] = 0
        while bits != 0:
            code[n] = <uint32_t>((word << 6) + trailing_zeros(bits))
            bits &= bits - 1
            rank[code[n]] = <uint32_t>n
            n += 1
    return n


cdef int64_t number_codes(SharedStore* s, const SharedNode* node,
                          const Column* column) noexcept nogil:
    """The codes that histograms of a column have, ascending in `code`; returns how many.

    All of them, or those that occur, where cells would cost more than the rows.
    """
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef int64_t code
    s.rank_of = NULL
    if width * s.layout.n_words > 2 * (node.n + node.n_some):
        s.rank_of = s.rank
        return rank_codes(node, column, s.hit, s.code, s.rank)
    for code in range(width):
        s.code[code] = <uint32_t>code
    return width


# ---------------------------------------------------------------------------------------------
# histograms

cdef bint reserve_blocks(SharedStore* s, const SharedNode* node, int64_t width) noexcept nogil:
    """Histograms of so many codes, with zeros in those of the cells; False without memory."""
    cdef int n_blocks = node.n_cells + 3 + 2 * node.n_members
    cdef int64_t size = width * s.layout.n_words
    s.size = size
    if n_blocks * size > s.n_scratch:
        s.n_scratch = 0
        if not claim(<void**>&s.histograms, n_blocks * size * sizeof(int64_t)):
            s.store.out_of_memory = True
            return False
        s.n_scratch = n_blocks * size
    memset(s.histograms, 0, (node.n_cells + 3) * size * sizeof(int64_t))
    return True


cdef void combine_cells(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Add the histograms of the cells up, and those that a member lacks; `more` gets zeros."""
    cdef int64_t size = s.size
    cdef int64_t* block = s.histograms + node.n_cells * size
    cdef int c, m, n_lacking
    s.all = block
    for c in range(node.n_cells):
        add_words(block, s.histograms + c * size, size)
    block += size
    s.own = block
    block += size
    for m in range(node.n_members):
        s.lacking[m] = block  # nothing
    block += size
    for m in range(node.n_members):
        n_lacking = 0
        for c in range(node.n_cells):
            if not node.without[c] >> m & 1:
                continue
            n_lacking += 1
            if n_lacking == 1:
                s.lacking[m] = s.histograms + c * size
                continue
            if n_lacking == 2:
                memcpy(block, s.lacking[m], size * sizeof(int64_t))
                s.lacking[m] = block
                block += size
            add_words(block - size, s.histograms + c * size, size)
    s.more = NULL
    if node.n_some > 0:
        memset(block, 0, size * node.n_members * sizeof(int64_t))
        s.more = block


cdef bint count_by_cell(SharedStore* s, const SharedNode* node, const Column* column,
                        int64_t width) noexcept nogil:
    """Histograms of a column, cell by cell, of so many codes; False without memory."""
    cdef NodeRows rows
    if not reserve_blocks(s, node, width):
        return False
    memset(&rows, 0, sizeof(NodeRows))
    rows.n, rows.rows, rows.cell = node.n, node.rows, node.cell
    rows.size, rows.rank = s.size, s.rank_of
    rows.of_row = s.of_row
    count_column(column, &rows, &s.layout, s.histograms)
    combine_cells(s, node)
    if s.more == NULL:
        return True
    rows.n, rows.rows, rows.members = node.n_some, node.some, node.who
    rows.size = s.layout.n_words * node.n_members
    count_column(column, &rows, &s.layout, s.more)
    return True


cdef void bins_of_member(SharedStore* s, Search* q, const SharedNode* node, int member,
                         int64_t width) noexcept nogil:
    """The codes that occur in the rows of a member, as bins of its search."""
    cdef int64_t size = s.size
    cdef int64_t n_words = s.layout.n_words
    cdef int64_t i
    memcpy(s.own, s.all, size * sizeof(int64_t))
    subtract_words(s.own, s.lacking[member], size)
    for i in range(width if s.more != NULL else 0):
        add_words(s.own + i * n_words, s.more + (i * node.n_members + member) * n_words, n_words)
    bins_of_histogram(q, &s.layout, s.own, width, s.code)
    if s.of_class != NULL:
        weigh_bins(q, class_weights(s, node, member))
    s.store.out_of_memory |= q.out_of_memory


# ---------------------------------------------------------------------------------------------
# sums

cdef void sum_cells(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Sum up the rows of each cell, in scratch."""
    cdef int64_t K = s.store.params.criterion.n_classes
    cdef int64_t i
    cdef int c
    memset(s.class_totals, 0, node.n_cells * K * sizeof(int64_t))
    for c in range(node.n_cells):
        clear_totals(&s.totals[c])
    for i in range(node.n):
        c = node.cell[i]
        add_to_totals(s.of_row, &s.store.params.layout, node.rows[i],
                      &s.totals[c], s.class_totals + c * K if K > 0 else NULL)


cdef void sum_members(SharedStore* s, SharedNode* node) noexcept nogil:
    """Sums of each member, of the cells that it does not lack and of what only some have, and
    its description. Those of the cells are in scratch."""
    cdef int64_t K = s.store.params.criterion.n_classes
    cdef int64_t i, k
    cdef int c, m
    cdef uint64_t bits
    cdef OpenNode* open
    for m in range(node.n_members):
        open = &node.open[m]
        clear_totals(&open.totals)
        for c in range(node.n_cells):
            if node.without[c] >> m & 1:
                continue
            add_totals(&open.totals, &s.totals[c])
            for k in range(K):
                open.class_totals[k] += s.class_totals[c * K + k]
    for i in range(node.n_some):
        bits = node.who[i]
        while bits != 0:
            open = &node.open[trailing_zeros(bits)]
            bits &= bits - 1
            add_to_totals(s.of_row, &s.store.params.layout, node.some[i],
                          &open.totals, open.class_totals)
    for m in range(node.n_members if s.of_row.n_outputs > 0 else 0):
        node.open[m].totals.lowest = 0
        node.open[m].totals.highest = has_other_numbers(s.of_row, node, m)
    for m in range(node.n_members):
        if s.of_class != NULL:
            weigh_totals(&node.open[m].totals, node.open[m].class_totals,
                         class_weights(s, node, m), K)
        describe(&node.open[m], &s.params_of[node.set_of[m]])


cdef bint has_other_numbers(const RowStatistics* of_row, const SharedNode* node,
                            int member) noexcept nogil:
    """Several outputs: whether not all rows of a member have the same numbers."""
    cdef int64_t first = -1
    cdef int64_t i
    cdef uint32_t row
    for i in range(node.n + node.n_some if of_row.value != NULL else 0):
        if i < node.n and node.without[node.cell[i]] >> member & 1:
            continue
        if i >= node.n and not node.who[i - node.n] >> member & 1:
            continue
        row = node.rows[i] if i < node.n else node.some[i - node.n]
        if first < 0:
            first = row
        elif not are_alike(of_row, first, row):
            return True
    return False


# ---------------------------------------------------------------------------------------------
# columns of many codes: by interval, then those that are alive code by code

cdef bint has_bounds(const SharedStore* s, const SharedNode* node, int64_t number) noexcept nogil:
    """Tell if a column is searched by intervals in a node."""
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
    count_by_cell(s, node, column, width)
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
    """Tell if a column may have the best boundary of a member."""
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


cdef void scan_alive(SharedStore* s, const SharedNode* node, int32_t number,
                     int64_t width) noexcept nogil:
    """Search the intervals of a column that are alive for a member, for this member.

    The column is counted by interval, `width` of them, and `s.alive.of_interval` is filled.
    """
    cdef const Column* column = s.store.params.columns + number
    cdef const uint8_t* numbers = <const uint8_t*>s.intervals[number].column.codes
    cdef Search* q
    cdef int m
    s.store.work += node.n + node.n_some
    s.alive.n = 0
    if not (gather(s, column, numbers, node.rows, node.n, node.cell, node.without, NULL)
            and gather(s, column, numbers, node.some, node.n_some, NULL, NULL, node.who)):
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
    """Pick those of n rows that are in intervals that are alive; without a branch."""
    cdef int64_t found = 0
    cdef int64_t i
    for i in range(n):
        picked[found] = <uint32_t>i
        found += of_interval[numbers[rows[i]]] != 0
    return found


cdef inline bint gather(SharedStore* s, const Column* column, const uint8_t* numbers,
                        const uint32_t* rows, int64_t n_rows, const uint8_t* cell,
                        const uint64_t* without, const uint64_t* who) noexcept nogil:
    """Append rows in intervals that are alive: code, number, and the members that have them there.

    The rows have a cell each, or members. False without memory.
    """
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
    cdef const TrainParameters* params = s.store.params
    cdef const Column* column = params.columns + number
    cdef int32_t slot = s.slot[number]
    cdef bint varies = False
    cdef int64_t width
    cdef Search* q
    cdef int m
    if column.n_codes == 0 or node.constant[slot] or s.store.out_of_memory:
        return
    width = number_codes(s, node, column)
    s.store.work += node.n + width * node.n_members
    if not count_by_cell(s, node, column, width):
        return
    for m in range(node.n_members):
        if not members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        if q.bins.count < 2:
            continue
        varies = True
        if params.limits.random_splits:
            search_random(q, number, last_ordered(column),
                          params.values + params.first_value[number])
        else:
            search_bins(q, number, last_ordered(column))
        s.store.out_of_memory |= q.out_of_memory
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
    sum_cells(s, left)
    sum_members(s, left)
    sum_cells(s, right)
    sum_members(s, right)
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
    found = partition_shared(node, column, who, p, left, right)
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
