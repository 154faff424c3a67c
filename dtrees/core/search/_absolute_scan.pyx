"""Scans of boundaries by absolute errors about the medians of both sides.

    score     absolute errors of the node, less those of the left and of the right side

Rows are moved to the side by `Search`, as for other criteria, and by their places. A pass over
entries, or over bins in an order, moves all of them first, and is told the errors of all boundaries
at once (`_absolute_errors`). A boundary that stands alone takes a walk of its own.

The values of the sides are their medians, as scikit-learn has them: where just half of the weight
is up to a row, the middle between this and the next one. Both have the same errors.
"""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, entry_t
from dtrees.core.histogram._totals cimport Median, pass_row
from dtrees.core.search._absolute_errors cimport (
    AbsoluteErrors, begin_places, reserve_places, tell_sides
)
from dtrees.core.search._search cimport (
    Bins, Keyed, Search, add_bin, is_bound, offer, permitted, score_of_medians
)
from dtrees.core.search._sort cimport merge_sort


cdef void place_rows(Search* q, const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                     int64_t n_rows) noexcept nogil:
    """Take the rows of a node, in the order of y. n_rows : their numbers are below."""
    cdef AbsoluteErrors* e = q.errors
    cdef int64_t i, row
    if not reserve_places(e, n, n_rows):
        q.out_of_memory = True
        return
    for i in range(n):
        row = rows[i]
        e.place[row] = <uint32_t>(i + 1)
        e.y[i + 1] = of_row.value[row]
        e.wy[i + 1] = of_row.target[row]
    for i in range(n):
        e.w[i + 1] = of_row.weight[rows[i]] if e.weighted else 1
    begin_places(e)


cdef void place_bins(Search* q, const entry_t* entries,
                     const PresortedFeature* feature) noexcept nogil:
    """The places of each bin of a feature, ascending, and where they begin."""
    cdef AbsoluteErrors* e = q.errors
    cdef const Bins* bins = q.bins
    cdef const entry_t* at = entries + feature.offset
    cdef int64_t end = 0
    cdef int64_t fill = -1
    cdef int64_t g, i
    e.count = 0
    move_entries(e, at, feature.length, 1)
    for g in range(bins.count):
        bins.target[g] = end
        if bins.row[g] < 0:
            fill = g
        else:
            for i in range(bins.n[g]):
                e.of_bins[end + i] = e.moved[end + i]
            merge_sort(e.of_bins + end, e.scratch, bins.n[g])
            end += bins.n[g]
    if fill >= 0:
        bins.target[fill] = end
        memset(e.of_side, 0, (e.n + 1) * sizeof(int64_t))
        for i in range(end):
            e.of_side[e.of_bins[i]] = 1
        for i in range(1, e.n + 1):
            if e.of_side[i] == 0:
                e.of_bins[end] = i
                end += 1
    e.count = 0


cdef void median_of_bin(const Search* q, int64_t g, Median* m) noexcept nogil:
    cdef const AbsoluteErrors* e = q.errors
    cdef int64_t i, p
    memset(m, 0, sizeof(Median))
    m.weight = q.bins.weight[g]
    for i in range(q.bins.n[g]):
        p = e.of_bins[q.bins.target[g] + i]
        pass_row(m, e.y[p], e.w[p], e.wy[p])


cdef void scan_absolute(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                        bint closes, int64_t close, bint down) noexcept nogil:
    """Offer the boundaries between entries, and if it `closes` the one behind them, named `close`.
    """
    cdef AbsoluteErrors* e = q.errors
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef int64_t m = end - begin
    cdef const entry_t* at = entries + (end - 1 if down else begin)
    cdef int64_t step = -1 if down else 1
    cdef const uint32_t* moved = e.moved + e.count
    cdef const int64_t* of_side = e.of_side + e.count
    cdef const int64_t* of_rest = e.of_rest + e.count
    cdef int64_t before = e.count
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t whole = <int64_t>q.totals.moment
    cdef double reach = max(q.best, q.split.score)  # others are not the best of the node
    cdef int64_t last = m if closes else m - 1
    cdef int64_t i
    move_entries(e, at, m, step)
    tell_sides(e, is_bound(q))
    for i in range(1, last + 1):
        if e.weighted:
            w += e.w[moved[i - 1]]
        if <double>(whole - of_side[i] - of_rest[i]) < reach:
            continue
        if i < m and at[(i - 1) * step] >> shift == at[i * step] >> shift:
            continue
        q.n = n + i
        q.w = w if e.weighted else w + i
        if permitted(q) and offer(q, score_of_medians(q, before + i, down),
                                  close if i == m else end - i if down else begin + i, down):
            reach = q.best
    q.n = n + m
    q.w = w if e.weighted else w + m


cdef inline void move_entries(AbsoluteErrors* e, const entry_t* at, int64_t m,
                              int64_t step) noexcept nogil:
    """Move the rows of m entries to the side; one is `step` behind the other."""
    cdef entry_t mask = (<entry_t>1 << 4 * sizeof(entry_t)) - 1
    cdef uint32_t* moved = e.moved + e.count
    cdef const uint32_t* place = e.place
    cdef int64_t i
    if e.has_place:
        for i in range(m):
            moved[i] = place[at[i * step] & mask]
    else:
        for i in range(m):
            moved[i] = <uint32_t>((at[i * step] & mask) + 1)
    e.count += m


cdef int64_t scan_absolute_bins(Search* q, const Keyed* order, int64_t first, int64_t end,
                                bint down) noexcept nogil:
    """Offer the boundaries behind the bins first..end.

    order : of the bins; NULL: by number. down : the side is the right one. Returns the bins before
    the best boundary, 0 where there was a better one before.
    """
    cdef AbsoluteErrors* e = q.errors
    cdef const Bins* g = q.bins
    cdef int64_t count = e.count
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t best = 0
    cdef int64_t i, b
    for i in range(first, end):
        add_bin(q, i if order == NULL else order[i].bin, 1)
    tell_sides(e, is_bound(q))
    q.n = n
    q.w = w
    for i in range(first, end):
        b = i if order == NULL else order[i].bin
        q.n += g.n[b]
        q.w += g.weight[b]
        count += g.n[b]
        if permitted(q) and offer(q, score_of_medians(q, count, down), i, False):
            best = i + 1
    return best
