"""Bounds of the scores inside an interval of codes, of several classes: Gini and entropy.

From an end of an interval inwards, each class may add something to the score, at most::

    Gini       its rows times the largest slope of the score along the class
    entropy    what all its rows change, if they come first

Added up where it is positive, this bounds what any cut scores; of the two ends, the smaller bound
counts. Proofs are in docs/algorithms/bounds.md.
"""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._structs cimport ENTROPY
from dtrees.core.search._allowed_intervals cimport add_up_bins, keep_allowed, take_allowed
from dtrees.core.search._bounds cimport MOST_CLASSES, Bounds, clear_bounds
from dtrees.core.search._criterion cimport Criterion, xlogx
from dtrees.core.search._search cimport (
    Bins, Search, entropy_score, gini_score, heavy_enough, is_bound
)

cdef double ROUNDED = 1.0 + 1e-9        # what scores may be off by
cdef double LAST_BITS = 2.0**-50        # of a large value of x log x


cdef void bound_classes(const Search* q, const uint32_t* last, int64_t count,
                        Bounds* bounds) noexcept nogil:
    """Scores and bounds of the intervals that are the bins of a search, by number. An interval that
    does not occur has the score of the one before at its end."""
    cdef const uint32_t* rank = q.bins.rank
    cdef int64_t first = 1 if q.bins.count > 0 and rank[0] == 0 else 0
    cdef int64_t i
    clear_bounds(count, bounds)
    bound_bins(q, last, False, first, bounds)
    if is_bound(q):
        add_up_bins(q, count, bounds)
        keep_allowed(q, bounds, False, count)
    if first == 1:
        bound_bins(q, last, True, first, bounds)
        if is_bound(q):
            keep_allowed(q, bounds, True, count)
    if is_bound(q):
        take_allowed(bounds, count)
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
    """The same for entropy: what all rows of a class change, if they come first, where that is
    more than nothing.

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


cdef double lost_of_entropy(const Search* q) noexcept nogil:
    """What roundings of x log x may make of a bound: of twelve for each class, and of large ones in
    the last bits."""
    cdef double W = <double>xlogx(q.criterion, q.totals.weight)
    return 12.0 * (q.criterion.n_classes + 1) * (1 + LAST_BITS * W)


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
