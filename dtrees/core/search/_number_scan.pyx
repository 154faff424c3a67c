"""Scans of entries whose rows add one number each: two classes, squared error, Poisson.

Very few boundaries of a node reach the best one so far, and most entries lie in stretches in which
none can::

    entries      |. . . . . . . .|. . . . . . . .|. . . . . . . .|
    sums         w, s            w, s                                of the side, up to a stretch
    bound        how far the sums can get away inside of it
    dead         added as a whole
    alive        D*D >= best * w * rest ?      without a division
                 a boundary, and permitted?    then its score, with one

*Squared error*: with W, S the sums of the node, the score D*D / (w * rest), D = W*s - w*S, is at
most that of the largest |D| and the least product. Inside a stretch D grows by no more than the
targets above the mean of the node, and falls by no more than those below. *Poisson*: the score is a
convex function of w and s, which both only grow, so it is at most that of a corner. It is also at
most  S log(S/W) + D*D / (w * rest) / S,  as log(x) <= x - 1: no logarithm is taken where that is
not enough.

In 32-bit entries, two classes have a scan of their own (`_two_class_scan`). The squared error of
rows that weigh one each is scanned four entries at a time, with the same bounds and scores, where
there are registers of 256 bits and the scan goes up (`scan_squared`).

What is compared is rounded in favour of the entries, and the weight of the other side is taken from
the integers: W may have more bits than a double. The scores of those that are left are the same
doubles as everywhere.

Poisson scores are compared with a margin of `LAST_LOGARITHMS`, 2**-40, of S, which is larger than
their roundings. Sums are integers of at most 62 bits, so that no logarithm of a mean is beyond 44,
and a score is within 44 S. Of this a double loses a few units of 2**-53 of the score, and its
logarithm as much: less than 2**-44 S.
"""
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport SQUARED, RowStatistics, entry_t
from dtrees.core.histogram._layout cimport COUNT, SUM, WEIGHTED_SUM, CellKind
from dtrees.core.search._criterion cimport (
    LAST_BITS, LAST_LOGARITHMS, NONE, most_of_difference, poisson_limit, poisson_score,
    squared_score
)
from dtrees.core.search._search cimport Search, constrain, heavy_enough, is_bound, offer

cdef enum:
    STRETCH = 16            # entries that are bounded together


cdef struct Reach:
    # What a boundary has to reach.
    double score            # at least
    double limit            # of D*D / (w * rest), at least

cdef struct Stretch:
    int64_t mean            # of the targets of the node, rounded to a neighbour
    int64_t count           # entries
    int64_t w_before        # sums of the side, up to the stretch
    int64_t s_before
    int64_t weight          # sums of the stretch
    int64_t target
    int64_t away            # distances of targets from the mean, for their weight


cdef inline int64_t magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef inline void add_entry(const RowStatistics* of_row, entry_t row, CellKind kind, int64_t* w,
                           int64_t* s) noexcept nogil:
    """Add a row to the sums of a side; `kind` is a constant, and w is not kept for unit weights."""
    if kind == COUNT:
        s[0] += of_row.label[row]
    else:
        s[0] += of_row.target[row]
    if kind == WEIGHTED_SUM:
        w[0] += of_row.weight[row]


cdef inline void add_away(const RowStatistics* of_row, entry_t row, CellKind kind,
                          Stretch* t) noexcept nogil:
    """Add a row to a stretch. Two classes need no distances: `kind` is a constant."""
    cdef int64_t w = 1
    if kind == COUNT:
        t.target += of_row.label[row]
        return
    if kind == WEIGHTED_SUM:
        w = of_row.weight[row]
        t.weight += w
    t.target += of_row.target[row]
    t.away += magnitude(of_row.target[row] - t.mean * w)


cdef double least_reaching(const Search* q) noexcept nogil:
    """What the score of a boundary has to reach, less what roundings may cost."""
    cdef double best = max(q.best, q.split.score)
    return best * (1 - 2.0**-48) if best > 0 else best * (1 + 2.0**-48)


cdef inline double limit_of(const Search* q, double reach, bint squared) noexcept nogil:
    """What D*D / (w * rest) has to reach, for a score to reach so much. `squared` is a constant."""
    cdef double base
    if squared:
        return reach
    if q.S <= 0:
        return NONE
    base = q.S * (natural_log(q.S / q.W) + 2 * LAST_LOGARITHMS)
    return (reach - base) * q.S * (1 - 2.0**-50)


cdef inline void find_reach(const Search* q, bint squared, Reach* reach) noexcept nogil:
    reach.score = least_reaching(q)
    reach.limit = limit_of(q, reach.score, squared)


cdef bint has_bounds(const Search* q) noexcept nogil:
    """Whether the distances of a stretch from the mean fit 64 bits. Without rows that weigh, there
    is no mean."""
    cdef double largest = max(1.0, abs(<double>q.totals.lowest), abs(<double>q.totals.highest))
    cdef double most = q.W if q.kind == WEIGHTED_SUM else <double>STRETCH  # weight of a stretch
    return q.totals.weight > 0 and most * largest < 2.0**61


cdef inline bint is_dead(const Search* q, const Stretch* t, CellKind kind,
                         double reach) noexcept nogil:
    """Whether no boundary before an entry of a stretch has a score of `reach`; squared error."""
    cdef int64_t last = t.w_before + t.weight - (kind != WEIGHTED_SUM)
    cdef double before = <double>t.w_before
    cdef double after = <double>last
    cdef double product = min(before * <double>(q.totals.weight - t.w_before),
                              after * <double>(q.totals.weight - last))
    cdef double D = q.W * <double>t.s_before - before * q.S
    cdef double up, down, lost
    if kind == COUNT:
        up = <double>t.target * (q.W - q.S)
        down = <double>(t.weight - t.target) * q.S
        lost = LAST_BITS * q.W * q.W
    else:
        # the mean was rounded to an integer: it is off by less than one for each weight
        up = <double>(t.target - t.mean * t.weight)
        down = q.W * (0.5 * (<double>t.away - up) + <double>t.weight)
        up = q.W * (0.5 * (<double>t.away + up) + <double>t.weight)
        lost = LAST_BITS * (q.W * (abs(<double>t.s_before) + abs(<double>t.target)
                                   + <double>t.away)
                            + (before + <double>t.weight) * abs(q.S))
    D = max(D + up, down - D) + lost
    return D * D < reach * product


cdef bint is_dead_poisson(const Search* q, const Stretch* t, bint down,
                          double reach) noexcept nogil:
    """The same for the Poisson deviance. `down`: the side is the right one."""
    cdef int64_t w = q.totals.weight - t.w_before - t.weight if down else t.w_before
    cdef int64_t s = q.totals.target - t.s_before - t.target if down else t.s_before
    cdef double low = <double>w
    cdef double high = <double>(w + t.weight)
    cdef double rest_of_low = <double>(q.totals.weight - w)
    cdef double rest_of_high = <double>(q.totals.weight - w - t.weight)
    cdef double least = <double>s
    cdef double most = <double>(s + t.target)
    cdef double best = max(max(poisson_limit(q.S, low, rest_of_low, least),
                               poisson_limit(q.S, low, rest_of_low, most)),
                           max(poisson_limit(q.S, high, rest_of_high, least),
                               poisson_limit(q.S, high, rest_of_high, most)))
    return best + LAST_LOGARITHMS * q.S < reach


cdef inline bint passes_over(const Search* q, const entry_t* entries, Stretch* t, bint down,
                             CellKind kind, bint squared, const Reach* reach) noexcept nogil:
    """Sum up a stretch of entries; whether no score in it reaches so much."""
    cdef entry_t mask = (<entry_t>1 << 4 * sizeof(entry_t)) - 1
    cdef RowStatistics of_row = q.of_row
    cdef int64_t i
    t.weight = 0 if kind == WEIGHTED_SUM else t.count
    t.target = 0
    t.away = 0
    for i in range(t.count):
        add_away(&of_row, entries[-i if down else i] & mask, kind, t)
    if is_dead(q, t, kind, reach.limit):
        return True
    if squared:
        return False
    return is_dead_poisson(q, t, down, reach.score)


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
    cdef bint bounded = stop - first >= 2 * STRETCH and has_bounds(q)
    cdef double left, rest, target, D
    cdef int64_t i, at
    cdef int64_t last = first
    cdef Stretch t
    cdef Reach reach
    find_reach(q, squared, &reach)
    t.mean = S // W if bounded else 0
    # Entries before the first permitted boundary are added, those behind the last are not needed.
    for i in range(first):
        add_entry(&of_row, entries[end - 1 - i if down else begin + i] & mask, kind, &w, &s)
    while last < stop:
        i = last
        last = min(i + STRETCH, stop) if bounded else stop
        if kind != WEIGHTED_SUM:
            w = n + i
        if bounded and reach.score > NONE:
            t.count = last - i
            t.w_before = w
            t.s_before = s
            if passes_over(q, entries + (end - 1 - i if down else begin + i), &t, down, kind,
                           squared, &reach):
                w += t.weight
                s += t.target
                continue
        while i < last:
            at = end - 1 - i if down else begin + i
            if kind != WEIGHTED_SUM:
                w = n + i
            left = <double>(W - w if down else w)
            rest = <double>(w if down else W - w)
            target = <double>(S - s if down else s)
            D = most_of_difference(q.W, q.S, left, target)
            if (D * D >= reach.limit * (left * rest)
                    and look_at(q, entries, at, w, s, down, kind == COUNT and distinct)):
                find_reach(q, squared, &reach)
            add_entry(&of_row, entries[at] & mask, kind, &w, &s)
            i += 1
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


# ---------------------------------------------------------------------------------------------
# Python's view

def dead_stretches(const int64_t[::1] target, double reach, *, weight=None, bint classes=False,
                   bint poisson=False, bint down=False):
    """Which stretches of 16 rows hold no boundary that scores so much, by their bounds.

    Parameters
    ----------
    target : int64 (n_rows,)
        Numbers, or classes 0 and 1 of rows that weigh one each.
    reach : float
    weight : int64 (n_rows,) or None, default=None
        `target` is that of the weight.
    classes, poisson : bool, default=False
        Which criterion is meant; neither: the squared error.
    down : bool, default=False
        Rows are added from the last one on.

    Returns
    -------
    uint8 (n_stretches,)
        Behind the first row, in the order in which they are added; the last one may be shorter.
    """
    cdef int64_t n = target.shape[0]
    cdef uint64_t[::1] entries = np.arange(n, dtype=np.uint64)
    cdef uint16_t[::1] label = np.asarray(target).astype(np.uint16)
    cdef int64_t[::1] own = np.array(target, dtype=np.int64)
    cdef int64_t[::1] weights = np.ones(n, dtype=np.int64) if weight is None else weight
    cdef uint8_t[::1] dead = np.zeros((n + STRETCH - 2) // STRETCH, dtype=np.uint8)
    cdef CellKind kind = COUNT if classes else SUM if weight is None else WEIGHTED_SUM
    cdef Search q
    cdef Stretch t
    cdef Reach needed
    cdef int64_t first
    cdef int64_t last = 0
    cdef int64_t number = -1
    memset(&q, 0, sizeof(Search))
    q.totals.weight = np.sum(weights)
    q.totals.target = np.sum(own)
    q.W = <double>q.totals.weight
    q.S = <double>q.totals.target
    q.of_row.label = &label[0]
    q.of_row.target = &own[0]
    q.of_row.weight = &weights[0]
    needed.score = reach
    needed.limit = limit_of(&q, reach, not poisson)
    t = Stretch(q.totals.target // q.totals.weight, 1, 0, 0, 0, 0, 0)
    while last < n:
        first = last
        last += t.count
        dead[max(number, 0)] = stretch_is_dead(&q, &entries[n - 1 - first if down else first], &t,
                                               down, kind, poisson, &needed)
        t.w_before += t.weight
        t.s_before += t.target
        t.count = min(STRETCH, n - last)
        number += 1
    return np.asarray(dead)


cdef bint stretch_is_dead(const Search* q, const uint64_t* entries, Stretch* t, bint down,
                          CellKind kind, bint poisson, const Reach* reach) noexcept nogil:
    if kind == COUNT:
        return passes_over(q, entries, t, down, COUNT, True, reach)
    if kind == SUM:
        return passes_over(q, entries, t, down, SUM, not poisson, reach)
    return passes_over(q, entries, t, down, WEIGHTED_SUM, not poisson, reach)


def reaching_boundaries(const int64_t[::1] target, const uint16_t[::1] rank, double reach, *,
                        int64_t before=0):
    """Boundaries of numbers whose scores reach, as four entries at a time are looked at.

    Parameters
    ----------
    target : int64 (n,)
        Of rows that weigh one each, by ascending rank.
    rank : uint16 (n,)
    reach : float
        At most `NONE`: everything reaches.
    before : int, default=0
        How many rows with a target of 0 lie before the first one.

    Returns
    -------
    list of (row behind the boundary, sum of the targets before it) or None
        None where there are no registers of 256 bits.
    """
    cdef int64_t n = target.shape[0]
    cdef uint32_t[::1] entries = np.full(n + 4, 0xFFFFFFFF, dtype=np.uint32)
    cdef int64_t i
    cdef Search q
    cdef NumberScan t
    if not is_wide:
        return None
    for i in range(n):
        entries[i] = <uint32_t>rank[i] << 16 | <uint32_t>i
    memset(&q, 0, sizeof(Search))
    q.kind = SUM
    q.n = before
    q.totals.weight = n + before
    q.totals.target = np.sum(target)
    q.totals.lowest = min(0, np.min(target))
    q.totals.highest = max(0, np.max(target))
    q.W = <double>q.totals.weight
    q.S = <double>q.totals.target
    q.of_row.target = <int64_t*>&target[0]
    begin_scan(&t, &q)
    t.reach = reach
    t.bounded = reach > NONE and has_bounds(&q)
    found = []
    t.s = target[0]
    i = next_number(&t, &entries[0], 1, n)
    while i < n:
        found.append((i, t.s))
        t.s += target[i]
        i = next_number(&t, &entries[0], i + 1, n)
    return found
