"""Which intervals of a column may hold the best boundary of a node.

Bounds are those of shared nodes (`search._intervals`), for any number of intervals: a stretch of
them at a time, between two bins of all that is before and behind it::

    intervals     0 | 1 2 3 4 5 6 7 8 9 ... 4,096
    bins          0 | (1 ... 500)  501 502 ... 750  (751 ... 4,096)

An interval is alive if a boundary inside of it may be the best one, or if it is next to a boundary
that may be. Codes are asked for of these only.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.histogram._layout cimport add_words
from dtrees.core.search._bins cimport read_bin, reserve_bins, weigh_bins
from dtrees.core.search._intervals cimport bound_intervals, least_at_end
from dtrees.core.search._search cimport NONE
from dtrees.core.stores.blocks._code_ways cimport last_code

cdef enum:
    BEFORE = 1              # rank of the bin of what is before a stretch,
    FIRST = 2               # and of its first interval; rank 0 is missing

cpdef enum:
    STRETCH = 252           # intervals that are looked at together, `MOST_INTERVALS` less three


cdef struct Stretch:
    int64_t first           # interval,
    int64_t end             # and the one behind the last
    int64_t* before         # sums of the intervals before it, missing values not among them,
    int64_t* behind         # and of those behind it
    uint32_t last[MOST_INTERVALS + 1]   # code of each rank


cdef bint next_stretch(Search* q, const Layout* layout, const IntervalCells* column,
                       Stretch* stretch) noexcept nogil:
    """Make the next stretch the bins of the search; False: there is none, or no memory."""
    cdef int64_t words = layout.n_words
    cdef const int64_t* cells = column.cells
    cdef int64_t g = 0
    cdef int64_t i
    for i in range(stretch.first, stretch.end):
        add_words(stretch.before, cells + i * words, words)
    stretch.first = stretch.end
    if stretch.first >= column.count or not reserve_bins(q, MOST_INTERVALS + 1):
        return False
    stretch.end = min(stretch.first + STRETCH, column.count)
    for i in range(stretch.first * words, stretch.end * words):
        stretch.behind[i % words] -= cells[i]
    g += read_bin(q, cells, layout.kind, 0, g)
    g += read_bin(q, stretch.before, layout.kind, BEFORE, g)
    stretch.last[0] = 0
    stretch.last[BEFORE] = last_code(stretch.first - 1, column.way, column.n_codes)
    for i in range(stretch.first, stretch.end):
        g += read_bin(q, cells + i * words, layout.kind, <uint32_t>(FIRST + i - stretch.first), g)
        stretch.last[FIRST + i - stretch.first] = last_code(i, column.way, column.n_codes)
    i = FIRST + stretch.end - stretch.first
    stretch.last[i] = column.n_codes
    g += read_bin(q, stretch.behind, layout.kind, <uint32_t>i, g)
    q.bins.count = g
    if column.of_class != NULL:
        weigh_bins(q, column.of_class)
    return True


cdef void begin_stretches(const Layout* layout, const IntervalCells* column, int64_t* scratch,
                          Stretch* stretch) noexcept nogil:
    """scratch : two cells."""
    cdef int64_t words = layout.n_words
    cdef int64_t i
    memset(scratch, 0, 2 * words * sizeof(int64_t))
    for i in range(1, column.count):
        add_words(scratch + words, column.cells + i * words, words)
    stretch.first = 1
    stretch.end = 1
    stretch.before = scratch
    stretch.behind = scratch + words


cdef inline bint is_inside(const Stretch* stretch, uint32_t rank) noexcept nogil:
    return FIRST <= rank < FIRST + stretch.end - stretch.first


cdef double bound_cells(Search* q, const Layout* layout, const IntervalCells* column,
                        int64_t* scratch, Bounds* bounds, double* best) noexcept nogil:
    """The highest score that a boundary of the column may have, `NONE` where there is none.

    best : IN, OUT, of boundaries between intervals. scratch : two cells.
    """
    cdef double highest = NONE
    cdef Stretch stretch
    cdef uint32_t rank
    cdef int64_t i
    begin_stretches(layout, column, scratch, &stretch)
    while next_stretch(q, layout, column, &stretch):
        bound_intervals(q, &stretch.last[0], bounds)
        for i in range(q.bins.count):
            rank = q.bins.rank[i]
            if is_inside(&stretch, rank):
                best[0] = max(best[0], least_at_end(q, bounds, bounds.at_end[rank]))
                highest = max(highest, max(bounds.at_end[rank], bounds.inside[rank]))
    return highest


cdef void mark_cells(Search* q, const Layout* layout, const IntervalCells* column,
                     int64_t* scratch, Bounds* bounds, double best,
                     uint64_t* alive) noexcept nogil:
    """Mark the intervals that may hold a boundary as good as the best one, a bit each.

    alive : uint64 (count // 64 + 1,), zeros at the beginning.
    """
    cdef bint next_one = False      # the next interval that occurs is beside such a boundary
    cdef bint at_end
    cdef Stretch stretch
    cdef uint32_t rank
    cdef int64_t i, interval
    begin_stretches(layout, column, scratch, &stretch)
    while next_stretch(q, layout, column, &stretch):
        bound_intervals(q, &stretch.last[0], bounds)
        for i in range(q.bins.count):
            rank = q.bins.rank[i]
            if not is_inside(&stretch, rank):
                continue
            interval = stretch.first + rank - FIRST
            at_end = bounds.at_end[rank] > NONE and bounds.at_end[rank] >= best
            if next_one or at_end or bounds.inside[rank] > NONE and bounds.inside[rank] >= best:
                alive[interval >> 6] |= <uint64_t>1 << (interval & 63)
            next_one = at_end
