"""The node step where the rows are elsewhere: the histograms of a node are given.

    blocks ──▶ histograms added up ──▶ search, split ──▶ the test ──▶ blocks partition rows

The search is that of every other node, so the split has the same bits as where the rows are in one
place. No row is moved here: the rows and the weight of both children are read from the bins of the
chosen column, and blocks count the rest.

Of sparse columns only those are searched that have a stored cell in the node: the others are
constant. Their histograms are lists (`_node_counts`), to which the cell of the fill code is added
here, once for each node and column: it is what the node has beyond the stored cells of all blocks.
Columns of so few stored cells that they cannot beat the split that was found are passed over, as
where entries are searched (`_entry_scan`).

Columns of many codes are counted by intervals of codes first. Then the store tells which of these
may hold a better boundary than all other columns, and searches once more when it
is given their codes: one column, rarely two, whose other intervals are bins as they are.

Blocks count rows, the same for all training sets. Class weights of a set multiply the bins when
they are read.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport MOST_INTERVALS, STORED_SPARSE, Column, last_ordered
from dtrees.core.data._structs cimport LEAF
from dtrees.core.histogram._layout cimport CLASSES, COUNT, CellKind, Layout, add_words
from dtrees.core.search._bins cimport (
    append_bin, bins_of_histogram, drop_bin, read_bin, reserve_bins, rest_to_bin, search_bins,
    weigh_bins
)
from dtrees.core.search._criterion cimport NONE
from dtrees.core.search._entry_scan cimport pass_over_short
from dtrees.core.search._intervals cimport Bounds, bound_intervals, least_at_end, lowest_best
from dtrees.core.search._open_node cimport OpenNode, open_children
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._search cimport Search, begin_column
from dtrees.core.stores._partition cimport goes_left
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.blocks._node_counts cimport LISTED, cells_of, last_code, stretch_of
from dtrees.core.stores.sampled._random_split cimport search_random

cdef enum:
    BEFORE = 1              # rank of the bin of what is before a stretch,
    FIRST = 2               # and of its first interval; rank 0 is missing

cpdef enum:
    STRETCH = 252           # intervals that are looked at together, `MOST_INTERVALS` less three


cdef HistogramStore histogram_store(const TrainParameters* params, const Layout* layout,
                                    Search* q) noexcept nogil:
    """A store without histograms."""
    cdef HistogramStore s
    memset(&s, 0, sizeof(HistogramStore))
    s.store.params = params
    s.layout = layout
    s.store.search = q
    s.store.codes.same = True
    s.store.search_node = search_node
    s.store.choose = choose
    s.store.partition = partition
    return s


cdef inline uint8_t way_of(const HistogramStore* s, int32_t column) noexcept nogil:
    return 0 if s.ways == NULL else s.ways[column]


cdef inline int64_t sent_of(const HistogramStore* s, int32_t column) noexcept nogil:
    """Words of a histogram, by code or by interval."""
    return cells_of(s.store.params.columns + column, way_of(s, column)) * s.layout.n_words


cdef void search_node(Store* store, Member* member) noexcept nogil:
    cdef HistogramStore* s = <HistogramStore*>store
    cdef const int64_t* histogram = s.histogram
    cdef Search* q = store.search
    cdef int64_t i = 0
    cdef int64_t k
    if s.one_by_one != NULL:
        search_one_by_one(s)
        return
    for k in range(s.n_columns):
        if way_of(s, s.columns[k]) == 0:
            search_dense(s, histogram, s.columns[k])
        histogram += sent_of(s, s.columns[k])
    k = 0
    while i < s.listed.n:
        k = stretch_of(s.first, k, store.params.limits.n_columns, s.listed.place[i])
        if (q.too_short > 1 and store.params.columns[k].storage == STORED_SPARSE
                and stored_rows(s, s.first[k + 1], i) < q.too_short):
            while i < s.listed.n and s.listed.place[i] < s.first[k + 1]:
                i += 1
            continue
        i = listed_bins(s, <int32_t>k, i)
        search_column(store, <int32_t>k)
        if q.split.column == k:
            pass_over_short(q)


cdef void search_one_by_one(HistogramStore* s) noexcept nogil:
    """Search columns in their order, until one can be split."""
    cdef const int64_t* histogram = s.histogram
    cdef int64_t i
    cdef int32_t j
    for i in range(s.n_one_by_one):
        j = s.one_by_one[i]
        if way_of(s, j) == LISTED:
            listed_bins(s, j, first_place(s, &s.listed, j))
            search_column(&s.store, j)
        else:
            search_dense(s, histogram, j)
            histogram += sent_of(s, j)
        if s.store.search.split.test != LEAF:
            return


cdef void search_dense(HistogramStore* s, const int64_t* histogram, int32_t j) noexcept nogil:
    cdef const Search* q = s.store.search
    bins_of(s, histogram, j)
    search_column(&s.store, j)
    if q.split.test != LEAF and q.split.column == j:
        s.chosen = histogram


cdef void search_column(Store* store, int32_t j) noexcept nogil:
    """Search a column that is given as bins."""
    cdef const TrainParameters* params = store.params
    cdef Search* q = store.search
    if q.bins.count <= 1 or not may_use(&params.limits, q.sets, j):
        return
    if params.limits.random_splits:
        search_random(q, j, last_ordered(params.columns + j),
                      params.values + params.first_value[j])
    else:
        search_bins(q, j, last_ordered(params.columns + j))


cdef void bins_of(HistogramStore* s, const int64_t* histogram, int32_t column) noexcept nogil:
    bins_of_histogram(s.store.search, s.layout, histogram,
                      s.store.params.columns[column].n_codes + <int64_t>1, NULL)
    weigh(s)


cdef inline void weigh(HistogramStore* s) noexcept nogil:
    """Multiply bins of rows by the class weights of the set."""
    if s.of_class != NULL:
        weigh_bins(s.store.search, s.of_class)


cdef int64_t first_place(const HistogramStore* s, const Places* places,
                         int32_t column) noexcept nogil:
    """Index of the first place of a column, or of what is behind it."""
    cdef int64_t low = 0
    cdef int64_t high = places.n
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if places.place[middle] < s.first[column]:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t stored_rows(const HistogramStore* s, int64_t last, int64_t i) noexcept nogil:
    """Rows of the stored cells from a place on and before another one; they have no weights."""
    cdef CellKind kind = s.layout.kind
    cdef int64_t n = 0
    while i < s.listed.n and s.listed.place[i] < last:
        if kind == COUNT:
            n += s.listed.value[i] >> 32
        elif kind == CLASSES or s.listed.place[i] % 2 == 0:  # in cells of two words, the first one
            n += s.listed.value[i]
        i += 1
    return n


cdef int64_t read_place(HistogramStore* s, const Places* places, int32_t column,
                        int64_t i) noexcept nogil:
    """Make the cell at a place the last bin; returns the index of the first place behind it."""
    cdef Search* q = s.store.search
    cdef int64_t n_words = s.layout.n_words
    cdef int64_t code = (places.place[i] - s.first[column]) // n_words
    cdef int64_t end = s.first[column] + (code + 1) * n_words
    memset(s.cell, 0, n_words * sizeof(int64_t))
    while i < places.n and places.place[i] < end:
        s.cell[n_words - (end - places.place[i])] = places.value[i]
        i += 1
    if reserve_bins(q, q.bins.count + 1):
        q.bins.count += read_bin(q, s.cell, s.layout.kind, <uint32_t>code, q.bins.count)
    return i


cdef int64_t read_places(HistogramStore* s, const Places* places, int32_t column, int64_t i,
                         int64_t end) noexcept nogil:
    """Make the cells at the places before another one bins; returns the index of that."""
    cdef Search* q = s.store.search
    cdef int64_t k = i
    if s.layout.kind != COUNT:
        while k < places.n and places.place[k] < end:
            k = read_place(s, places, column, k)
        return k
    while k < places.n and places.place[k] < end:
        k += 1
    if reserve_bins(q, q.bins.count + k - i):  # each place is a cell
        for i in range(i, k):
            q.bins.count += read_bin(q, places.value + i, COUNT,
                                     <uint32_t>(places.place[i] - s.first[column]), q.bins.count)
    return k


cdef int64_t listed_bins(HistogramStore* s, int32_t column, int64_t i) noexcept nogil:
    """Make the places of a column bins; of a sparse one, what the node has beyond them is its fill.

    i : index of the first place. Returns that of the first one behind the column. Without memory
    there are no bins, which the search notes.
    """
    cdef const TrainParameters* params = s.store.params
    cdef Search* q = s.store.search
    cdef bint has_fill = params.columns[column].storage == STORED_SPARSE
    cdef int64_t of_fill = -1
    q.bins.count = 0
    while i < s.listed.n and s.listed.place[i] < s.first[column + 1]:
        if has_fill and of_fill < 0 and (s.listed.place[i] - s.first[column]) // (
                s.layout.n_words) > params.columns[column].fill:
            of_fill = append_bin(q, params.columns[column].fill, -1)
        i = read_place(s, &s.listed, column, i)
    if has_fill and of_fill < 0:
        of_fill = append_bin(q, params.columns[column].fill, -1)
    if q.out_of_memory:
        q.bins.count = 0
        return i
    weigh(s)
    if has_fill:
        rest_to_bin(q, of_fill)
        if q.bins.n[of_fill] == 0:
            drop_bin(q, of_fill)
    return i


# ---------------------------------------------------------------------------------------------
# bounds of intervals
#
# They are those of shared nodes (`search._intervals`), for any number of intervals: a stretch of
# them at a time, between two bins of all that is before and behind it.
#
#     intervals     0 | 1 2 3 4 5 6 7 8 9 ... 4,096
#     bins          0 | (1 ... 500)  501 502 ... 750  (751 ... 4,096)
#
# An interval is alive if a boundary inside of it may be the best one, or if it is next to a
# boundary that may be. Codes are asked for of these only.

cdef struct Stretch:
    # Some intervals of a column that is counted by interval.
    const int64_t* cells    # of all intervals, with that of missing values
    int64_t count
    uint32_t n_codes
    uint8_t way             # `_node_counts`
    int64_t first           # interval,
    int64_t end             # and the one behind the last
    int64_t* before         # sums of the intervals before it, missing values not among them,
    int64_t* behind         # and of those behind it
    uint32_t last[MOST_INTERVALS + 1]   # code of each rank


cdef void begin_stretches(HistogramStore* s, int32_t column, const int64_t* cells,
                          Stretch* stretch) noexcept nogil:
    """Begin in front of the first interval of a column."""
    cdef int64_t words = s.layout.n_words
    cdef int64_t i
    stretch.cells = cells
    stretch.n_codes = s.store.params.columns[column].n_codes
    stretch.way = way_of(s, column)
    stretch.count = cells_of(s.store.params.columns + column, stretch.way)
    stretch.first = stretch.end = 1
    stretch.before = s.cell
    stretch.behind = s.cell + words
    memset(s.cell, 0, 2 * words * sizeof(int64_t))
    for i in range(1, stretch.count):
        add_words(stretch.behind, cells + i * words, words)


cdef bint next_stretch(HistogramStore* s, Stretch* stretch) noexcept nogil:
    """Make the next stretch the bins of the search; False: there is none, or no memory."""
    cdef Search* q = s.store.search
    cdef CellKind kind = s.layout.kind
    cdef int64_t words = s.layout.n_words
    cdef const int64_t* cells = stretch.cells
    cdef int64_t g = 0
    cdef int64_t i
    for i in range(stretch.first, stretch.end):
        add_words(stretch.before, cells + i * words, words)
    stretch.first = stretch.end
    if stretch.first >= stretch.count or not reserve_bins(q, MOST_INTERVALS + 1):
        return False
    stretch.end = min(stretch.first + STRETCH, stretch.count)
    for i in range(stretch.first * words, stretch.end * words):
        stretch.behind[i % words] -= cells[i]
    g += read_bin(q, cells, kind, 0, g)
    g += read_bin(q, stretch.before, kind, BEFORE, g)
    stretch.last[0] = 0
    stretch.last[BEFORE] = last_code(stretch.first - 1, stretch.way, stretch.n_codes)
    for i in range(stretch.first, stretch.end):
        g += read_bin(q, cells + i * words, kind, <uint32_t>(FIRST + i - stretch.first), g)
        stretch.last[FIRST + i - stretch.first] = last_code(i, stretch.way, stretch.n_codes)
    i = FIRST + stretch.end - stretch.first
    stretch.last[i] = stretch.n_codes
    g += read_bin(q, stretch.behind, kind, <uint32_t>i, g)
    q.bins.count = g
    weigh(s)
    return True


cdef double bound_column(HistogramStore* s, int32_t column, const int64_t* cells,
                         uint64_t* alive) noexcept nogil:
    """The highest score that a boundary of a column may have, `NONE` where there is none.

    `s.best` gets the best boundary between intervals. alive : NULL, or zeros, a bit for each
    interval; those that may hold a boundary as good as `s.best` are marked, and it stays.
    """
    cdef Search* q = s.store.search
    cdef double highest = NONE
    cdef bint next_one = False      # the next interval that occurs is beside such a boundary
    cdef bint at_end
    cdef Bounds bounds
    cdef Stretch stretch
    cdef uint32_t rank
    cdef int64_t i, interval
    bounds.lowest, bounds.highest = s.lowest, s.highest
    bounds.least = 2 * NONE
    begin_column(q, column)
    begin_stretches(s, column, cells, &stretch)
    while next_stretch(s, &stretch):
        if q.bins.count > 0:
            bound_intervals(q, &stretch.last[0], <int64_t>q.bins.rank[q.bins.count - 1] + 1,
                            &bounds)
        for i in range(q.bins.count):
            rank = q.bins.rank[i]
            if not FIRST <= rank < FIRST + stretch.end - stretch.first:
                continue
            if alive == NULL:
                s.best = max(s.best, least_at_end(q, &bounds, bounds.at_end[rank]))
                highest = max(highest, max(bounds.at_end[rank], bounds.inside[rank]))
                continue
            interval = stretch.first + rank - FIRST
            at_end = bounds.at_end[rank] > NONE and bounds.at_end[rank] >= s.best
            if next_one or at_end or bounds.inside[rank] > NONE and bounds.inside[rank] >= s.best:
                alive[interval >> 6] |= <uint64_t>1 << (interval & 63)
            next_one = at_end
    return highest


# ---------------------------------------------------------------------------------------------
# intervals, and their codes

cdef bint bound_intervals_of(HistogramStore* s) noexcept nogil:
    """Bound what columns by interval may score, as `reach`; True if one of them may be the best."""
    cdef const int64_t* histogram = s.histogram
    cdef double highest = NONE
    cdef int32_t column
    cdef int64_t k
    s.best = s.store.search.split.score
    for k in range(s.n_columns):
        s.reach[k] = NONE
        column = s.columns[k]
        if way_of(s, column) > 0 and may_use(&s.store.params.limits, s.store.search.sets, column):
            s.reach[k] = bound_column(s, column, histogram, NULL)
            highest = max(highest, s.reach[k])
        histogram += sent_of(s, column)
    s.best = lowest_best(s.best)
    return highest > NONE and highest >= s.best


cdef int64_t words_of_alive(const HistogramStore* s, int64_t k) noexcept nogil:
    """Words of the bits of the intervals of column k."""
    return cells_of(s.store.params.columns + s.columns[k], way_of(s, s.columns[k])) // 64 + 1


cdef void mark_intervals_of(HistogramStore* s, int64_t k, uint64_t* alive) noexcept nogil:
    """Mark the intervals of column k whose codes are needed. alive : zeros."""
    bound_column(s, s.columns[k], histogram_of(s, s.columns[k]), alive)


cdef const int64_t* histogram_of(const HistogramStore* s, int32_t column) noexcept nogil:
    cdef const int64_t* histogram = s.histogram
    cdef int64_t k = 0
    while s.columns[k] != column:
        histogram += sent_of(s, s.columns[k])
        k += 1
    return histogram


cdef void search_again(HistogramStore* s) noexcept nogil:
    """Search the columns whose codes have come."""
    cdef int64_t k
    for k in range(s.n_again):
        bins_of_alive(s, s.again + k)
        search_column(&s.store, s.again[k].column)


cdef void bins_of_alive(HistogramStore* s, const AliveColumn* own) noexcept nogil:
    """The codes of intervals that are alive, and each of the others as one bin."""
    cdef Search* q = s.store.search
    cdef int64_t words = s.layout.n_words
    cdef uint8_t way = way_of(s, own.column)
    cdef const int64_t* cells = histogram_of(s, own.column)
    cdef const Column* column = s.store.params.columns + own.column
    cdef int64_t i = first_place(s, &s.codes, own.column)
    cdef int64_t c, end
    cdef uint32_t last
    q.bins.count = 0
    for c in range(cells_of(column, way)):
        last = last_code(c, way, column.n_codes)
        if own.alive[c >> 6] >> (c & 63) & 1:
            end = s.first[own.column] + (last + <int64_t>1) * words
            i = read_places(s, &s.codes, own.column, i, end)
        elif reserve_bins(q, q.bins.count + 1):
            q.bins.count += read_bin(q, cells + c * words, s.layout.kind, last, q.bins.count)
    if q.out_of_memory:
        q.bins.count = 0
    weigh(s)


# ---------------------------------------------------------------------------------------------
# the split

cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef HistogramStore* s = <HistogramStore*>store
    cdef int32_t column = store.search.split.column
    store.last_ordered = last_ordered(store.params.columns + column)
    cdef int64_t k = 0
    if way_of(s, column) == LISTED:
        listed_bins(s, column, first_place(s, &s.listed, column))
    elif way_of(s, column) == 0:
        bins_of(s, s.chosen, column)
    else:
        while s.again[k].column != column:
            k += 1
        bins_of_alive(s, s.again + k)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef const Search* q = store.search
    cdef OpenNode* left = member.left
    cdef OpenNode* right = member.right
    cdef int64_t n = 0, weight = 0, target = 0
    cdef int64_t one = q.n_columns_of_target > 1    # the class whose share is the value
    cdef int64_t g
    for g in range(q.bins.count):
        if goes_left(&member.route, q.bins.rank[g]):
            n += q.bins.n[g]
            weight += q.bins.weight[g]
            target += q.bins.target[g * q.n_columns_of_target + one]
    store.out_of_memory = not open_children(member.node, n, store.params.layout.n_classes, left,
                                            right)
    left.totals.weight, left.totals.target = weight, target
    right.totals.weight = member.node.totals.weight - weight
    right.totals.target = member.node.totals.target - target
    if store.params.layout.n_classes > 1 and not store.out_of_memory:
        left.class_totals[1] = target
        right.class_totals[1] = member.node.class_totals[1] - target
