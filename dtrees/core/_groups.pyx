"""Splits of columns whose order is not, or not all, given: categories and hybrids.

The column is reduced to *groups*, its distinct ranks in the node with their sums. They come from
the entries of a run, or from a histogram, and everything after that is the same, so this search
also serves the ordered columns of nodes that are counted by histogram.

    ordered      prefixes of the ranks
    categories   one number per row, or two classes: prefixes in the order of the means, which
                 holds the best of all subsets (Fisher 1958, [CT] "Optimal partitioning")
                 more classes: all subsets while there are at most 1,023; else prefixes in the
                 order of the first principal component of the class shares (`_component`), and
                 one-versus-rest
                 Poisson: a side without any target is not allowed, so with categories of zero
                 target the best subset need not be a prefix
                 more than eleven of them pay when columns are compared: see `penalty`
    hybrid       `<= v`, `> v` and `= category`: a number is never compared with a category
                 ([SF] 2, tables 3 and 4)

Rows with a missing value are a group of their own, tried on the right and on the left. A category
that a node has not seen goes with them, or to the heavier child; in a hybrid column it fails every
test, as a number does that is compared with a category.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memmove, memset

from dtrees.core._component cimport order_by_component
from dtrees.core._criterion cimport Criterion, natural_log, spread_of, xlogx
from dtrees.core._search cimport (
    BUFFER, NONE, SMALL_WEIGHT, Groups, Keyed, Search, add_group, beats, begin_pass, by_class,
    consider, flush, heavy_enough, offer, permitted, score_side
)
from dtrees.core._sort cimport merge_sort
from dtrees.core._structs cimport (
    ABOVE, AT_MOST, ENTROPY, GINI, IN_SUBSET, POISSON, SQUARED, Run, Split, Totals, entry_t,
    int128_t
)

cdef enum:
    FEW_CATEGORIES = 11     # all their 1,023 subsets are tried, and they cost nothing


cdef bint reserve_groups(Search* q, int64_t count) noexcept nogil:
    """Room for so many groups; False without memory."""
    cdef Groups* g = &q.groups
    cdef void* rank
    cdef void* row
    cdef void* n
    cdef void* weight
    cdef void* target
    cdef void* order
    if count <= g.capacity:
        return True
    count = count + count // 2
    rank = realloc(g.rank, count * sizeof(uint32_t))
    row = realloc(g.row, count * sizeof(int64_t))
    n = realloc(g.n, count * sizeof(int64_t))
    weight = realloc(g.weight, count * sizeof(int64_t))
    target = realloc(g.target, count * q.most_columns_of_target * sizeof(int64_t))
    order = realloc(g.order, 2 * count * sizeof(Keyed))
    g.rank = <uint32_t*>rank if rank != NULL else g.rank
    g.row = <int64_t*>row if row != NULL else g.row
    g.n = <int64_t*>n if n != NULL else g.n
    g.weight = <int64_t*>weight if weight != NULL else g.weight
    g.target = <int64_t*>target if target != NULL else g.target
    g.order = <Keyed*>order if order != NULL else g.order
    if (rank == NULL or row == NULL or n == NULL or weight == NULL or target == NULL
            or order == NULL):
        return False
    g.capacity = count
    return True


cdef int64_t append_group(Search* q, uint32_t rank, int64_t row) noexcept nogil:
    """An empty group behind the last one."""
    cdef Groups* g = &q.groups
    cdef int64_t i = g.count
    reserve_groups(q, i + 1)
    g.rank[i] = rank
    g.row[i] = row
    g.n[i] = 0
    g.weight[i] = 0
    memset(g.target + i * q.n_columns_of_target, 0, q.n_columns_of_target * sizeof(int64_t))
    g.count = i + 1
    return i


cdef void collect_groups(Search* q, const entry_t* entries, const Run* run) noexcept nogil:
    """The distinct ranks of a run with their sums, ascending; the fill code is one of them."""
    cdef const entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef Groups* groups = &q.groups
    cdef const uint16_t* label = q.payload.label
    cdef const int64_t* weight = q.payload.weight
    cdef const int64_t* target = q.payload.target
    cdef int64_t n_fill = q.totals.n - run.length
    cdef int64_t width = q.n_columns_of_target
    cdef bint classes = by_class(q)
    cdef int64_t fill = -1
    cdef int64_t g = -1
    cdef int64_t i = 0
    cdef int64_t n, w, s, row, k
    cdef int64_t* of_class = NULL
    cdef entry_t rank
    groups.count = 0
    while i < run.length:
        rank = e[i] >> shift
        if n_fill > 0 and fill < 0 and rank > run.fill:
            fill = append_group(q, run.fill, -1)
        g = append_group(q, <uint32_t>rank, e[i] & mask)
        n = i
        w = 0
        s = 0
        if classes:
            of_class = groups.target + g * width
        while i < run.length and e[i] >> shift == rank:
            row = e[i] & mask
            i += 1
            if classes:
                k = 1 if weight == NULL else weight[row]
                w += k
                of_class[label[row]] += k
            elif target == NULL:
                s += label[row]
            else:
                s += target[row]
                w += 0 if weight == NULL else weight[row]
        groups.n[g] = i - n
        groups.weight[g] = i - n if weight == NULL else w
        if not classes:
            groups.target[g] = s
    if n_fill > 0:
        if fill < 0:
            fill = append_group(q, run.fill, -1)
        rest_to_group(q, fill)


cdef void rest_to_group(Search* q, int64_t rest) noexcept nogil:
    """A group gets what the node holds beyond the other groups ([SP] 3: total less stored)."""
    cdef Groups* groups = &q.groups
    cdef int64_t width = q.n_columns_of_target
    cdef int64_t n = q.totals.n
    cdef int64_t weight = q.totals.weight
    cdef int64_t* target = groups.target + rest * width
    cdef int64_t g, k
    for k in range(width):
        target[k] = q.class_totals[k] if by_class(q) else q.totals.target
    for g in range(groups.count):
        if g != rest:
            n -= groups.n[g]
            weight -= groups.weight[g]
            for k in range(width):
                target[k] -= groups.target[g * width + k]
    groups.n[rest] = n
    groups.weight[rest] = weight


cdef void drop_group(Search* q, int64_t gone) noexcept nogil:
    """Take a group out; those behind it move up."""
    cdef Groups* groups = &q.groups
    cdef int64_t width = q.n_columns_of_target
    cdef int64_t behind
    groups.count -= 1
    behind = groups.count - gone
    memmove(groups.rank + gone, groups.rank + gone + 1, behind * sizeof(uint32_t))
    memmove(groups.row + gone, groups.row + gone + 1, behind * sizeof(int64_t))
    memmove(groups.n + gone, groups.n + gone + 1, behind * sizeof(int64_t))
    memmove(groups.weight + gone, groups.weight + gone + 1, behind * sizeof(int64_t))
    memmove(groups.target + gone * width, groups.target + (gone + 1) * width,
            behind * width * sizeof(int64_t))


cdef void search_groups(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil:
    """Search a column given as groups; keep its best split if it beats q.split.

    Serves columns with categories, and every column whose statistics come as a histogram.
    """
    cdef Groups* g = &q.groups
    cdef int64_t first = 1 if g.count > 0 and g.rank[0] == 0 else 0
    cdef int64_t last = first
    cdef int64_t missing, i
    cdef double unpenalized
    q.best = NONE
    while last < g.count and g.rank[last] <= last_ordered:
        last += 1
    for missing in range(first + 1):
        if last > first:
            begin_pass(q, AT_MOST, missing)
            if missing:
                add_group(q, 0, 1)
            scan_ordered(q, first, last, last < g.count or (first == 1 and not missing))
            if last < g.count:
                # > v: the side is the right one, categories first; missing with the tested side
                begin_pass(q, ABOVE, missing)
                if first == 1 and not missing:
                    add_group(q, 0, 1)
                for i in range(last, g.count):
                    add_group(q, i, 1)
                for i in range(first, last - 1):
                    add_group(q, i, 1)
                    consider_mirrored(q, i)
                for i in range(last, g.count):
                    begin_pass(q, IN_SUBSET, missing)
                    if missing:
                        add_group(q, 0, 1)
                    add_group(q, i, 1)
                    if consider(q, i, False):
                        clear_subset(q)
                        add_to_subset(q, g.rank[i])
    if last > first or last == g.count:
        keep_best(q, column, first, last)
        return
    search_categories(q, first)
    unpenalized = q.best
    if q.best > NONE:
        q.best -= penalty(q, first)
    keep_best(q, column, first, last)
    if q.split.column == column:
        q.split.unpenalized = unpenalized


cdef void keep_best(Search* q, int32_t column, int64_t first, int64_t last) noexcept nogil:
    """Take the best boundary of a column as the node's split if it beats what is there.

    first, last : the ordered groups; group 0 is missing when first is 1.
    """
    cdef Groups* g = &q.groups
    cdef Split* split = &q.split
    cdef int64_t words
    if not beats(q, column):
        return
    split.score = q.best
    split.unpenalized = q.best
    split.column = column
    split.test = q.best_test
    split.missing_left = q.best_missing
    split.saw_missing = first
    split.boundary = 0
    split.beyond = 0
    split.boundary_row = -1
    split.beyond_row = -1
    if q.best_test != IN_SUBSET:
        split.boundary = g.rank[q.best_at]
        split.boundary_row = g.row[q.best_at]
        if q.best_at + 1 < last:
            split.beyond = g.rank[q.best_at + 1]
            split.beyond_row = g.row[q.best_at + 1]
        return
    if first == 1 and q.best_missing:
        add_to_subset(q, 0)
    words = q.subset_words
    if words > q.split_subset_words:
        q.split_subset = <uint64_t*>realloc(q.split_subset, words * sizeof(uint64_t))
    q.split_subset_words = words
    memcpy(q.split_subset, q.subset, words * sizeof(uint64_t))


cdef void scan_ordered(Search* q, int64_t first, int64_t last, bint close) noexcept nogil:
    """Prefixes of the groups first..last; `close`: all of them are a candidate too."""
    cdef int64_t i
    if not by_class(q):
        scan_pair_groups(q, first, last, close)
    elif q.criterion.impurity == GINI and q.totals.weight < SMALL_WEIGHT:
        scan_class_groups(q, first, last, close)
    else:
        for i in range(first, last):
            add_group(q, i, 1)
            if i < last - 1 or close:
                consider(q, i, False)


cdef void scan_pair_groups(Search* q, int64_t first, int64_t last, bint close) noexcept nogil:
    """One number per row: candidates are written to the buffer, kept by moving the cursor."""
    cdef const Groups* g = &q.groups
    cdef int64_t least = q.min_rows
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t s = q.s
    cdef int64_t k = 0
    cdef int64_t i
    for i in range(first, last if close else last - 1):
        n += g.n[i]
        w += g.weight[i]
        s += g.target[i]
        q.buffer_w[k] = <double>w
        q.buffer_rest[k] = <double>(q.totals.weight - w)
        q.buffer_a[k] = <double>s
        q.buffer_at[k] = <int32_t>i
        k += (n >= least) & (n <= most) & heavy_enough(q, w)
        if k == BUFFER:
            q.buffered = k
            flush(q, False, False, False, 0)
            k = 0
    q.buffered = k
    flush(q, False, False, False, 0)


cdef void scan_class_groups(Search* q, int64_t first, int64_t last, bint close) noexcept nogil:
    """Gini index of several classes, whose sums of squares fit 64 bits."""
    cdef const Groups* g = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t* side = q.side
    cdef const int64_t* totals = q.class_totals
    cdef const int64_t* of_class
    cdef int64_t least = q.min_rows
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t node_squares = <int64_t>q.squares
    cdef int64_t squares = <int64_t>q.side_squares
    cdef int64_t cross = <int64_t>q.cross
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t k = 0
    cdef int64_t i, c, x, old
    q.side_is_clear = False
    for i in range(first, last if close else last - 1):
        of_class = g.target + i * K
        for c in range(K):
            x = of_class[c]
            old = side[c]
            squares += x * (2 * old + x)
            cross += x * totals[c]
            side[c] = old + x
        n += g.n[i]
        w += g.weight[i]
        q.buffer_w[k] = <double>w
        q.buffer_rest[k] = <double>(q.totals.weight - w)
        q.buffer_a[k] = <double>squares
        q.buffer_b[k] = <double>((node_squares - cross) + (squares - cross))
        q.buffer_at[k] = <int32_t>i
        k += (n >= least) & (n <= most) & heavy_enough(q, w)
        if k == BUFFER:
            q.buffered = k
            flush(q, False, True, False, 0)
            k = 0
    q.buffered = k
    flush(q, False, True, False, 0)


cdef inline bint consider_mirrored(Search* q, int64_t at) noexcept nogil:
    """The side is what the test sends right, but candidates come in ascending order."""
    if not permitted(q):
        return False
    return offer(q, score_side(q, True), at, False)


cdef void clear_subset(Search* q) noexcept nogil:
    """An empty subset with a bit for every rank of the groups."""
    cdef int64_t words = (q.groups.rank[q.groups.count - 1] >> 6) + 1
    if words > q.subset_words:
        q.subset = <uint64_t*>realloc(q.subset, words * sizeof(uint64_t))
    q.subset_words = words
    memset(q.subset, 0, words * sizeof(uint64_t))


cdef void scan_in_order(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Prefixes of groups.order[0..count) against the rest, missing on either side."""
    cdef Groups* g = &q.groups
    cdef int64_t missing, i, best
    cdef bint found
    merge_sort(g.order, g.order + g.capacity, count)
    for missing in range(first + 1):
        begin_pass(q, IN_SUBSET, missing)
        found = False
        best = 0
        if missing:
            add_group(q, 0, 1)
        for i in range(count):
            add_group(q, g.order[i].group, 1)
            if i < count - 1 or (first == 1 and not missing):
                if consider(q, i, False):
                    found = True
                    best = i
        if found:
            clear_subset(q)
            for i in range(best + 1):
                add_to_subset(q, g.rank[g.order[i].group])


cdef void search_categories(Search* q, int64_t first) noexcept nogil:
    """Subsets of the categories first..count of the groups; group 0 is missing when first is 1."""
    cdef Groups* g = &q.groups
    cdef int64_t count = g.count - first
    cdef int64_t i
    cdef int64_t K = q.criterion.n_classes
    if not by_class(q) or K == 2:
        for i in range(count):
            g.order[i].group = first + i
            if by_class(q):
                g.order[i].key = (<double>g.target[(first + i) * K + 1]
                                  / <double>g.weight[first + i])
            else:
                g.order[i].key = <double>g.target[first + i] / <double>g.weight[first + i]
        scan_in_order(q, first, count)
    elif count <= FEW_CATEGORIES:
        search_subsets(q, first, count)
    else:
        order_by_component(q, first, count)
        scan_in_order(q, first, count)
        search_one_versus_rest(q, first, count)


cdef double penalty(const Search* q, int64_t first) noexcept nogil:
    """What the best subset of the categories from `first` on pays, in units of the score.

    Means of M categories that say nothing differ by M - 1 times the impurity of a row, and the best
    subset finds most of that. So each category beyond FEW_CATEGORIES pays `category_penalty` times
    the impurity of a row *within* its category, which is small where categories tell much:

        (within + total * groups / rows) / rows

    `within` is what is left of the node's impurity when each group is a node of its own. The second
    term gives back what groups of few rows lose by their being few: when categories say
    nothing, the expectation is total / rows, however small they are.

    Rows of a mean weight above one count as so many, so a row of weight two is a row given
    twice; lighter ones count as one, so a small unit of the weights makes no column dear.
    O(groups * classes).
    """
    cdef const Groups* g = &q.groups
    cdef int64_t beyond = g.count - first - FEW_CATEGORIES
    cdef double rows = q.W * q.criterion.weight_unit
    cdef double total, within
    if beyond <= 0 or q.criterion.category_penalty == 0:
        return 0
    if rows < q.totals.n:
        rows = <double>q.totals.n
    total = total_impurity(q)
    within = impurity_within(q, total)
    within = (within + total * (<double>g.count / rows)) / rows
    if q.criterion.impurity == SQUARED:
        within = within * q.W
    return q.criterion.category_penalty * <double>beyond * within


cdef double total_impurity(const Search* q) noexcept nogil:
    """Impurity times weight of the node; squared errors without the factor of their scores."""
    cdef const Criterion* c = q.criterion
    cdef const Totals* t = &q.totals
    cdef double found
    if c.impurity == ENTROPY:
        return <double>(xlogx(c, t.weight) - q.entropy)
    if c.impurity == GINI:
        return <double>(<int128_t>t.weight * t.weight - q.squares) / q.W
    if c.n_classes > 0:
        return <double>(<int128_t>t.target * (t.weight - t.target)) / q.W
    if c.impurity == POISSON:
        found = moment_of_score(q) - half_deviance(q, t.target, t.weight)
    elif c.one_scale:
        found = <double>spread_of(t, c.weight_unit) * c.weight_unit
    else:
        found = moment_of_score(q) - q.S * q.S / q.W
    return found if found > 0 else 0


cdef double impurity_within(const Search* q, double total) noexcept nogil:
    """The same, summed up over the groups."""
    cdef const Groups* g = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef const int64_t* of_class
    cdef double D
    cdef double found = 0
    cdef int64_t exact = 0
    cdef int64_t i, k
    cdef int128_t squares
    if by_class(q):
        for i in range(g.count):
            of_class = g.target + i * K
            if q.criterion.impurity == ENTROPY:
                exact += xlogx(q.criterion, g.weight[i])
                for k in range(K):
                    exact -= xlogx(q.criterion, of_class[k])
            else:
                squares = <int128_t>g.weight[i] * g.weight[i]
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
            found += D * D / <double>g.weight[i]
        found = total - found / q.W / q.W
    return found if found > 0 else 0


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


cdef void search_subsets(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Every subset that lacks the last category, in Gray code order: one group moves a step."""
    cdef Groups* g = &q.groups
    cdef int64_t missing, step, bit, i, gray, best
    cdef bint found
    for missing in range(first + 1):
        begin_pass(q, IN_SUBSET, missing)
        found = False
        best = 0
        gray = 0
        if missing:
            add_group(q, 0, 1)
        for step in range(1, <int64_t>1 << (count - 1)):
            bit = 0
            while not (step >> bit) & 1:
                bit += 1
            gray ^= <int64_t>1 << bit
            add_group(q, first + bit, 1 if (gray >> bit) & 1 else -1)
            if consider(q, gray, False):
                found = True
                best = gray
        if first == 1 and not missing:
            begin_pass(q, IN_SUBSET, missing)
            for i in range(count):
                add_group(q, first + i, 1)
            gray = (<int64_t>1 << count) - 1
            if consider(q, gray, False):
                found = True
                best = gray
        if found:
            clear_subset(q)
            for i in range(count):
                if (best >> i) & 1:
                    add_to_subset(q, g.rank[first + i])


cdef void search_one_versus_rest(Search* q, int64_t first, int64_t count) noexcept nogil:
    cdef Groups* g = &q.groups
    cdef int64_t missing, i
    for missing in range(first + 1):
        for i in range(first, g.count):
            begin_pass(q, IN_SUBSET, missing)
            if missing:
                add_group(q, 0, 1)
            add_group(q, i, 1)
            if consider(q, i, False):
                clear_subset(q)
                add_to_subset(q, g.rank[i])
