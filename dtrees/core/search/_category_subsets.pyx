"""The best subset of the categories of a column.

    one number per row, or two classes: prefixes in the order of the means, which hold the best of
    all subsets (Fisher 1958, [CT] "Optimal partitioning")
    more classes: all subsets while there are at most 1,023; else prefixes in the order of the
    first principal component of the class shares (`_category_order`), and one-versus-rest
    Poisson: a side without any target is not allowed, so with categories of zero target the best
    subset need not be a prefix
    gradients: of many categories, those of the lowest means, or those of the highest, against the
    rest; each of them pays, and those of few rows are in the rest (`scan_ends`)
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._structs cimport GRADIENT, IN_SUBSET
from dtrees.core.search._category_order cimport order_by_component
from dtrees.core.search._category_penalty cimport FEW_CATEGORIES, FREE_CATEGORIES, penalty
from dtrees.core.search._search cimport (
    NONE, Bins, Keyed, Search, add_bin, allowed_score, by_class, consider, enlarge, offer, permitted
)
from dtrees.core.search._sort cimport merge_sort


cdef double search_categories(Search* q, int64_t first) noexcept nogil:
    """Subsets of the categories first..count of the bins; bin 0 is missing when first is 1.

    q.best is without what the best one pays. Returns its whole score.
    """
    cdef double whole = NONE
    find_subset(q, first, &whole)
    if q.criterion.impurity != GRADIENT or whole == NONE:
        whole = q.best
        if q.best > NONE:
            q.best -= penalty(q, first)
    return whole


cdef void find_subset(Search* q, int64_t first, double* whole) noexcept nogil:
    """The best subset. whole : OUT, its score where each subset pays by itself."""
    cdef Bins* g = &q.bins
    cdef int64_t count = g.count - first
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t i, at, missing
    if by_class(q) and K != 2:
        if count <= FEW_CATEGORIES:
            search_subsets(q, first, count)
            return
        if not order_by_component(q, first, count):
            return
    else:
        for i in range(first, g.count):
            at = i * K + 1 if by_class(q) else i
            g.order[i - first].bin = i
            g.order[i - first].key = (<double>g.target[at]
                                      / (<double>g.weight[i] + q.criterion.smoothing))
    if q.criterion.impurity == GRADIENT and count > FEW_CATEGORIES:
        scan_ends(q, first, count, whole)
        return
    scan_in_order(q, first, count)
    if by_class(q) and K != 2:
        for missing in range(first + 1):
            one_versus_rest(q, first, missing)


cdef void scan_in_order(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Prefixes of bins.order[0..count) against the rest, missing on either side."""
    cdef Bins* g = &q.bins
    cdef int64_t missing, i, n_best
    merge_sort(g.order, g.order + g.capacity, count)
    for missing in range(first + 1):
        begin_bins(q, IN_SUBSET, missing)
        n_best = 0
        for i in range(count):
            add_bin(q, g.order[i].bin, 1)
            if i < count - 1 or (first == 1 and not missing):
                if consider(q, i, False):
                    n_best = i + 1
        if n_best > 0 and not clear_subset(q):
            return
        for i in range(n_best):
            add_to_subset(q, g.rank[g.order[i].bin])


cdef void scan_ends(Search* q, int64_t first, int64_t count, double* whole) noexcept nogil:
    """Prefixes of bins.order[0..count) of up to one half, and as many from the other end.

        means    -3   -2   -1    0    1    2    3        pays
        left      *    *                                  2
        left                                    *         1

    Categories that weigh less than `least_category` are never among them: their means are noise.
    Each one beyond FREE_CATEGORIES takes `category_penalty` off the score. So a category goes left
    only if it gains more than what noise would, and a column of thousands is worth what it tells.
    """
    cdef Bins* g = &q.bins
    cdef Keyed* order = g.order
    cdef int64_t kept = 0
    cdef int64_t missing, end, i, at, n_best
    cdef double pays, score
    for i in range(count):
        if <double>g.weight[order[i].bin] >= q.criterion.least_category:
            order[kept] = order[i]
            kept += 1
    merge_sort(order, order + g.capacity, kept)
    for missing in range(first + 1):
        for end in range(2):
            begin_bins(q, IN_SUBSET, missing)
            n_best = 0
            for i in range((kept + 1) // 2):
                at = kept - 1 - i if end else i
                add_bin(q, order[at].bin, 1)
                pays = q.criterion.category_penalty * <double>max(0, i + 1 - FREE_CATEGORIES)
                if not permitted(q):
                    continue
                score = allowed_score(q, True)
                if offer(q, score - pays, i, False):
                    n_best = i + 1
                    whole[0] = score
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
