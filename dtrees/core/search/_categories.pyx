"""Subsets of the categories of a column: their order, the best subset, and what it pays.

    one number per row, or two classes: prefixes in the order of the means, which hold the best of
    all subsets (Fisher 1958, [CT] "Optimal partitioning")
    more classes: all subsets while there are at most 1,023; else prefixes in an order of the
    categories, and one-versus-rest
    Poisson: a side without any target is not allowed, so with categories of zero target the best
    subset need not be a prefix
    gradients: of many categories also those of the lowest means, or those of the highest, against
    the rest; only these pay, and those of few rows are in the rest (`scan_ends`)

*Order of several classes*: each category is a point, its class shares, and prefixes are tried in
the order of the first principal component of these points ([CT] "Optimal partitioning"). The subset
found need not be the best.

*Penalty*: means of M categories that say nothing differ by M - 1 times the impurity of a row, and
the best subset finds most of that. It is as wrong on other rows as it is right on these. So each
category takes `category_penalty` times the impurity of a row *within* its category off the gain,
less what the best boundary of an ordered column gains by chance:

    gain - (penalty * M - 1 - log2(rows) / 2) * impurity of a row

    impurity of a row    (within + total * bins / rows) / rows

`within` is what is left of the node's impurity when each bin is a node of its own. The second
term gives back what bins of few rows lose by their being few: when categories say nothing, the
expectation is total / rows, however small they are. So a column that names each row pays for all
that it may gain. Subsets that gain no more than all categories would pay are no candidates.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._fixed_point cimport natural_log, spread_of
from dtrees.core.data._structs cimport (
    ABSOLUTE, ENTROPY, GINI, GRADIENT, IN_SUBSET, POISSON, SQUARED, SQUARED_OUTPUTS, Totals,
    int128_t
)
from dtrees.core.histogram._totals cimport Median, errors_about
from dtrees.core.search._absolute_errors cimport AbsoluteErrors
from dtrees.core.search._absolute_scan cimport median_of_bin
from dtrees.core.search._criterion cimport (
    NONE, Criterion, errors_of_node, hessian_of, squares_of_classes, xlogx
)
from dtrees.core.search._search cimport (
    Bins, Keyed, Search, add_bin, allowed_score, by_class, consider, enlarge, offer, permitted,
    score_of_leaf
)
from dtrees.core.search._sort cimport sort_bins
from dtrees.core.search._two_class_scan cimport has_small_entropy, scan_entropy_of_bins

cdef enum:
    POWER_STEPS = 64        # of the power iteration
    FEW_CATEGORIES = 11     # all their 1,023 subsets are tried; of gradients, they pay nothing
    TOLD_APART = 15         # rows of one of many categories, by their hessian (`scan_ends`)

FREE_CATEGORIES = FEW_CATEGORIES    # so many of a boosted model pay nothing


# ---------------------------------------------------------------------------------------------
# order of the categories of several classes

cdef double NEAR = 2.0**-12     # how little an axis of gradients has moved at the end

cdef struct Share:
    # A class that a bin holds.
    int32_t bin             # counted from the first category
    int32_t label
    double weight           # of the class in the bin


cdef inline int64_t axes_of(const Search* q) noexcept nogil:
    """Numbers that a bin is a point of: fields, but for hessians."""
    return q.criterion.n_outputs if q.criterion.has_hessians else q.criterion.n_classes


cdef inline double share_of(const Search* q, int64_t g, int64_t a) noexcept nogil:
    """Of a bin, times its weight; gradients of outputs are as if all had the same hessian."""
    cdef const Criterion* c = q.criterion
    cdef const int64_t* fields = q.bins.target + g * c.n_classes
    cdef double weight = <double>q.bins.weight[g] + c.smoothing
    cdef double found = <double>fields[a]
    if c.sums_numbers:
        found = found * c.scale[a]
    if c.has_hessians:
        found = found / (hessian_of(c, fields, <int>a, 0) + c.smoothing) * weight
    return found


cdef int64_t collect_shares(Search* q, int64_t first, int64_t count) noexcept nogil:
    """The shares that are not zero, behind 3 K numbers of q.component; returns how many,
    -1 without memory."""
    cdef Bins* g = q.bins
    cdef int64_t K = axes_of(q)
    cdef int64_t of_row = K if q.criterion.sums_numbers else q.criterion.n_outputs
    cdef int64_t most = min(count * K, q.totals.n * of_row)
    cdef int64_t size = 3 * K * sizeof(double) + most * sizeof(Share)
    cdef int64_t n_shares = 0
    cdef int64_t i, a
    cdef Share* shares
    if size > q.component_size:
        if not enlarge(q, <void**>&q.component, size):
            return -1
        q.component_size = size
    shares = <Share*>(q.component + 3 * K)
    for i in range(count):
        for a in range(K):
            if g.target[(first + i) * q.criterion.n_classes + a] != 0:
                shares[n_shares].bin = <int32_t>i
                shares[n_shares].label = <int32_t>a
                shares[n_shares].weight = share_of(q, first + i, a)
                n_shares += 1
    return n_shares


cdef inline void project_shares(Bins* g, int64_t first, int64_t count, const Share* shares,
                                int64_t n_shares, const double* axis,
                                double smoothing) noexcept nogil:
    """Keys: projections of the class shares of the bins on an axis.

    smoothing : beside the weight of a bin
    """
    cdef int64_t i
    for i in range(count):
        g.order[i].key = 0
    for i in range(n_shares):
        g.order[shares[i].bin].key += shares[i].weight * axis[shares[i].label]
    for i in range(count):
        g.order[i].key = g.order[i].key / (<double>g.weight[first + i] + smoothing)


cdef bint order_by_component(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Keys: projections of the class shares on their first principal component.

    A power iteration of at most `POWER_STEPS` steps from the class of the largest variance, all in
    one order of operations. The covariance C of the shares p of the bins, of weights w, is never
    formed:

        C v = sum w (p - mean) ((p - mean) . v)

    Only shares that are not zero are looked at; there are at most as many as rows. O(count * K +
    steps * (shares + K)). Returns False without memory.
    """
    cdef Bins* g = q.bins
    cdef int64_t K = axes_of(q)
    cdef int64_t n_shares = collect_shares(q, first, count)
    cdef double* mean = q.component
    cdef double* axis = mean + K
    cdef double* image = axis + K
    cdef const Share* shares = <const Share*>(image + K)
    cdef int64_t i, a, b, _step
    cdef double w, x, shift, norm, total = 0
    cdef double near = NEAR if q.criterion.impurity == GRADIENT else 0.0
    cdef bint is_near
    cdef double smoothing = q.criterion.smoothing   # of gradients
    if n_shares < 0:
        return False
    memset(q.component, 0, 3 * K * sizeof(double))
    for i in range(count):
        g.order[i].bin = first + i
        total += <double>g.weight[first + i]
    for i in range(n_shares):
        mean[shares[i].label] += shares[i].weight
    for a in range(K):
        mean[a] = mean[a] / total
    for i in range(first, g.count):
        w = <double>g.weight[i]
        for a in range(K):
            x = share_of(q, i, a) / (w + smoothing) - mean[a]
            image[a] += w * x * x
    b = 0
    for a in range(1, K):
        if image[a] > image[b]:
            b = a
    axis[b] = 1.0
    for _step in range(POWER_STEPS):
        project_shares(g, first, count, shares, n_shares, axis, smoothing)
        shift = 0
        for a in range(K):
            shift += mean[a] * axis[a]
        total = 0
        for i in range(count):
            g.order[i].key -= shift
            total += <double>g.weight[first + i] * g.order[i].key
        for a in range(K):
            image[a] = -total * mean[a]
        for i in range(n_shares):
            image[shares[i].label] += shares[i].weight * g.order[shares[i].bin].key
        norm = 0
        for a in range(K):
            norm += image[a] * image[a]
        if norm <= 0:
            break
        norm = sqrt(norm)
        is_near = True
        for a in range(K):
            x = image[a] / norm
            is_near = is_near and fabs(x - axis[a]) <= near
            axis[a] = x
        if is_near:     # where nothing has moved, nothing will
            break
    project_shares(g, first, count, shares, n_shares, axis, smoothing)
    return True


# ---------------------------------------------------------------------------------------------
# what the best subset pays

cdef double ROUNDED = 1 + 1e-9      # of what each of two sums may be off by
cdef double LOG_4 = 1.3862943611198906


cdef double less_penalty(const Search* q, int64_t first) noexcept nogil:
    """The score of the best subset of the categories from `first` on, less what it pays; `NONE`
    where it gains no more than chance. Two categories have one boundary, as numbers would."""
    cdef int64_t count = q.bins.count - first
    cdef double penalty = q.criterion.category_penalty * <double>count
    cdef double of_row
    if count <= 2 or penalty == 0 or q.best <= NONE:
        return q.best
    of_row = impurity_of_row(q)
    if q.best - score_of_leaf(q) <= penalty * of_row * ROUNDED:
        return NONE
    return q.best - max(penalty - 1 - natural_log(rows_of(q)) / LOG_4, 0) * of_row


cdef double rows_of(const Search* q) noexcept nogil:
    """How many rows a node has, as far as they are independent.

    Rows of a mean weight above one count as so many, so a row of weight two is a row given
    twice; lighter ones count as one, so a small unit of the weights makes no column dear. A row
    that a bag has drawn twice is one row. Of gradients, rows are counted by their hessians.
    """
    if q.criterion.impurity == GRADIENT:
        return q.W / q.criterion.row_hessian
    if q.criterion.in_bags:
        return <double>q.totals.n
    return max(q.W * q.criterion.weight_unit, <double>q.totals.n)


cdef double impurity_of_row(const Search* q) noexcept nogil:
    """The impurity of a row within its category, in units of the score. O(bins * classes)."""
    cdef double rows = rows_of(q)
    cdef double total = total_impurity(q)
    cdef double found = (impurity_within(q, total) + total * (<double>q.bins.count / rows)) / rows
    if q.criterion.impurity == SQUARED or q.criterion.impurity == SQUARED_OUTPUTS:
        return found * q.W
    return found


cdef double total_impurity(const Search* q) noexcept nogil:
    """Impurity times weight of the node; squared errors without the factor of their scores."""
    cdef const Criterion* c = q.criterion
    cdef const Totals* t = &q.totals
    cdef double found
    if c.impurity == ENTROPY:
        return <double>(c.n_outputs * xlogx(c, t.weight) - q.entropy)
    if c.impurity == GINI:
        return <double>(c.n_outputs * <int128_t>t.weight * t.weight - q.squares) / q.W
    if c.of_classes:
        return <double>squares_of_classes(c, t.weight, q.class_totals) / q.W
    if c.impurity == SQUARED_OUTPUTS:
        return total_of_outputs(q, units_of_moment(q))
    if c.impurity == GRADIENT and by_class(q):
        return max(total_of_outputs(q, c.square_unit), 0.0)
    if c.impurity == ABSOLUTE:
        return errors_of_node(c, t, q.class_totals)
    if c.n_classes > 0:
        return <double>(<int128_t>t.target * (t.weight - t.target)) / q.W
    if c.impurity == GRADIENT:
        found = <double>t.moment * c.square_unit - q.S * q.S / q.W
    elif c.impurity == POISSON:
        found = moment_of_score(q) - half_deviance(q, t.target, t.weight)
    elif c.one_scale:
        found = <double>spread_of(t, c.weight_unit) * c.weight_unit
    else:
        found = moment_of_score(q) - q.S * q.S / q.W
    return found if found > 0 else 0


cdef double impurity_within(const Search* q, double total) noexcept nogil:
    """Impurity within the bins, summed up."""
    cdef const Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef const int64_t* of_class
    cdef double D, w, whole
    cdef double found = 0
    cdef int64_t exact = 0
    cdef int64_t i, k
    cdef int128_t squares
    cdef Median m
    cdef const AbsoluteErrors* e = q.errors
    if e != NULL:
        while e != NULL:
            for i in range(g.count):
                median_of_bin(q, e, i, &m)
                found += e.scale * <double>errors_about(&m, e.shift)
            e = e.next
    elif q.criterion.of_classes:
        for i in range(g.count):
            found += (<double>squares_of_classes(q.criterion, g.weight[i], g.target + i * K)
                      / <double>g.weight[i])
    elif q.criterion.impurity == SQUARED_OUTPUTS or (by_class(q)
                                                     and q.criterion.impurity == GRADIENT):
        for i in range(g.count):
            for k in range(axes_of(q)):
                whole = hessian_of(q.criterion, q.class_totals, <int>k, q.totals.weight)
                w = hessian_of(q.criterion, g.target + i * K, <int>k, g.weight[i])
                if whole > 0:
                    D = ((q.W * <double>g.target[i * K + k]
                          - w * (q.W / whole) * <double>q.class_totals[k]) * q.criterion.scale[k])
                    found += D * D / (w if w > 0 else 1.0)
        found = total - found / q.W / q.W
    elif by_class(q):
        for i in range(g.count):
            of_class = g.target + i * K
            if q.criterion.impurity == ENTROPY:
                exact += q.criterion.n_outputs * xlogx(q.criterion, g.weight[i])
                for k in range(K):
                    exact -= xlogx(q.criterion, of_class[k])
            else:
                squares = q.criterion.n_outputs * <int128_t>g.weight[i] * g.weight[i]
                for k in range(K):
                    squares -= <int128_t>of_class[k] * of_class[k]
                found += <double>squares / <double>g.weight[i]
        found += <double>exact
    elif K > 0:
        for i in range(g.count):
            found += (<double>(<int128_t>g.target[i] * (g.weight[i] - g.target[i]))
                      / <double>g.weight[i])
    elif q.criterion.impurity == POISSON:
        for i in range(g.count):
            found -= half_deviance(q, g.target[i], g.weight[i])
        found += moment_of_score(q)
    else:
        for i in range(g.count):
            D = q.W * <double>g.target[i] - <double>g.weight[i] * q.S
            found += D * D / <double>max(g.weight[i], 1)
        found = total - found / q.W / q.W
    return found if found > 0 else 0


cdef double total_of_outputs(const Search* q, double unit) noexcept nogil:
    """Of several numbers, in the unit of the coarsest one; unit : of the moment."""
    cdef double found = <double>q.totals.moment * unit
    cdef double S, W
    cdef int o
    for o in range(q.criterion.n_outputs):
        S = <double>q.class_totals[o] * q.criterion.scale[o]
        W = hessian_of(q.criterion, q.class_totals, o, q.totals.weight)
        found -= S * S / W if W > 0 else 0
    return found


cdef inline double units_of_moment(const Search* q) noexcept nogil:
    """A moment is made of weight * y * y or weight * y log y, a score of weighted targets."""
    return q.criterion.value_unit / q.criterion.wy_unit * q.criterion.weight_unit


cdef inline double moment_of_score(const Search* q) noexcept nogil:
    """The moment of the node in units of a gain."""
    return <double>q.totals.moment / q.criterion.fixed_point * units_of_moment(q)


cdef inline double half_deviance(const Search* q, int64_t target, int64_t weight) noexcept nogil:
    """What a mean leaves of the moment, with the logarithm of y in its integer units."""
    if target <= 0:
        return 0
    return <double>target * natural_log(<double>target / (<double>weight * units_of_moment(q)))


# ---------------------------------------------------------------------------------------------
# the best subset

cdef double UPWARDS = 1.0 + 1e-9


cdef double search_categories(Search* q, int64_t first) noexcept nogil:
    """Subsets of the categories first..count of the bins; bin 0 is missing when first is 1.

    q.best is without what the best one pays. Returns its whole score; of gradients, q.best.
    """
    cdef double whole
    if (q.criterion.impurity == GRADIENT and q.criterion.category_penalty > 0
            and q.bins.count - first > FEW_CATEGORIES):
        search_ends_and_all(q, first)
        return q.best
    find_subset(q, first)
    whole = q.best
    if q.criterion.impurity != GRADIENT:
        q.best = less_penalty(q, first)
    return whole


cdef inline bint has_one_order(const Search* q) noexcept nogil:
    """Whether prefixes in the order of means are enough: of two classes, which hold the best
    subset, and of a function of one number, which need not. So it is taken of medians of each
    output."""
    return q.errors != NULL or (q.criterion.n_classes == 2 and q.criterion.n_outputs == 1)


cdef bint put_in_order(Search* q, int64_t first) noexcept nogil:
    """The categories first..count of the bins and their keys, not sorted yet; False without
    memory."""
    if by_class(q) and not has_one_order(q):
        return order_by_component(q, first, q.bins.count - first)
    order_by_mean(q, first, q.errors)
    return True


cdef void find_subset(Search* q, int64_t first) noexcept nogil:
    cdef Bins* g = q.bins
    cdef const AbsoluteErrors* e = q.errors
    cdef int64_t count = g.count - first
    cdef int64_t missing
    cdef bint has_axes = by_class(q) and not has_one_order(q) and q.criterion.impurity != GRADIENT
    if has_axes and count <= FEW_CATEGORIES:
        search_subsets(q, first, count)
        return
    if not put_in_order(q, first):
        return
    scan_in_order(q, first, count)
    while e != NULL and e.next != NULL:
        e = e.next
        order_by_mean(q, first, e)
        scan_in_order(q, first, count)
    if has_axes:
        for missing in range(first + 1):
            one_versus_rest(q, first, missing)


cdef void scan_in_order(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Prefixes of bins.order[0..count) against the rest, missing on either side."""
    cdef Bins* g = q.bins
    cdef int64_t missing, i, n_best, end
    sort_bins(g.order, g.order + g.capacity, count)
    for missing in range(first + 1):
        begin_bins(q, IN_SUBSET, missing)
        n_best = 0
        end = count if first == 1 and not missing else count - 1
        if has_small_entropy(q):
            n_best = scan_entropy_of_bins(q, g.order, 0, end)
            end = 0
        for i in range(end):
            add_bin(q, g.order[i].bin, 1)
            if consider(q, i, False):
                n_best = i + 1
        if n_best > 0 and not clear_subset(q):
            return
        for i in range(n_best):
            add_to_subset(q, g.rank[g.order[i].bin])


cdef void search_ends_and_all(Search* q, int64_t first) noexcept nogil:
    """Subsets of many categories of gradients; q.best is without what the best one pays.

    Those of `scan_ends` pay for the categories of one side, all others for those of the column.
    """
    cdef int64_t count = q.bins.count - first
    cdef double of_one = q.criterion.category_penalty * impurity_of_row(q)
    cdef double of_column = of_one * <double>(count - FEW_CATEGORIES)
    cdef double of_ends
    if not put_in_order(q, first):
        return
    scan_ends(q, first, count, of_one)
    of_ends = q.best
    if not may_beat(q, max(of_ends, q.split.score) + of_column) or not put_in_order(q, first):
        return
    q.best = of_ends + of_column
    scan_in_order(q, first, count)
    q.best = q.best - of_column if q.best > of_ends + of_column else of_ends


cdef bint may_beat(const Search* q, double least) noexcept nogil:
    """Whether a subset may score more: none is worth what all bins apart are. O(bins)."""
    cdef const Bins* g = q.bins
    cdef int64_t width = q.n_columns_of_target
    cdef double most = 0
    cdef double s, w
    cdef int64_t i, k
    for i in range(g.count):
        for k in range(axes_of(q) if by_class(q) else 1):
            s = <double>g.target[i * width + k]
            w = hessian_of(q.criterion, g.target + i * width, <int>k, g.weight[i])
            if w <= 0:
                return True
            if by_class(q):
                s = s * q.criterion.scale[k]
            most += s * s / w
    return most * UPWARDS > least


cdef void order_by_mean(Search* q, int64_t first, const AbsoluteErrors* e) noexcept nogil:
    """The categories first..count of the bins and their means, or medians, not sorted yet."""
    cdef Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t i, at
    cdef Median m
    for i in range(first, g.count if e != NULL else 0):
        median_of_bin(q, e, i, &m)
        g.order[i - first].bin = i
        g.order[i - first].key = <double>(m.lower + m.upper)
    for i in range(first, g.count if e == NULL else 0):
        at = i * K + q.criterion.value_field if by_class(q) else i
        g.order[i - first].bin = i
        g.order[i - first].key = (<double>g.target[at]
                                  / (<double>g.weight[i] + q.criterion.smoothing))


cdef void scan_ends(Search* q, int64_t first, int64_t count, double of_one) noexcept nogil:
    """Prefixes of bins.order[0..count) of up to one half, and as many from the other end.

        means    -3   -2   -1    0    1    2    3        pays
        left      *    *                                  2
        left                                    *         1

    Each category on the left takes `of_one` off the score. So it goes left only if it gains more
    than what noise would. Categories of few rows are not among them: their means are noise.
    """
    cdef Bins* g = q.bins
    cdef Keyed* order = g.order
    cdef double least = TOLD_APART * q.criterion.row_hessian
    cdef int64_t kept = 0
    cdef int64_t missing, end, i, at, n_best
    for i in range(count):
        if <double>g.weight[order[i].bin] >= least:
            order[kept] = order[i]
            kept += 1
    sort_bins(order, order + g.capacity, kept)
    for missing in range(first + 1):
        for end in range(2):
            begin_bins(q, IN_SUBSET, missing)
            n_best = 0
            for i in range((kept + 1) // 2):
                at = kept - 1 - i if end else i
                add_bin(q, order[at].bin, 1)
                if not permitted(q):
                    continue
                if offer(q, allowed_score(q, True) - of_one * <double>(i + 1), i, False):
                    n_best = i + 1
            if n_best > 0 and not clear_subset(q):
                return
            for i in range(n_best):
                add_to_subset(q, g.rank[order[kept - 1 - i if end else i].bin])


cdef void search_subsets(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Every subset that lacks the last category, in Gray code order: one bin moves a step."""
    cdef int64_t all_of_them = (<int64_t>1 << count) - 1
    cdef int64_t missing, step, bit, i, gray, best
    for missing in range(first + 1):
        begin_bins(q, IN_SUBSET, missing)
        best = 0
        gray = 0
        for step in range(1, <int64_t>1 << (count - 1)):
            bit = 0
            while not (step >> bit) & 1:
                bit += 1
            gray ^= <int64_t>1 << bit
            add_bin(q, first + bit, 1 if (gray >> bit) & 1 else -1)
            if consider(q, gray, False):
                best = gray
        if first == 1 and not missing:
            begin_bins(q, IN_SUBSET, False)
            for i in range(count):
                add_bin(q, first + i, 1)
            if consider(q, all_of_them, False):
                best = all_of_them
        if best > 0 and not clear_subset(q):
            return
        for i in range(count):
            if (best >> i) & 1:
                add_to_subset(q, q.bins.rank[first + i])


cdef void one_versus_rest(Search* q, int64_t begin, bint missing) noexcept nogil:
    """Each bin from `begin` on against all others, missing on the given side."""
    cdef int64_t i
    for i in range(begin, q.bins.count):
        begin_bins(q, IN_SUBSET, missing)
        add_bin(q, i, 1)
        if consider(q, i, False):
            if not clear_subset(q):
                return
            add_to_subset(q, q.bins.rank[i])


cdef bint clear_subset(Search* q) noexcept nogil:
    """An empty subset with a bit for every rank of the bins; False without memory."""
    cdef int64_t words = (q.bins.rank[q.bins.count - 1] >> 6) + 1
    if (words > q.subset_words
            and not enlarge(q, <void**>&q.subset, words * sizeof(uint64_t))):
        return False
    q.subset_words = words
    memset(q.subset, 0, words * sizeof(uint64_t))
    return True
