"""Bounds of the scores inside an interval of codes, from the sums at its ends.

Between two neighbouring boundaries of a histogram lies an *interval* of codes. Whatever cut is made
inside of it, the sums of the left side lie between those at the two ends. Impurities are convex
functions of these sums, so that the score of a cut is at most that of a corner::

    one number per row                 all rows of the highest targets first, or of the lowest
                                       (w0, s0) ──▶ (w0 + p, s0 + p * highest) ──▶ (w1, s1)
    several classes (Gini)             score(end) + sum over classes of rows * largest slope
    entropy                            score(end) + sum over classes of what all its rows change

The last two are sums of what each class may add from an end of the interval inwards, where that is
positive; of the two ends, the smaller bound counts. Bounds hold for boundaries that constraints do
not allow as well, but the best boundary may be one of these. So columns are not searched by
intervals where values have to rise or fall along some column.

An interval that cannot reach the best boundary of the node is *dead*: its codes need not be told
apart. (Alsabti, Ranka, Singh 1998: CLOUDS.) Scores here are sums of doubles and those of the search
are not, so that bounds are rounded up, and `lowest_best` is below what the search finds. The proofs
are in docs/algorithms/bounds.md.
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport BY_FUNCTION, ENTROPY, POISSON, SQUARED
from dtrees.core.search._criterion cimport (
    LAST_BITS, LAST_LOGARITHMS, NONE, Criterion, poisson_limit, poisson_score, xlogx
)
from dtrees.core.search._search cimport (
    Bins, Search, by_class, entropy_score, gini_score, heavy_enough
)
from dtrees.core.search._two_class_scan cimport lost_of_entropy

cdef extern from "search/intervals.h" nogil:
    ctypedef struct NodeSums:
        double n
        double weight
        double target
        double lowest
        double highest
        double min_rows
        double min_weight
        double slack
        double none

    void score_intervals_plain(const NodeSums*, const double*, const double*, const double*,
                               const double*, const double*, int64_t, double*, double*,
                               double*) noexcept
    void score_intervals_wide(const NodeSums*, const double*, const double*, const double*,
                              const double*, const double*, int64_t, double*, double*,
                              double*) noexcept

cdef double ROUNDED = 1.0 + 1e-9        # what scores may be off by
cdef double NO_CUTS = 1e300             # rows that no interval has


cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil:
    """Whether rounds of blocks bound the scores of a criterion: not of entropy, functions, many
    classes or several outputs."""
    return (criterion.impurity != ENTROPY and criterion.impurity != BY_FUNCTION
            and criterion.n_outputs <= 1
            and criterion.n_classes <= MOST_CLASSES)


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


cdef inline void clear_bounds(int64_t count, Bounds* bounds) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        bounds.at_end[i] = NONE
        bounds.inside[i] = NONE


cdef void bound_intervals(const Search* q, const uint32_t* last, int64_t count,
                          Bounds* bounds) noexcept nogil:
    """Scores and bounds of intervals, by number; those that occur are the bins of a search.

    last : the last code of each interval. bounds : all but the scores and sums is given.
    """
    if by_class(q):
        bound_classes(q, last, count, bounds)
        return
    add_up_bins(q, count, bounds)
    bound_sums(q, last, count, bounds)


# ---------------------------------------------------------------------------------------------
# one number per row

cdef void add_up_bins(const Search* q, int64_t count, Bounds* bounds) noexcept nogil:
    """Sums up to each interval, from the bins of a search: one number per row."""
    cdef const Bins* g = q.bins
    cdef int64_t i
    cdef int64_t k = 0
    bounds.n[0] = bounds.weight[0] = bounds.target[0] = 0
    for i in range(count):
        bounds.n[i + 1] = bounds.n[i]
        bounds.weight[i + 1] = bounds.weight[i]
        bounds.target[i + 1] = bounds.target[i]
        if k < g.count and g.rank[k] == i:
            bounds.n[i + 1] += g.n[k]
            bounds.weight[i + 1] += g.weight[k]
            bounds.target[i + 1] += g.target[k]
            k += 1


cdef void bound_sums(const Search* q, const uint32_t* last, int64_t count,
                     Bounds* bounds) noexcept nogil:
    """Scores and bounds of all intervals, from sums up to each of them.

    last : the last code of each interval. bounds : all but the scores is given.
    """
    cdef double many[MOST_INTERVALS + 1]
    cdef int64_t i
    clear_bounds(count, bounds)
    for i in range(1, count):
        many[i] = 1 if last[i] > last[i - 1] + 1 else NO_CUTS
    bound_pass(q, bounds, False, count, many)
    if bounds.n[1] > 0:
        bound_pass(q, bounds, True, count, many)


cdef void bound_pass(const Search* q, Bounds* bounds, bint missing_left, int64_t count,
                     const double* many) noexcept nogil:
    """Where missing values are on one side: those are the first interval."""
    cdef double n[MOST_INTERVALS + 1]
    cdef double w[MOST_INTERVALS + 1]
    cdef double behind[MOST_INTERVALS + 1]
    cdef double s[MOST_INTERVALS + 1]
    cdef double end[MOST_INTERVALS + 1]
    cdef double at_end[MOST_INTERVALS + 1]
    cdef double inside[MOST_INTERVALS + 1]
    cdef int64_t n_missing = 0 if missing_left else bounds.n[1]
    cdef int64_t w_missing = 0 if missing_left else bounds.weight[1]
    cdef int64_t s_missing = 0 if missing_left else bounds.target[1]
    cdef int64_t i
    cdef NodeSums node = NodeSums(
        <double>q.totals.n, q.W, q.S, bounds.lowest, bounds.highest, <double>q.min_rows,
        <double>q.min_weight, slack_of(q, bounds), NONE)
    for i in range(count):
        n[i] = <double>(bounds.n[i + 1] - n_missing)
        w[i] = <double>(bounds.weight[i + 1] - w_missing)
        s[i] = <double>(bounds.target[i + 1] - s_missing)
        behind[i] = <double>(q.totals.weight - (bounds.weight[i + 1] - w_missing))
    cdef bint poisson = q.criterion.impurity == POISSON
    cdef double* to_end = &bounds.at_end[0]
    cdef double* to_inside = &bounds.inside[0]
    if poisson:
        to_end, to_inside = &at_end[0], &inside[0]
        for i in range(1, count):
            at_end[i] = inside[i] = NONE
    if is_wide:
        score_intervals_wide(&node, n, w, behind, s, many + 1, count - 1, end, to_end + 1,
                             to_inside + 1)
    else:
        score_intervals_plain(&node, n, w, behind, s, many + 1, count - 1, end, to_end + 1,
                              to_inside + 1)
    for i in range(1, count if poisson else 0):
        score_poisson(q, w, behind, s, i, end[i] if at_end[i] > NONE else NONE, inside[i],
                      bounds)


cdef void score_poisson(const Search* q, const double* w, const double* behind, const double* s,
                        int64_t i, double of_end, double inside, Bounds* bounds) noexcept nogil:
    """Poisson's scores of an interval, from those of the squared error at its end and inside.

    log(x) <= x - 1, so that a score is at most  S log(S/W) + squared score / S. Where that is not
    enough, no logarithm is taken. Roundings: see `_number_scan`.
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
# several classes, from an end of an interval inwards

cdef void bound_classes(const Search* q, const uint32_t* last, int64_t count,
                        Bounds* bounds) noexcept nogil:
    """Scores and bounds of the intervals that are the bins of a search, by number. An interval that
    does not occur has the score of the one before at its end."""
    cdef const uint32_t* rank = q.bins.rank
    cdef int64_t first = 1 if q.bins.count > 0 and rank[0] == 0 else 0
    cdef int64_t i
    clear_bounds(count, bounds)
    bound_bins(q, last, False, first, bounds)
    if first == 1:
        bound_bins(q, last, True, first, bounds)
    for i in range(1, q.bins.count):
        fill_gap(bounds, rank[i - 1], rank[i])


cdef inline void fill_gap(Bounds* bounds, int64_t before, int64_t after) noexcept nogil:
    cdef int64_t i
    for i in range(before + 1, after):
        bounds.at_end[i] = bounds.at_end[before]


cdef inline bint has_cuts(const Search* q, const uint32_t* last, int64_t i, int64_t n,
                          int64_t w) noexcept nogil:
    """Whether a boundary inside a bin may be permitted. n, w : of what is left of the bin."""
    cdef const Bins* g = q.bins
    return (g.n[i] > 1 and last[g.rank[i]] > last[g.rank[i] - 1] + 1
            and n + g.n[i] > q.min_rows and q.totals.n - n > q.min_rows
            and w + g.weight[i] >= q.min_weight and q.totals.weight - w >= q.min_weight)


cdef inline bint has_end(const Search* q, int64_t n, int64_t w) noexcept nogil:
    """Whether the boundary behind a bin is permitted. n, w : up to there."""
    return n >= q.min_rows and q.totals.n - n >= q.min_rows and heavy_enough(q, w)


cdef inline double clamped(double slope) noexcept nogil:
    """A side of weight n scores at most n: the slope is between -1 and 1."""
    return -1.0 if slope < -1 else 1.0 if slope > 1 else slope


cdef double gini_rise(const int64_t* near, const int64_t* far, const int64_t* of_class, int K,
                      double n, double m, double D, double rest) noexcept nogil:
    """How much the score may rise from an end of a bin inwards, at most: its slope along a class,
    times the rows of the class.

    near, far : by class, outside of the end and the rest. n, m : their sums. D : weight of the bin.
    rest : m - D, of the integers.
    """
    cdef double near_purity = 0
    cdef double far_purity = 0
    cdef double found = 0
    cdef double per_n = 1 / n if n > 0 else 0
    cdef double per_m = 1 / m
    cdef double rise = per_m / rest if rest > 0 else 0     # of 1 / x, to the end of the bin
    cdef double d, share, slope
    cdef int k
    for k in range(K):
        near_purity += <double>near[k] * <double>near[k]
        far_purity += <double>far[k] * <double>far[k]
    near_purity /= (n + D) * (n + D)
    far_purity = min(1.0, far_purity / (rest * rest)) if rest > 0 else 1
    for k in range(K):
        d = <double>of_class[k]
        if d == 0:
            continue
        # Shares at the end of a class, without a division: 1 / x is convex.
        share = per_n * (<double>near[k] + (n - <double>near[k]) * d * per_n) if n > 0 else 1
        slope = clamped(2 * min(1.0, share) - near_purity)
        share = 1 - (m - <double>far[k]) * (per_m + d * rise) if rest > 0 else 0
        slope += clamped(far_purity - 2 * max(0.0, share))
        found += d * slope if slope > 0 else 0
    return found


cdef double gini_at(const Search* q, const int64_t* left, const int64_t* right,
                    int64_t w) noexcept nogil:
    cdef int64_t rest = q.totals.weight - w
    cdef double a = 0
    cdef double b = 0
    cdef int k
    for k in range(q.criterion.n_classes):
        a += <double>left[k] * <double>left[k]
        b += <double>right[k] * <double>right[k]
    if w <= 0:
        return b / q.W
    if rest <= 0:
        return a / q.W
    return gini_score(<double>w, <double>rest, a, b)


cdef double entropy_rise(const Search* q, const int64_t* near, const int64_t* far,
                         const int64_t* of_class, int64_t n, int64_t m) noexcept nogil:
    """How far the entropy may rise: what all rows of a class change, if they come first, where that
    is more than nothing.

    The weights of the sides make a row of a class worth less the later it comes.
    """
    cdef const Criterion* criterion = q.criterion
    cdef int64_t of_n = xlogx(criterion, n)
    cdef int64_t of_m = xlogx(criterion, m)
    cdef double found = 0
    cdef double most = 0
    cdef double change
    cdef int64_t d
    cdef int k
    for k in range(criterion.n_classes):
        d = of_class[k]
        if d == 0:
            continue
        change = <double>((xlogx(criterion, near[k] + d) - xlogx(criterion, near[k]))
                          + (xlogx(criterion, far[k] - d) - xlogx(criterion, far[k]))
                          + (of_n - xlogx(criterion, n + d)) + (of_m - xlogx(criterion, m - d)))
        found += change if change > 0 else 0
        most = max(most, change)
    return most if criterion.n_classes == 2 else found


cdef double entropy_at(const Search* q, const int64_t* left, const int64_t* right,
                       int64_t w) noexcept nogil:
    """The score of the search: sums of whole numbers."""
    cdef int64_t sides = 0
    cdef int k
    for k in range(q.criterion.n_classes):
        sides += xlogx(q.criterion, left[k]) + xlogx(q.criterion, right[k])
    return entropy_score(q, sides, w)


cdef void bound_bins(const Search* q, const uint32_t* last, bint missing_left, int64_t first,
                     Bounds* bounds) noexcept nogil:
    cdef const Bins* g = q.bins
    cdef int K = q.criterion.n_classes
    cdef bint entropy = q.criterion.impurity == ENTROPY
    cdef int64_t left[MOST_CLASSES]
    cdef int64_t right[MOST_CLASSES]
    cdef int64_t n = g.n[0] if missing_left else 0
    cdef int64_t w = g.weight[0] if missing_left else 0
    cdef int64_t W = q.totals.weight
    cdef double lost = lost_of_entropy(q) if entropy else 0
    cdef double before, after, score, D
    cdef const int64_t* of_class
    cdef bint cuts
    cdef int64_t i
    cdef uint32_t number
    cdef int k
    for k in range(K):
        left[k] = g.target[k] if missing_left else 0
        right[k] = q.class_totals[k] - left[k]
    score = entropy_at(q, left, right, w) if entropy else gini_at(q, left, right, w)
    for i in range(first, g.count):
        of_class = g.target + i * K
        number = g.rank[i]
        D = <double>g.weight[i]
        cuts = has_cuts(q, last, i, n, w)
        before = score
        if cuts and entropy:
            before += entropy_rise(q, left, right, of_class, w, W - w)
        elif cuts:
            before += gini_rise(left, right, of_class, K, <double>w, <double>(W - w), D,
                                <double>(W - w - g.weight[i]))
        for k in range(K):
            left[k] += of_class[k]
            right[k] -= of_class[k]
        n += g.n[i]
        w += g.weight[i]
        after = score
        score = entropy_at(q, left, right, w) if entropy else gini_at(q, left, right, w)
        if cuts and entropy and K == 2:
            bounds.inside[number] = max(bounds.inside[number], max(before, score) + lost)
        elif cuts and before * ROUNDED + lost < bounds.least:  # dead from this end
            bounds.inside[number] = max(bounds.inside[number], before * ROUNDED + lost)
        elif cuts:
            if entropy:
                after = score + entropy_rise(q, right, left, of_class, W - w, w)
            else:
                after = score + gini_rise(right, left, of_class, K, <double>(W - w), <double>w, D,
                                          <double>(w - g.weight[i]))
            bounds.inside[number] = max(bounds.inside[number], min(before, after) * ROUNDED + lost)
        if has_end(q, n, w):
            bounds.at_end[number] = max(bounds.at_end[number], score)
