"""Scans of entries whose rows add one number each: two classes, squared error, Poisson.

Very few boundaries of a node reach the best one so far. Whether one does takes no division, and no
logarithm; the score of those that do has one::

    sums         w, s                             of the side
    reach        D*D >= best * w * rest ?         D = W*s - w*S, of sums W, S of the node
    boundary     permitted, between two ranks?    then its score

The score of squared errors is D*D / (w * rest). That of Poisson is at most  S log(S/W) + D*D /
(w * rest) / S,  as log(x) <= x - 1.

Where there are registers of 256 bits and a scan goes up along 32-bit entries, two classes have a
scan of their own (`_two_class_scan`), and the squared errors of rows that weigh one each are looked
at four at a time (`scan_squared`). Both pass over stretches of entries in which no boundary can
reach the best one: inside of a stretch D grows by no more than the targets above the mean of the
node, and falls by no more than those below.

What is compared is rounded in favour of the entries, and the weight of the other side is taken from
the integers: W may have more bits than a double. The scores of those that are left are the same
doubles as everywhere.

Poisson scores are compared with a margin of `LAST_LOGARITHMS`, 2**-40, of S, which is larger than
their roundings. Sums are integers of at most 62 bits, so that no logarithm of a mean is beyond 44,
and a score is within 44 S. Of this a double loses a few units of 2**-53 of the score, and its
logarithm as much: less than 2**-44 S.
"""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport SQUARED, RowStatistics, entry_t
from dtrees.core.histogram._layout cimport COUNT, SUM, WEIGHTED_SUM, CellKind
from dtrees.core.search._criterion cimport (
    LAST_LOGARITHMS, NONE, most_of_difference, poisson_score, squared_score
)
from dtrees.core.search._search cimport Search, constrain, heavy_enough, is_bound, offer


cdef inline void add_entry(const RowStatistics* of_row, entry_t row, CellKind kind, int64_t* w,
                           int64_t* s) noexcept nogil:
    """Add a row to the sums of a side; `kind` is a constant, and w is not kept for unit weights."""
    if kind == COUNT:
        s[0] += of_row.label[row]
    else:
        s[0] += of_row.target[row]
    if kind == WEIGHTED_SUM:
        w[0] += of_row.weight[row]


cdef double least_reaching(const Search* q) noexcept nogil:
    """What the score of a boundary has to reach, less what roundings may cost."""
    cdef double best = max(q.best, q.split.score)
    return best * (1 - 2.0**-48) if best > 0 else best * (1 + 2.0**-48)


cdef inline double limit_of(const Search* q, bint squared) noexcept nogil:
    """What D*D / (w * rest) of a boundary has to reach. `squared` is a constant."""
    cdef double reach = least_reaching(q)
    cdef double base
    if squared:
        return reach
    if q.S <= 0:
        return NONE
    base = q.S * (natural_log(q.S / q.W) + 2 * LAST_LOGARITHMS)
    return (reach - base) * q.S * (1 - 2.0**-50)


cdef bint look_at(Search* q, const entry_t* entries, int64_t at, int64_t w, int64_t s, bint down,
                  bint by_label) noexcept nogil:
    """Offer the boundary beside entry `at`, if it is one.

    w, s : sums of the side. by_label : two neighbours of the same class are no boundary, as no two
    entries have the same rank: between the ends of a stretch of one class the score is strictly
    convex, so an end beats what is inside (Fayyad and Irani 1993; [CV] 3.4).
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef entry_t entry = entries[at]
    cdef entry_t before = entries[at + 1 if down else at - 1]
    cdef double left = <double>(q.totals.weight - w if down else w)
    cdef double rest = <double>(w if down else q.totals.weight - w)
    cdef double score
    if entry >> shift == before >> shift or not heavy_enough(q, w):
        return False
    if (by_label and q.min_rows == 1 and q.min_weight <= 1
            and q.of_row.label[entry & mask] == q.of_row.label[before & mask]):
        return False
    s = q.totals.target - s if down else s
    if q.criterion.impurity == SQUARED:
        score = squared_score(q.totals.weight, q.totals.target,
                              q.totals.weight - w if down else w, s)
    else:
        score = poisson_score(q.S, left, rest, <double>s)
    if is_bound(q):
        score = constrain(q, q.totals.weight - w if down else w, s, score)
    return offer(q, score, at + 1 if down else at, down)


cdef inline void scan_kind(Search* q, const entry_t* entries, int64_t begin, int64_t end, bint down,
                           CellKind kind, bint distinct, bint squared) noexcept nogil:
    """`down`, `kind`, `distinct` and `squared` are constants where this is inlined."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef RowStatistics of_row = q.of_row
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t s = q.s
    cdef int64_t W = q.totals.weight
    cdef int64_t S = q.totals.target
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - n + 1, m)
    cdef double left, rest, target, D
    cdef int64_t i, at
    cdef double limit = limit_of(q, squared)
    # Entries before the first permitted boundary are added, those behind the last are not needed.
    for i in range(first):
        add_entry(&of_row, entries[end - 1 - i if down else begin + i] & mask, kind, &w, &s)
    for i in range(first, stop):
        at = end - 1 - i if down else begin + i
        if kind != WEIGHTED_SUM:
            w = n + i
        left = <double>(W - w if down else w)
        rest = <double>(w if down else W - w)
        target = <double>(S - s if down else s)
        D = most_of_difference(q.W, q.S, left, target)
        if (D * D >= limit * (left * rest)
                and look_at(q, entries, at, w, s, down, kind == COUNT and distinct)):
            limit = limit_of(q, squared)
        add_entry(&of_row, entries[at] & mask, kind, &w, &s)
    q.n = n + m
    q.w = w if kind == WEIGHTED_SUM else q.n
    q.s = s


cdef inline void scan_way(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                          bint down, CellKind kind, bint squared) noexcept nogil:
    if down:
        scan_kind(q, entries, begin, end, True, kind, False, squared)
    else:
        scan_kind(q, entries, begin, end, False, kind, False, squared)


cdef void scan_numbers(Search* q, const entry_t* entries, int64_t begin, int64_t end, bint down,
                       bint distinct) noexcept nogil:
    """Scan entries begin..end of a column and offer the boundaries between them.

    distinct : no two entries of the feature have the same rank. `down`: from the end, the side is
    the right one.
    """
    if begin >= end:
        return
    if q.kind == COUNT:
        if distinct and not down:
            scan_kind(q, entries, begin, end, False, COUNT, True, True)
        else:
            scan_way(q, entries, begin, end, down, COUNT, True)
    elif q.kind == SUM:
        if q.criterion.impurity == SQUARED:
            scan_way(q, entries, begin, end, down, SUM, True)
        else:
            scan_way(q, entries, begin, end, down, SUM, False)
    elif q.criterion.impurity == SQUARED:
        scan_way(q, entries, begin, end, down, WEIGHTED_SUM, True)
    else:
        scan_way(q, entries, begin, end, down, WEIGHTED_SUM, False)


# ---------------------------------------------------------------------------------------------
# squared errors of rows that weigh one each, four at a time

cdef extern from "search/squared.h" nogil:
    ctypedef struct NumberScan:
        double W                # sums of the node
        double S
        double reach            # what a score has to reach
        bint bounded            # distances from the mean may be added up
        int64_t mean            # of the targets, rounded to a neighbour
        int64_t n               # rows of the side before the first entry
        int64_t s               # their sum
        const int64_t* target   # by row
    int64_t next_number(NumberScan*, const uint32_t*, int64_t, int64_t) noexcept
    int STRETCH_OF_NUMBERS


cdef inline bint has_bounds(const Search* q) noexcept nogil:
    """Whether the distances of a stretch from the mean fit 64 bits."""
    cdef double largest = max(1.0, abs(<double>q.totals.lowest), abs(<double>q.totals.highest))
    return STRETCH_OF_NUMBERS * largest < 2.0**61


cdef inline void begin_scan(NumberScan* t, const Search* q) noexcept nogil:
    t.W = q.W
    t.S = q.S
    t.n = q.n
    t.s = q.s
    t.mean = q.totals.target // q.totals.weight
    t.target = q.of_row.target


cdef void scan_squared(Search* q, const uint32_t* entries, int64_t begin,
                       int64_t end) noexcept nogil:
    """Scan entries begin..end of a column upwards, and offer the boundaries between them.

    Rows weigh one each, and there are registers of 256 bits: without them it does not end.
    """
    cdef const uint32_t* e = entries + begin
    cdef const int64_t* target = q.of_row.target
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef bint may_bound = stop - first >= STRETCH_OF_NUMBERS and has_bounds(q)
    cdef int64_t i
    cdef NumberScan t
    begin_scan(&t, q)
    t.reach = least_reaching(q)
    t.bounded = may_bound and t.reach > NONE
    for i in range(first):
        t.s += target[e[i] & 0xFFFF]
    i = next_number(&t, e, first, stop)
    while i < stop:
        if look_at(q, entries, begin + i, q.n + i, t.s, False, False):
            t.reach = least_reaching(q)
            t.bounded = may_bound
        t.s += target[e[i] & 0xFFFF]
        i = next_number(&t, e, i + 1, stop)
    q.n += m
    q.w = q.n
    q.s = t.s
