"""Bounds of the scores inside an interval of codes, from the sums at its ends.

Between two neighbouring boundaries of a histogram lies an *interval* of codes. Whatever cut is made
inside of it, the sums of the left side lie between those at the two ends. Impurities are convex
functions of these sums, so that the score of a cut is at most that of a corner::

    two classes, one number per row    all rows of the highest targets first, or of the lowest
                                       (w0, s0) ──▶ (w0 + p, s0 + p * highest) ──▶ (w1, s1)
    Poisson                            the same corners
    squared error                      the same, and the targets above and below the mean
    several classes (Gini)             score(end) + sum over classes of rows * largest slope
    entropy                            score(end) + sum over classes of what all its rows change

An interval that cannot reach the best boundary of the node is *dead*: its codes need not be told
apart. (Alsabti, Ranka, Singh 1998: CLOUDS.) Scores here are sums of doubles and those of the search
are not, so that bounds are rounded up, and `lowest_best` is below what the search finds. The proofs
are in docs/algorithms/bounds.md.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int8_t, int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport (
    ENTROPY, GINI, POISSON, SQUARED, Inherited, RowStatistics, Totals
)
from dtrees.core.histogram._layout cimport CLASSES, SUM
from dtrees.core.search._allowed_intervals cimport add_up_bins, keep_allowed, take_allowed
from dtrees.core.search._bins cimport reserve_bins
from dtrees.core.search._bounds cimport MOST_CLASSES, Bounds, clear_bounds, sums_of_sides
from dtrees.core.search._class_bounds cimport bound_classes
from dtrees.core.search._criterion cimport LAST_BITS, Criterion, poisson_limit, poisson_score
from dtrees.core.search._parameters cimport Limits
from dtrees.core.search._reach cimport LAST_LOGARITHMS
from dtrees.core.search._search cimport (
    NONE, Bins, Search, begin_column, begin_node, by_class, free_search, is_bound, new_search
)

cdef extern from "search/intervals.h" nogil:
    ctypedef struct NodeSums:
        double n
        double weight
        double target
        double lowest
        double highest
        double min_rows
        double min_weight
        double mean
        double slack
        double none

    void score_intervals_plain(const NodeSums*, const double*, const double*, const double*,
                               const double*, const double*, const double*, int64_t, double*,
                               double*, double*) noexcept
    void score_intervals_wide(const NodeSums*, const double*, const double*, const double*,
                              const double*, const double*, const double*, int64_t, double*,
                              double*, double*) noexcept

cdef double ROUNDED = 1.0 + 1e-9        # what scores may be off by
cdef double NO_CUTS = 1e300             # rows that no interval has


cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil:
    """Whether rounds of blocks bound the scores of a criterion: all but entropy, and many classes.
    """
    return criterion.impurity != ENTROPY and criterion.n_classes <= MOST_CLASSES


cdef double lowest_best(double best) noexcept nogil:
    """What a boundary or a bound has to reach, not to be below the best score of boundaries."""
    return best / ROUNDED if best > 0 else best


cdef inline double slack_of(const Search* q, const Bounds* bounds) noexcept nogil:
    """What roundings may cost D = W*s - w*S."""
    return 2 * LAST_BITS * q.W * q.W * max(abs(bounds.lowest), abs(bounds.highest))


cdef double least_at_end(const Search* q, const Bounds* bounds, double at_end) noexcept nogil:
    """What a boundary between intervals scores at least, whose `at_end` this is.

    That of squared errors is (|D| + slack)**2 / (w * (W - w)), with a product of W - 1 at least,
    as weights are integers.
    """
    cdef double lost
    if q.criterion.impurity != SQUARED or at_end <= 0:
        return at_end
    lost = 4 * slack_of(q, bounds) * sqrt(at_end / max(q.W - 1, 1))
    return at_end - lost if at_end > lost else NONE


cdef void bound_intervals(const Search* q, const uint32_t* last, Bounds* bounds) noexcept nogil:
    """Scores and bounds of the intervals that are the bins of a search, by their ranks.

    last : the last code of each rank. bounds : `lowest` and `highest` are given.
    """
    cdef const Bins* g = q.bins
    cdef int64_t count = <int64_t>g.rank[g.count - 1] + 1 if g.count > 0 else 0
    bounds.least = 2 * NONE
    if by_class(q):
        bound_classes(q, last, count, bounds)
        return
    bounds.has_away = False
    add_up_bins(q, count, bounds)
    bound_sums(q, last, count, bounds)


# ---------------------------------------------------------------------------------------------
# one number per row

cdef void bound_sums(const Search* q, const uint32_t* last, int64_t count,
                     Bounds* bounds) noexcept nogil:
    """Scores and bounds of all intervals, from sums up to each of them.

    last : the last code of each interval. bounds : all but the scores is given.
    """
    cdef double away[MOST_INTERVALS + 1]
    cdef double many[MOST_INTERVALS + 1]
    cdef int64_t i
    clear_bounds(count, bounds)
    for i in range(1, count):
        many[i] = 1 if last[i] > last[i - 1] + 1 else NO_CUTS
        away[i] = <double>bounds.away[i] if bounds.has_away else 0
    bound_pass(q, bounds, False, count, many, away if bounds.has_away else NULL)
    if is_bound(q):
        keep_allowed(q, bounds, False, count)
    if bounds.n[1] > 0:
        bound_pass(q, bounds, True, count, many, away if bounds.has_away else NULL)
        if is_bound(q):
            keep_allowed(q, bounds, True, count)
    if is_bound(q):
        take_allowed(bounds, count)


cdef void bound_pass(const Search* q, Bounds* bounds, bint missing_left, int64_t count,
                     const double* many, const double* away) noexcept nogil:
    """Where missing values are on one side: those are the first interval."""
    cdef double n[MOST_INTERVALS + 1]
    cdef double w[MOST_INTERVALS + 1]
    cdef double behind[MOST_INTERVALS + 1]
    cdef double s[MOST_INTERVALS + 1]
    cdef double end[MOST_INTERVALS + 1]
    cdef double at_end[MOST_INTERVALS + 1]
    cdef double inside[MOST_INTERVALS + 1]
    cdef int64_t n_missing = 0 if missing_left else bounds.n[1]
    cdef int64_t i
    cdef NodeSums node = NodeSums(
        <double>q.totals.n, q.W, q.S, bounds.lowest, bounds.highest, <double>q.min_rows,
        <double>q.min_weight, <double>bounds.mean, slack_of(q, bounds), NONE)
    for i in range(count):
        n[i] = <double>(bounds.n[i + 1] - n_missing)
    sums_of_sides(bounds, q.totals.weight, missing_left, count, w, s, behind)
    cdef bint poisson = q.criterion.impurity == POISSON
    cdef double* to_end = &bounds.at_end[0]
    cdef double* to_inside = &bounds.inside[0]
    if poisson:
        to_end, to_inside = &at_end[0], &inside[0]
        for i in range(1, count):
            at_end[i] = inside[i] = NONE
    if away != NULL:
        away += 1
    if is_wide:
        score_intervals_wide(&node, n, w, behind, s, many + 1, away, count - 1, end, to_end + 1,
                             to_inside + 1)
    else:
        score_intervals_plain(&node, n, w, behind, s, many + 1, away, count - 1, end, to_end + 1,
                              to_inside + 1)
    for i in range(1, count if poisson else 0):
        score_poisson(q, w, behind, s, i, end[i] if at_end[i] > NONE else NONE, inside[i],
                      bounds)


cdef void score_poisson(const Search* q, const double* w, const double* behind, const double* s,
                        int64_t i, double of_end, double inside, Bounds* bounds) noexcept nogil:
    """Poisson's scores of an interval, from those of the squared error at its end and inside.

    log(x) <= x - 1, so that a score is at most  S log(S/W) + squared score / S. Where that is not
    enough, no logarithm is taken. Roundings: see `_reach.pxd`.
    """
    cdef double lost = LAST_LOGARITHMS * q.S
    cdef double base = q.S * natural_log(q.S / q.W) + 2 * lost if q.S > 0 else -NONE
    cdef double scale = ROUNDED / q.S if q.S > 0 else 0
    cdef double span = bounds.highest - bounds.lowest
    cdef double bound, dw, part, rest
    if of_end > NONE:
        bound = base + of_end * scale
        if bound >= bounds.least:
            bound = poisson_score(q.S, w[i], behind[i], s[i])
        bounds.at_end[i] = max(bounds.at_end[i], bound)
    if inside <= NONE:
        return
    bound = base + inside * scale
    if bound >= bounds.least:
        dw = w[i] - w[i - 1]
        part = (s[i] - s[i - 1] - dw * bounds.lowest) / span if span > 0 else 0
        part = min(max(part, 0.0), dw)
        rest = dw - part
        bound = min(bound, lost + max(
            max(poisson_limit(q.S, w[i - 1] + part, behind[i] + rest,
                              s[i - 1] + part * bounds.highest),
                poisson_limit(q.S, w[i - 1] + rest, behind[i] + part,
                              s[i - 1] + rest * bounds.lowest)),
            max(poisson_limit(q.S, w[i - 1], behind[i - 1], s[i - 1]),
                poisson_limit(q.S, w[i], behind[i], s[i]))))
    bounds.inside[i] = max(bounds.inside[i], bound)


# ---------------------------------------------------------------------------------------------
# Python's view

cdef void fill_bins(Search* q, const int64_t[:, ::1] target, const int64_t[::1] n,
                    int64_t first) noexcept nogil:
    """Intervals that occur, as bins; `first` is the number of the first one."""
    cdef int64_t K = target.shape[1]
    cdef int64_t i, k
    q.bins.count = 0
    for i in range(n.shape[0]):
        if n[i] > 0:
            q.bins.rank[q.bins.count] = <uint32_t>(i + first)
            q.bins.n[q.bins.count] = q.bins.weight[q.bins.count] = n[i]
            for k in range(K):
                q.bins.target[q.bins.count * K + k] = target[i, k]
            q.bins.count += 1


def bounds_of(const int64_t[:, ::1] target, const int64_t[::1] n, const uint32_t[::1] last,
              tuple span=(0.0, 1.0), int64_t min_rows=1, impurity="", away=None,
              tuple monotonic=None):
    """Scores and bounds of intervals whose rows weigh one each.

    Parameters
    ----------
    target : int64 (n_intervals, 1 or n_classes)
        Sums of targets, or rows of each class, of all intervals in turn.
    n : int64 (n_intervals,)
        Rows.
    last : uint32 (n_intervals,)
        Last code of each; 0 of missing values, if the first one is theirs.
    span : (float, float)
        Least and greatest target.
    min_rows : int
    impurity : {"", "poisson", "entropy"}, default=""
        What is not the squared error, or the Gini index of classes. The fixed point of entropy has
        30 bits.
    away : (int, int64 (n_intervals,)) or None, default=None
        About the mean of the targets, and sums of their distances from it.
    monotonic : (int, float, float) or None, default=None
        Direction of the column, and bounds of the values of both sides.

    Returns
    -------
    at_end, inside : float64 (n_intervals,)
        Below -1e289: nothing is permitted, or allowed by `monotonic`.
    """
    cdef Criterion criterion
    cdef Limits limits
    cdef RowStatistics of_row
    cdef Totals totals
    cdef Bounds bounds
    cdef Inherited above
    cdef int8_t direction
    cdef int K = <int>target.shape[1]
    cdef int64_t first = 0 if last[0] == 0 else 1
    cdef int64_t count = n.shape[0] + first
    cdef int64_t[::1] of_class = np.sum(target, axis=0)
    cdef const uint32_t[::1] ends = np.concatenate([[0] * first, last]).astype(np.uint32)
    cdef Search* q
    cdef int64_t i
    memset(&criterion, 0, sizeof(Criterion))
    memset(&limits, 0, sizeof(Limits))
    memset(&of_row, 0, sizeof(RowStatistics))
    memset(&totals, 0, sizeof(Totals))
    memset(&bounds, 0, sizeof(Bounds))
    memset(&above, 0, sizeof(Inherited))
    criterion.impurity = {"poisson": POISSON, "entropy": ENTROPY}.get(
        impurity, GINI if K > 1 else SQUARED)
    criterion.n_classes = K if K > 1 else 0
    criterion.fixed_point = 2.0**30
    limits.min_rows = min_rows
    if monotonic is not None:
        direction, above.lower, above.upper = monotonic
        above.has_lower = above.has_upper = True
        limits.monotonic = &direction
    q = new_search(&criterion, CLASSES if K > 1 else SUM, of_row, &limits)
    if q == NULL or not reserve_bins(q, count):
        free_search(q)
        raise MemoryError
    totals.n = totals.weight = np.sum(n)
    totals.target = of_class[0]
    fill_bins(q, target, n, first)
    begin_node(q, &totals, &of_class[0], 0, &above)
    begin_column(q, 0)
    bounds.lowest, bounds.highest = span
    clear_bounds(count, &bounds)
    bound_intervals(q, &ends[0], &bounds)
    if away is not None:
        bounds.has_away, bounds.mean = True, away[0]
        for i in range(n.shape[0]):
            bounds.away[i + first] = away[1][i]
        bound_sums(q, &ends[0], count, &bounds)
    free_search(q)
    return (np.array([bounds.at_end[i] for i in range(first, count)]),
            np.array([bounds.inside[i] for i in range(first, count)]))
