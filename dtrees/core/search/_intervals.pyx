"""Bounds of the scores inside an interval of codes, from the sums at its ends.

Between two neighbouring boundaries of a histogram lies an *interval* of codes. Whatever cut is made
inside of it, the sums of the left side lie between those at the two ends. Impurities are convex
functions of these sums, so that the score of a cut is at most that of a corner::

    two classes, one number per row    all rows of the highest targets first, or of the lowest
                                       (w0, s0) ──▶ (w0 + p, s0 + p * highest) ──▶ (w1, s1)
    Poisson                            the same corners
    several classes                    score(end) + sum over classes of rows * largest slope

An interval that cannot reach the best boundary of the node is *dead*: its codes need not be told
apart. (Alsabti, Ranka, Singh 1998: CLOUDS.) Scores here are sums of doubles and those of the search
are not, so that bounds are rounded up, and `lowest_best` is below what the search finds.
"""
import numpy as np

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport ENTROPY, GINI, POISSON, SQUARED, RowStatistics, Totals
from dtrees.core.histogram._layout cimport CLASSES, SUM
from dtrees.core.search._bins cimport reserve_bins
from dtrees.core.search._criterion cimport (
    Criterion, poisson_limit, poisson_score, squared_score
)
from dtrees.core.search._number_scan cimport LAST_LOGARITHMS
from dtrees.core.search._parameters cimport Limits
from dtrees.core.search._search cimport (
    NONE, Bins, Search, begin_node, by_class, free_search, gini_score, heavy_enough, new_search
)

cdef extern from "search/intervals.h" nogil:
    ctypedef struct CornerSums:
        double weight
        double target
        double lowest
        double highest
        double slack

    void score_corners_plain(const CornerSums*, const double*, const double*, int64_t, double*,
                             double*) noexcept
    void score_corners_wide(const CornerSums*, const double*, const double*, int64_t, double*,
                            double*) noexcept

cdef double ROUNDED = 1.0 + 1e-9        # what scores may be off by
cdef double LAST_BITS = 2.0**-50        # of a sum of products


cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil:
    """Whether there are bounds of the scores of a criterion: of all but entropy, and many classes.
    """
    if criterion.impurity == GINI:
        return criterion.n_classes <= MOST_CLASSES
    return criterion.impurity != ENTROPY


cdef void bound_intervals(const Search* q, const uint32_t* last, Bounds* bounds) noexcept nogil:
    """Scores and bounds of the intervals that are the bins of a search.

    last : the last code of each interval, by rank. bounds : `lowest` and `highest` are given.
    """
    cdef int64_t i
    cdef int64_t first = 1 if q.bins.count > 0 and q.bins.rank[0] == 0 else 0
    for i in range(q.bins.count):
        bounds.at_end[i] = NONE
        bounds.inside[i] = NONE
    if by_class(q):
        bound_classes(q, last, False, first, bounds)
        if first == 1:
            bound_classes(q, last, True, first, bounds)
    else:
        bound_sums(q, last, False, first, bounds)
        if first == 1:
            bound_sums(q, last, True, first, bounds)


cdef double lowest_best(double best) noexcept nogil:
    """What a boundary or a bound has to reach, not to be below the best score of boundaries."""
    return best / ROUNDED if best > 0 else best


cdef inline bint has_cuts(const Search* q, const uint32_t* last, int64_t i, int64_t n,
                          int64_t w) noexcept nogil:
    """Whether a boundary inside a bin may be permitted. n, w : of what is left of the bin."""
    cdef const Bins* g = &q.bins
    return (g.n[i] > 1 and last[g.rank[i]] > last[g.rank[i] - 1] + 1
            and n + g.n[i] > q.min_rows and q.totals.n - n > q.min_rows
            and w + g.weight[i] >= q.min_weight and q.totals.weight - w >= q.min_weight)


cdef inline bint has_end(const Search* q, int64_t i, int64_t n, int64_t w,
                         bint close) noexcept nogil:
    """Whether the boundary behind a bin is permitted. n, w : up to there."""
    return (n >= q.min_rows and q.totals.n - n >= q.min_rows and heavy_enough(q, w)
            and (close or i + 1 < q.bins.count))


# ---------------------------------------------------------------------------------------------
# one number per row

cdef void bound_sums(const Search* q, const uint32_t* last, bint missing_left, int64_t first,
                     Bounds* bounds) noexcept nogil:
    cdef const Bins* g = &q.bins
    cdef double largest = max(abs(bounds.lowest), abs(bounds.highest))
    cdef CornerSums node = CornerSums(q.W, q.S, bounds.lowest, bounds.highest,
                                      2 * LAST_BITS * q.W * q.W * largest)
    cdef bint close = first == 1 and not missing_left
    cdef int64_t n = g.n[0] if missing_left else 0
    cdef int64_t w = g.weight[0] if missing_left else 0
    cdef int64_t s = g.target[0] if missing_left else 0
    cdef double rest, score
    cdef int64_t i, k
    bounds.w[0] = <double>w
    bounds.s[0] = <double>s
    for i in range(first, g.count):
        w += g.weight[i]
        s += g.target[i]
        bounds.w[i - first + 1] = <double>w
        bounds.s[i - first + 1] = <double>s
    if q.criterion.impurity == POISSON:
        score_poisson(q, g.count - first, bounds)
    elif is_wide:
        score_corners_wide(&node, bounds.w, bounds.s, g.count - first, bounds.end, bounds.corner)
    else:
        score_corners_plain(&node, bounds.w, bounds.s, g.count - first, bounds.end, bounds.corner)
    for i in range(g.count - first if q.criterion.impurity == SQUARED else 0):
        bounds.corner[i] *= ROUNDED
    w = g.weight[0] if missing_left else 0
    for i in range(first, g.count):
        k = i - first
        if has_cuts(q, last, i, n, w):
            bounds.inside[i] = max(bounds.inside[i], bounds.corner[k])
        n += g.n[i]
        w += g.weight[i]
        if has_end(q, i, n, w, close):
            rest = <double>(q.totals.weight - w)
            if q.criterion.impurity == POISSON:
                score = poisson_score(q.S, bounds.w[k + 1], rest, bounds.s[k + 1])
            else:
                score = squared_score(q.W, q.S, bounds.w[k + 1], rest, bounds.s[k + 1])
            bounds.at_end[i] = max(bounds.at_end[i], score)


cdef void score_poisson(const Search* q, int64_t n, Bounds* bounds) noexcept nogil:
    """`score_corners` for the Poisson deviance: the sums up to each interval are in `bounds`."""
    cdef double largest = bounds.highest - bounds.lowest
    cdef double share = 1 / largest if largest > 0 else 0
    cdef const double* w = bounds.w
    cdef const double* s = bounds.s
    cdef double dw, part, rest
    cdef int64_t i
    for i in range(n + 1):
        bounds.end[i] = poisson_limit(q.S, q.W, w[i], s[i])
    for i in range(n):
        dw = w[i + 1] - w[i]
        part = min(max((s[i + 1] - s[i] - dw * bounds.lowest) * share, 0.0), dw)
        rest = dw - part
        bounds.corner[i] = LAST_LOGARITHMS * q.S + max(
            max(poisson_limit(q.S, q.W, w[i] + part, s[i] + part * bounds.highest),
                poisson_limit(q.S, q.W, w[i] + rest, s[i] + rest * bounds.lowest)),
            max(bounds.end[i], bounds.end[i + 1]))


# ---------------------------------------------------------------------------------------------
# several classes

cdef inline double clamped(double slope) noexcept nogil:
    """A side of weight n scores at most n: the slope is between -1 and 1."""
    return -1.0 if slope < -1 else 1.0 if slope > 1 else slope


cdef double rise(const double* near, const double* far, const int64_t* of_class, int K, double n,
                 double m, double D) noexcept nogil:
    """How much the score may rise from an end of a bin inwards, at most: its slope along a class,
    times the rows of the class.

    near, far : by class, outside of the end and the rest. n, m : their sums. D : weight of the bin.
    """
    cdef double near_purity = 0
    cdef double far_purity = 0
    cdef double found = 0
    cdef double d, slope
    cdef int k
    for k in range(K):
        near_purity += near[k] * near[k]
        far_purity += far[k] * far[k]
    near_purity /= (n + D) * (n + D)
    far_purity = min(1.0, far_purity / ((m - D) * (m - D))) if m > D else 1
    for k in range(K):
        d = <double>of_class[k]
        if d == 0:
            continue
        slope = clamped(2 * (near[k] + d) / (n + d) - near_purity)
        slope += clamped(far_purity - (2 * (far[k] - d) / (m - d) if m > d else 0))
        found += d * slope if slope > 0 else 0
    return found


cdef double gini_at(const Search* q, const double* left, const double* right,
                    double n) noexcept nogil:
    cdef double a = 0
    cdef double b = 0
    cdef int k
    for k in range(q.criterion.n_classes):
        a += left[k] * left[k]
        b += right[k] * right[k]
    if n <= 0:
        return b / q.W
    if n >= q.W:
        return a / q.W
    return gini_score(n, q.W - n, a, b)


cdef void bound_classes(const Search* q, const uint32_t* last, bint missing_left, int64_t first,
                        Bounds* bounds) noexcept nogil:
    cdef const Bins* g = &q.bins
    cdef int K = q.criterion.n_classes
    cdef double left[MOST_CLASSES]
    cdef double right[MOST_CLASSES]
    cdef int64_t n = g.n[0] if missing_left else 0
    cdef int64_t w = g.weight[0] if missing_left else 0
    cdef double before, after, score, D
    cdef const int64_t* of_class
    cdef bint cuts
    cdef int64_t i
    cdef int k
    for k in range(K):
        left[k] = <double>g.target[k] if missing_left else 0.0
        right[k] = q.class_totals[k] - left[k]
    score = gini_at(q, left, right, <double>w)
    for i in range(first, g.count):
        of_class = g.target + i * K
        D = <double>g.weight[i]
        cuts = has_cuts(q, last, i, n, w)
        if cuts:
            before = score + rise(left, right, of_class, K, <double>w, q.W - w, D)
        for k in range(K):
            left[k] += of_class[k]
            right[k] -= of_class[k]
        score = gini_at(q, left, right, w + D)
        if cuts:
            after = score + rise(right, left, of_class, K, q.W - w - D, w + D, D)
            bounds.inside[i] = max(bounds.inside[i], min(before, after) * ROUNDED)
        n += g.n[i]
        w += g.weight[i]
        if has_end(q, i, n, w, first == 1 and not missing_left):
            bounds.at_end[i] = max(bounds.at_end[i], score)


# ---------------------------------------------------------------------------------------------
# Python's view

def bounds_of(const int64_t[:, ::1] target, const int64_t[::1] n, const uint32_t[::1] last,
              bint has_missing, tuple span=(0.0, 1.0), int64_t min_rows=1, bint poisson=False):
    """Scores and bounds of intervals whose rows weigh one each.

    Parameters
    ----------
    target : int64 (n_bins, 1 or n_classes)
        Sums of targets, or rows of each class, of all intervals in turn, which all have rows.
    n : int64 (n_bins,)
        Rows.
    last : uint32 (n_bins,)
        Last code of each; behind a 0 where the first is not that of missing values.
    has_missing : bool
    span : (float, float)
        Least and greatest target.
    min_rows : int
    poisson : bool, default=False
        The deviance, not the squared error.

    Returns
    -------
    at_end, inside : float64 (n_bins,)
        Below -1e289: nothing is permitted.
    """
    cdef Criterion criterion
    cdef Limits limits
    cdef RowStatistics of_row
    cdef Totals totals
    cdef Bounds bounds
    cdef int K = <int>target.shape[1]
    cdef int64_t count = n.shape[0]
    cdef int64_t[::1] of_class = np.sum(target, axis=0)
    cdef const uint32_t[::1] ends = np.ascontiguousarray(
        last if has_missing else np.concatenate([[0], last]), dtype=np.uint32)
    cdef Search* q
    cdef int64_t i, k
    memset(&criterion, 0, sizeof(Criterion))
    memset(&limits, 0, sizeof(Limits))
    memset(&of_row, 0, sizeof(RowStatistics))
    memset(&totals, 0, sizeof(Totals))
    criterion.impurity = GINI if K > 1 else POISSON if poisson else SQUARED
    criterion.n_classes = K if K > 1 else 0
    limits.min_rows = min_rows
    q = new_search(&criterion, CLASSES if K > 1 else SUM, of_row, &limits)
    if q == NULL or not reserve_bins(q, count):
        free_search(q)
        raise MemoryError
    for i in range(count):
        q.bins.rank[i] = <uint32_t>(i if has_missing else i + 1)
        q.bins.n[i] = q.bins.weight[i] = n[i]
        totals.n += n[i]
        totals.target += target[i, 0]
        for k in range(K):
            q.bins.target[i * K + k] = target[i, k]
    q.bins.count = count
    totals.weight = totals.n
    begin_node(q, &totals, &of_class[0], 0)
    bounds.lowest, bounds.highest = span
    bound_intervals(q, &ends[0], &bounds)
    free_search(q)
    return (np.array([bounds.at_end[i] for i in range(count)]),
            np.array([bounds.inside[i] for i in range(count)]))
