"""Scans of entries by absolute errors about the medians of both sides.

    score     absolute errors of the node, less those of the left and of the right side

The values of the sides are their medians, as scikit-learn has them: where just half of the weight
is up to a row, the middle between this and the next one. Both have the same errors.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, entry_t
from dtrees.core.histogram._totals cimport Median, pass_row
from dtrees.core.search._absolute_errors cimport (
    FEW_PLACES, AbsoluteErrors, begin_places, flip, put_place, reserve_places,
    step, step_by_weight
)
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport (
    Bins, Search, add_row, consider, offer, permitted, score_of_medians
)


cdef void place_rows(Search* q, const RowStatistics* of_row, const uint32_t* rows,
                     const OpenNode* node, int64_t n_rows) noexcept nogil:
    """Take the rows of a node, in the order of y, or of each output by its orders.

    n_rows : their numbers are below; 0: entries have their places in the node instead
    """
    cdef AbsoluteErrors* e = q.errors
    cdef int64_t n = node.totals.n
    cdef int64_t n_outputs = max(of_row.n_outputs, 1)
    cdef int64_t o, i, at, row
    for o in range(n_outputs):
        if not reserve_places(e, n, n_rows if n_rows > 0 else n):
            q.out_of_memory = True
            return
        for i in range(n):
            at = i if node.orders == NULL else node.orders[o * n + i]
            row = rows[at]
            put_place(e, i + 1, row if n_rows > 0 else at, of_row.value[row * n_outputs + o],
                      of_row.weight[row] if of_row.weight != NULL else 1,
                      of_row.target[row * n_outputs + o])
        begin_places(e, <int64_t>q.totals.moment if node.orders == NULL
                     else node.class_totals[n_outputs + o])
        e = e.next


cdef void place_bins(Search* q, const entry_t* entries,
                     const PresortedFeature* feature) noexcept nogil:
    """The places of each bin of a feature, ascending, and where they begin."""
    cdef AbsoluteErrors* e = q.errors
    cdef Bins* bins = q.bins
    cdef const entry_t* at
    cdef entry_t mask = (<entry_t>1 << 4 * sizeof(entry_t)) - 1
    cdef int64_t fill = 0
    cdef int64_t end = 0
    cdef int64_t g, p, _i
    for g in range(bins.count):
        bins.target[g] = end
        end += bins.n[g]
        fill = g if bins.row[g] < 0 else fill
    while e != NULL:
        at = entries + feature.offset
        for p in range(1, e.n + 1):
            e.bin[p] = <uint32_t>fill
        for g in range(bins.count):
            for _i in range(bins.n[g] if bins.row[g] >= 0 else 0):
                e.bin[e.place[at[0] & mask]] = <uint32_t>g
                at += 1
        for p in range(1, e.n + 1):
            e.of_bins[bins.target[e.bin[p]]] = <uint32_t>p
            bins.target[e.bin[p]] += 1
        for g in range(bins.count):
            bins.target[g] -= bins.n[g]
        e = e.next


cdef void median_of_bin(const Search* q, const AbsoluteErrors* e, int64_t g,
                        Median* m) noexcept nogil:
    cdef const uint32_t* places = e.of_bins + q.bins.target[g]
    cdef int64_t i, p
    memset(m, 0, sizeof(Median))
    m.weight = q.bins.weight[g]
    for i in range(q.bins.n[g]):
        p = places[i]
        pass_row(m, e.y[p], e.w[p] if e.weighted else 1, e.wy[p] if e.weighted else e.y[p])


cdef inline void scan_places(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                             bint down, bint weighted, bint few) noexcept nogil:
    """`weighted` and `few` are constants where this is inlined. Both sides are in registers, not in
    `q`, which sees those of boundaries that reach the best score."""
    cdef AbsoluteErrors* e = q.errors
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t m = end - begin
    cdef int64_t towards = -1 if down else 1
    cdef const entry_t* at = entries + (end - 1 if down else begin)
    cdef const uint32_t* place = e.place
    cdef const int64_t* y = e.y
    cdef uint64_t word = e.bits[0]
    cdef int64_t side = e.side.at
    cdef int64_t rest = e.rest.at
    cdef int64_t held = e.held
    cdef int64_t errors = e.errors
    cdef int64_t before = e.count
    cdef bint is_odd = e.count & 1  # are those on the side
    cdef bint of_all = e.n & 1
    cdef int64_t most = most_errors(e, max(q.best, q.split.score))  # else others win the node
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t i, p
    for i in range(1, m + 1):
        p = place[at[0] & mask]
        at += towards
        if few:
            word ^= <uint64_t>1 << p
        else:
            flip(e, p)
        if weighted:
            w += e.w[p]
            step_by_weight(e, &e.side, p, True)
            step_by_weight(e, &e.rest, p, False)
        else:
            errors += step(e, word, &side, y, p, held, is_odd, True, few)
            errors -= step(e, word, &rest, y, p, held, is_odd ^ of_all, False, few)
            is_odd ^= 1
            held = p
            if errors > most:
                continue
        if i == m or at[0] >> shift == at[-towards] >> shift:
            continue
        q.n = n + i
        q.w = w if weighted else w + i
        if not weighted:
            note_sides(e, word, side, rest, held, errors, before + i, few)
        if permitted(q) and offer(q, score_of_medians(q, down),
                                  end - i if down else begin + i, down):
            most = most_errors(e, q.best)
    if not weighted:
        note_sides(e, word, side, rest, held, errors, before + m, few)
    q.n = n + m
    q.w = w if weighted else w + m


cdef inline int64_t most_errors(const AbsoluteErrors* e, double score) noexcept nogil:
    """Sides of more errors do not reach a score, in doubles."""
    cdef int64_t least = <int64_t>score if score > 0 else 0
    return e.whole - least + (least >> 52)


cdef inline void note_sides(AbsoluteErrors* e, uint64_t word, int64_t side, int64_t rest,
                            int64_t held, int64_t errors, int64_t count, bint few) noexcept nogil:
    if few:
        e.bits[0] = word
    e.side.at = side
    e.rest.at = rest
    e.held = held
    e.errors = errors
    e.count = count


cdef inline void scan_several(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                              bint down) noexcept nogil:
    """Of several outputs, which are all in `q`."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i, at, next
    for i in range(1, end - begin + 1):
        at, next = (end - i, end - i - 1) if down else (begin + i - 1, begin + i)
        add_row(q, entries[at] & mask)
        if i < end - begin and entries[at] >> shift != entries[next] >> shift:
            consider(q, max(at, next), down)


cdef void scan_absolute(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                        bint down) noexcept nogil:
    """Offer the boundaries between entries."""
    if q.errors.next != NULL:
        scan_several(q, entries, begin, end, down)
    elif q.errors.weighted:
        scan_places(q, entries, begin, end, down, True, False)
    elif q.errors.n <= FEW_PLACES:
        scan_places(q, entries, begin, end, down, False, True)
    else:
        scan_places(q, entries, begin, end, down, False, False)
