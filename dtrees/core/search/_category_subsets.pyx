"""The best subset of the categories of a column.

    one number per row, or two classes: prefixes in the order of the means, which hold the best of
    all subsets (Fisher 1958, [CT] "Optimal partitioning")
    more classes: all subsets while there are at most 1,023; else prefixes in the order of the
    first principal component of the class shares (`_category_order`), and one-versus-rest
    Poisson: a side without any target is not allowed, so with categories of zero target the best
    subset need not be a prefix
    gradients: of many categories also those of the lowest means, or those of the highest, against
    the rest; only these pay, and those of few rows are in the rest (`scan_ends`)
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._structs cimport GRADIENT, IN_SUBSET
from dtrees.core.search._category_order cimport order_by_component
from dtrees.core.search._category_penalty cimport (
    FEW_CATEGORIES, TOLD_APART, impurity_of_row, less_penalty
)
from dtrees.core.search._search cimport (
    Bins, Keyed, Search, add_bin, allowed_score, by_class, consider, enlarge, offer, permitted
)
from dtrees.core.search._sort cimport sort_bins
from dtrees.core.search._two_class_scan cimport has_small_entropy, scan_entropy_of_bins

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


cdef void find_subset(Search* q, int64_t first) noexcept nogil:
    cdef Bins* g = q.bins
    cdef int64_t count = g.count - first
    cdef int64_t missing
    if by_class(q) and q.criterion.n_classes != 2:
        if count <= FEW_CATEGORIES:
            search_subsets(q, first, count)
            return
        if not order_by_component(q, first, count):
            return
    else:
        order_by_mean(q, first)
    scan_in_order(q, first, count)
    if by_class(q) and q.criterion.n_classes != 2:
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
    order_by_mean(q, first)
    scan_ends(q, first, count, of_one)
    of_ends = q.best
    if not may_beat(q, max(of_ends, q.split.score) + of_column):
        return
    order_by_mean(q, first)
    q.best = of_ends + of_column
    scan_in_order(q, first, count)
    q.best = q.best - of_column if q.best > of_ends + of_column else of_ends


cdef bint may_beat(const Search* q, double least) noexcept nogil:
    """Whether a subset may score more: none is worth what all bins apart are. O(bins)."""
    cdef const Bins* g = q.bins
    cdef double most = 0
    cdef int64_t i
    for i in range(g.count):
        if g.weight[i] <= 0:
            return True
        most += <double>g.target[i] * <double>g.target[i] / <double>g.weight[i]
    return most * UPWARDS > least


cdef void order_by_mean(Search* q, int64_t first) noexcept nogil:
    """The categories first..count of the bins and their means, not sorted yet."""
    cdef Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t i, at
    for i in range(first, g.count):
        at = i * K + 1 if by_class(q) else i
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
