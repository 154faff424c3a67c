"""Scan of two classes whose rows weigh one each, 16 entries at a time.

In buffers of 32-bit entries rows of class 0 have the lowest numbers (`stores.presorted._buffers`).
So 16 labels are a comparison of 16 numbers with one, and no label is looked up::

    rows of 16 entries     7 31 12 40 41 9 ...          class 1 from row 30 on
    classes                0  1  0  1  1 0 ...          a bit each
    boundaries             .  x  x  x  .  x             where neighbours differ, if ranks all do

Bounds and scores are those of `_number_scan`, which does the same where there are no registers of
256 bits, and, but for entropy, from the end of a column. O(entries / 16), and what is looked at of
stretches that may win.

Entropy of two classes has a bound of the same form. With shares p of class 1 in a node of weight W
and x on a side, a split gains w KL(x, p) + rest KL(y, p). KL(x, p) is at most c (x - p)^2, where c
is the greater quotient of x = 0 and x = 1: the quotient is the mean of 1 / (u (1 - u)), which is
convex, over points between p and x, so it is convex in x. With D = W s - w S a split gains at most
c D^2 / (W w rest), and only boundaries that reach so much get logarithms.
"""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._criterion cimport NONE, Criterion, xlogx
from dtrees.core.search._number_scan cimport least_reaching, look_at
from dtrees.core.search._search cimport Bins, Keyed, Search, entropy_score, heavy_enough, offer

cdef extern from "search/two_classes.h" nogil:
    ctypedef struct TwoClasses:
        double W                # sums of the node
        double S
        double reach            # what a score has to reach
        bint bounded            # there is something to reach
        int64_t n               # rows of the side before the first entry
        int64_t s               # rows of class 1 of the side
        uint32_t ones           # the least row of class 1
        const int64_t* f        # entropy: the table of x log x, or NULL
        int64_t zeros           # with it, weights of class 0 and of both in the node,
        int64_t weight
        int64_t base            # what comes off the sums of both sides,
        double best             # and the score of the best boundary so far
    double entropy_of(const int64_t*, int64_t, int64_t, int64_t, int64_t, int64_t) noexcept
    int64_t next_boundary(TwoClasses*, const uint32_t*, int64_t, int64_t, bint) noexcept

cdef enum:
    LEAST_BOUNDED = 4       # bins that are worth a bound

cdef double LAST_BITS = 2.0**-50        # of a large value of x log x


cdef void scan_two_classes(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                           uint32_t ones, bint distinct) noexcept nogil:
    """Scan entries begin..end of a column upwards, and offer the boundaries between them.

    distinct : no two entries of the feature have the same rank. ones : as in `search_feature`.
    """
    cdef const uint32_t* e = entries + begin
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef bint by_label = distinct and q.min_rows == 1 and q.min_weight <= 1
    cdef int64_t i
    cdef TwoClasses t
    t.W = q.W
    t.S = q.S
    t.n = q.n
    t.s = q.s
    t.ones = ones
    t.f = NULL
    t.reach = least_reaching(q)
    t.bounded = t.reach > NONE
    for i in range(first):
        t.s += (e[i] & 0xFFFF) >= ones
    i = next_boundary(&t, e, first, stop, by_label)
    while i < stop:
        if look_at(q, entries, begin + i, q.n + i, t.s, False, by_label):
            t.reach = least_reaching(q)
            t.bounded = True
        t.s += (e[i] & 0xFFFF) >= ones
        i = next_boundary(&t, e, i + 1, stop, by_label)
    q.n += m
    q.w = q.n
    q.s = t.s


cdef double steepest(const Criterion* criterion, int64_t zeros, int64_t ones) noexcept nogil:
    """What KL(x, p) / (x - p)^2 comes to at most, for a share p of class 1, in units of x log x.

    Logarithms are those of x log x, which is rounded to units: of weights of both classes.
    """
    cdef double of_zeros = <double>xlogx(criterion, zeros) / <double>zeros
    cdef double of_ones = <double>xlogx(criterion, ones) / <double>ones
    cdef double W = <double>(zeros + ones)
    cdef double of_all = <double>xlogx(criterion, zeros + ones) / W
    cdef double lost = 2 + of_all * 2.0**-48
    cdef double p = <double>ones / W
    cdef double rest = <double>zeros / W
    return max((of_all - of_zeros + lost) / (p * p), (of_all - of_ones + lost) / (rest * rest))


cdef double lost_of_entropy(const Search* q) noexcept nogil:
    """What roundings of x log x may make of a bound: of twelve for each class, and of large ones in
    the last bits."""
    cdef double W = <double>xlogx(q.criterion, q.totals.weight)
    return 12.0 * (q.criterion.n_classes + 1) * (1 + LAST_BITS * W)


cdef inline double least_square(Search* q) noexcept nogil:
    """What D*D / (w * rest) has to reach, for a boundary to have the entropy's best score."""
    cdef double best = max(q.best, q.split.score)
    if best <= 0:
        return NONE
    if q.square_per_score == 0:
        q.square_per_score = (q.W * (1 - 2.0**-40)
                              / steepest(q.criterion, q.class_totals[0], q.class_totals[1]))
        q.lost_of_score = lost_of_entropy(q)
    best -= q.lost_of_score
    return best * q.square_per_score if best > 0 else NONE


cdef inline int64_t both_classes(const Search* q, int64_t zeros, int64_t ones) noexcept nogil:
    """What classes add to an entropy where one side has so many rows of each: `side_squares`."""
    cdef const int64_t* totals = q.class_totals
    return (xlogx(q.criterion, zeros) + xlogx(q.criterion, totals[0] - zeros)
            + xlogx(q.criterion, ones) + xlogx(q.criterion, totals[1] - ones))


cdef inline const int64_t* table_of(const Search* q) noexcept nogil:
    """The table of x log x, if it has the weights of the node; else NULL."""
    return q.criterion.xlogx if q.totals.weight < q.criterion.xlogx_size else NULL


cdef inline double score_of_side(const Search* q, const int64_t* f, int64_t w,
                                 int64_t ones) noexcept nogil:
    """The entropy's score where one side weighs w. f : `table_of` the node."""
    if f == NULL:
        return entropy_score(q, both_classes(q, w - ones, ones), w)
    return entropy_of(f, q.class_totals[0], q.totals.weight, q.entropy - f[q.totals.weight], w,
                      ones)


cdef inline void note_best(Search* q, TwoClasses* t) noexcept nogil:
    """Tell a scan what the next boundary has to reach."""
    t.reach = least_square(q)
    t.bounded = t.reach > NONE
    t.best = max(q.best, q.split.score)


cdef void scan_entropy(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                       uint32_t ones, bint close) noexcept nogil:
    """Scan by the entropy of two classes, both of which the node has, without constraints.

    close : the sums of the side are asked for at the end.
    """
    cdef const uint32_t* e = entries + begin
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef const int64_t* f = table_of(q)
    cdef int64_t i, w
    cdef TwoClasses t
    t.W = q.W
    t.S = <double>q.class_totals[1]
    t.n = q.n
    t.s = q.side[1]
    t.ones = ones
    t.f = f
    t.zeros, t.weight = q.class_totals[0], q.totals.weight
    t.base = 0 if f == NULL else q.entropy - f[q.totals.weight]
    note_best(q, &t)
    for i in range(first):
        t.s += (e[i] & 0xFFFF) >= ones
    i = next_boundary(&t, e, first, stop, False)
    while i < stop:
        w = t.n + i
        if (heavy_enough(q, w)
                and offer(q, score_of_side(q, f, w, t.s), begin + i, False)):
            note_best(q, &t)
        t.s += (e[i] & 0xFFFF) >= ones
        i = next_boundary(&t, e, i + 1, stop, False)
    if not close:
        return
    for i in range(max(i, first), m):
        t.s += (e[i] & 0xFFFF) >= ones
    take_sums(q, m, t.s)


cdef inline void take_sums(Search* q, int64_t m, int64_t ones) noexcept nogil:
    """Note that m rows more are on the side, and that so many of all of them are of class 1."""
    q.n += m
    q.w = q.n
    q.side[1] = ones
    q.side[0] = q.n - ones
    q.side_squares = both_classes(q, q.side[0], q.side[1])
    q.side_is_clear = False


cdef int64_t scan_entropy_of_bins(Search* q, const Keyed* order, int64_t begin,
                                  int64_t end) noexcept nogil:
    """Offer the boundaries behind the bins begin..end to the entropy of two classes.

    order : of the bins; NULL: by number. Returns the bins before the best boundary, 0 where there
    was a better one before. Of nodes for which `has_small_entropy`.
    """
    cdef const Bins* g = q.bins
    cdef const int64_t* of_class = g.target
    cdef bint bounded = end - begin >= LEAST_BOUNDED and 0 < q.class_totals[1] < q.totals.weight
    cdef double reach = least_square(q) if bounded else NONE
    cdef double score_to_reach = max(q.best, q.split.score)
    cdef const int64_t* f = table_of(q)
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t W = q.totals.weight
    cdef int64_t S = q.class_totals[1]
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t s = q.side[1]
    cdef int64_t best = 0
    cdef int64_t i, b
    cdef double D, score
    for i in range(begin, end):
        b = i if order == NULL else order[i].bin
        n += g.n[b]
        w += g.weight[b]
        s += of_class[2 * b + 1]
        if n > most:
            break
        if n < q.min_rows or not heavy_enough(q, w):
            continue
        D = <double>(W * s - w * S)
        if bounded and D * D < reach * (<double>w * <double>(W - w)):
            continue
        score = score_of_side(q, f, w, s)
        if score >= score_to_reach and offer(q, score, i, False):
            best = i + 1
            reach = least_square(q) if bounded else NONE
            score_to_reach = score
    return best


# ---------------------------------------------------------------------------------------------
# Python's view

def steepest_of(int64_t zeros, int64_t ones, double fixed_point):
    """What KL(x, p) comes to at most, divided by (x - p)**2, in nats; p is the share of the ones.

    Parameters
    ----------
    zeros, ones : int
        Weights of both classes, at least 1.
    fixed_point : float
        Units of x log x: 2**k.
    """
    cdef Criterion criterion
    criterion.xlogx_size = 0
    criterion.fixed_point = fixed_point
    return steepest(&criterion, zeros, ones) / fixed_point
