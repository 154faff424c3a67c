"""Splits of columns whose order is not, or not all, given: categories and hybrids.

The column is reduced to *bins*, its distinct ranks in the node with their sums. They come from
the entries of a feature, or from a histogram, and everything after that is the same, so this search
also serves the ordered columns of nodes that are counted by histogram.

    ordered      prefixes of the ranks
    categories   subsets (`_categories`); more than eleven pay when columns are compared
    hybrid       `<= v`, `> v` and `= category`: a number is never compared with a category
                 ([SF] 2, tables 3 and 4)

Rows with a missing value are a bin of their own, tried on the right and on the left. A category
that a node has not seen goes with them, or to the heavier child; in a hybrid column it fails every
test, as a number does that is compared with a category.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from dtrees.core.data._structs cimport (
    ABOVE, AT_MOST, GRADIENT, IN_SUBSET, LEAF, SQUARED, PresortedFeature, Split, entry_t
)
from dtrees.core.histogram._layout cimport (
    CLASSES, COUNT, GRADIENTS, OUTPUTS, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind,
    Layout, add_outputs, decode_gradients
)
from dtrees.core.search._categories cimport (
    add_to_subset, begin_bins, one_versus_rest, search_categories
)
from dtrees.core.search._criterion cimport mean_hessian, most_of_difference
from dtrees.core.search._number_scan cimport least_reaching
from dtrees.core.search._output_scan cimport scan_bins_of_outputs
from dtrees.core.search._search cimport (
    BUFFER, Bins, Boundaries, Keyed, Search, add_bin, allowed_score, begin_column, begin_pass,
    by_class, consider, enlarge, flush, heavy_enough, is_bound, offer, permitted, squares_are_small,
    take_best
)
from dtrees.core.search._two_class_scan cimport has_small_entropy, scan_entropy_of_bins


cdef bint reserve_bins(Search* q, int64_t count) noexcept nogil:
    """Room for so many bins; False without memory, which the search notes."""
    cdef Bins* g = q.bins
    if count <= g.capacity:
        return True
    count = count + count // 2
    if not (enlarge(q, <void**>&g.rank, count * sizeof(uint32_t))
            and enlarge(q, <void**>&g.row, count * sizeof(int64_t))
            and enlarge(q, <void**>&g.n, count * sizeof(int64_t))
            and enlarge(q, <void**>&g.weight, count * sizeof(int64_t))
            and enlarge(q, <void**>&g.target, count * q.most_columns_of_target * sizeof(int64_t))
            and enlarge(q, <void**>&g.order, 2 * count * sizeof(Keyed))):
        return False
    g.capacity = count
    return True


cdef inline void read_bins(Search* q, const int64_t* cells, CellKind kind, int64_t n_classes,
                           int64_t n_words, int64_t n_cells, const uint32_t* code) noexcept nogil:
    """`kind` is a constant where it is called. n_classes : that are summed each; 0: none."""
    cdef int64_t g = 0
    cdef int64_t i
    for i in range(n_cells):
        g += read_cell(q, cells + i * n_words, kind, n_classes,
                       <uint32_t>i if code == NULL else code[i], g)
    q.bins.count = g


cdef void read_gradients(Search* q, const Layout* layout, const int64_t* cells,
                         int64_t n_cells) noexcept nogil:
    """Read bins from cells of gradients, whose fields depend on the layout."""
    cdef Bins* bins = q.bins
    cdef int64_t width = q.n_columns_of_target
    cdef int64_t m = q.criterion.n_outputs if by_class(q) else 1
    cdef int64_t g = 0
    cdef int64_t i, o
    cdef int64_t* fields
    for i in range(n_cells):
        fields = bins.target + g * width
        bins.rank[g] = <uint32_t>i
        bins.row[g] = -1
        for o in range(m):
            bins.n[g] = decode_gradients(cells + o * layout.to_next_output + 2 * i, layout.shift,
                                         bins.weight + g, fields + o)
            if width > m:
                fields[m + o] = bins.weight[g]
        if width > m:
            bins.weight[g] = mean_hessian(q.criterion, fields)
        g += bins.n[g] > 0
    bins.count = g


cdef void bins_of_histogram(Search* q, const Layout* layout, const int64_t* cells,
                            int64_t n_cells, const uint32_t* code) noexcept nogil:
    """The codes that occur in a histogram. O(words of the histogram).

    code : of each cell, ascending; NULL: its number. Without memory no bins, as the search notes.
    """
    if not reserve_bins(q, n_cells):
        q.bins.count = 0
    elif layout.kind == GRADIENTS:
        read_gradients(q, layout, cells, n_cells)
    elif layout.kind == COUNT:
        read_bins(q, cells, COUNT, 0, 1, n_cells, code)
    elif layout.kind == SUM:
        read_bins(q, cells, SUM, 0, 2, n_cells, code)
    elif layout.kind == WEIGHTED_SUM:
        read_bins(q, cells, WEIGHTED_SUM, 0, 3, n_cells, code)
    elif layout.kind == CLASSES and layout.n_classes == 2:
        read_bins(q, cells, CLASSES, 2, 2, n_cells, code)
    elif layout.kind == CLASSES:
        read_bins(q, cells, CLASSES, layout.n_classes, layout.n_words, n_cells, code)
    elif layout.kind == OUTPUTS:
        read_bins(q, cells, OUTPUTS, layout.n_classes, layout.n_words, n_cells, code)
    else:
        read_bins(q, cells, WEIGHTED_CLASSES, layout.n_classes, layout.n_words, n_cells, code)


cdef void weigh_bins(Search* q, const int64_t* of_class) noexcept nogil:
    """Multiply sums of rows by the weights of their classes."""
    cdef Bins* bins = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t first = of_class[0]
    cdef int64_t second = of_class[1] if K > 1 else 0
    cdef int64_t g, k, weight
    cdef int64_t* target
    if not by_class(q):
        for g in range(bins.count):
            weight = first * (bins.weight[g] - bins.target[g])
            bins.target[g] *= second
            bins.weight[g] = weight + bins.target[g]
        return
    for g in range(bins.count):
        target = bins.target + g * K
        weight = 0
        for k in range(K):
            target[k] *= of_class[k]
            weight += target[k]
        bins.weight[g] = weight


cdef bint search_histogram(Search* q, const Layout* layout, const int64_t* cells,
                           int64_t n_codes, int32_t column, uint32_t last_ordered) noexcept nogil:
    """Search one column; keep its best split in q.split if it beats what is there.

    Returns False when the column is constant in the node. O(words), and the search over bins.
    """
    bins_of_histogram(q, layout, cells, n_codes + 1, NULL)
    if q.bins.count <= 1:
        return False
    search_bins(q, column, last_ordered)
    return True


cdef void bins_of_entries(Search* q, const entry_t* entries,
                          const PresortedFeature* feature) noexcept nogil:
    """The distinct ranks of a feature with their sums, ascending; the fill code is one of them.

    Without memory there are no bins, which the search notes.
    """
    cdef const entry_t* e = entries + feature.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef Bins* bins = q.bins
    cdef const uint16_t* label = q.of_row.label
    cdef const int64_t* weight = q.of_row.weight
    cdef const int64_t* target = q.of_row.target
    cdef int64_t n_fill = q.totals.n - feature.length
    cdef int64_t width = q.n_columns_of_target
    cdef bint two = by_class(q) and width == 2 and weight == NULL and q.kind != OUTPUTS
    cdef bint classes = by_class(q) and not two
    cdef int64_t fill = -1
    cdef int64_t g = -1
    cdef int64_t i = 0
    cdef int64_t n, w, s, row, k
    cdef int64_t* of_class = NULL
    cdef entry_t rank
    bins.count = 0
    while i < feature.length:
        rank = e[i] >> shift
        if n_fill > 0 and fill < 0 and rank > feature.fill:
            fill = append_bin(q, feature.fill, -1)
        g = append_bin(q, <uint32_t>rank, e[i] & mask)
        if q.out_of_memory:
            bins.count = 0
            return
        n = i
        w = 0
        s = 0
        if classes:
            of_class = bins.target + g * width
        while i < feature.length and e[i] >> shift == rank:
            row = e[i] & mask
            i += 1
            if classes:
                k = 1 if weight == NULL else weight[row]
                w += k
                if q.kind == OUTPUTS:
                    add_outputs(of_class, &q.of_row, row, k)
                else:
                    of_class[label[row]] += k
            elif two or target == NULL:
                s += label[row]
            else:
                s += target[row]
                w += 0 if weight == NULL else weight[row]
        bins.n[g] = i - n
        bins.weight[g] = i - n if weight == NULL else w
        if two:
            bins.target[2 * g] = bins.n[g] - s
            bins.target[2 * g + 1] = s
        elif not classes:
            bins.target[g] = s
    if n_fill > 0:
        if fill < 0:
            fill = append_bin(q, feature.fill, -1)
        if q.out_of_memory:
            bins.count = 0
            return
        rest_to_bin(q, fill)


cdef void rest_to_bin(Search* q, int64_t rest) noexcept nogil:
    """A bin gets what the node holds beyond the other bins ([SP] 3: total less stored)."""
    cdef Bins* bins = q.bins
    cdef int64_t width = q.n_columns_of_target
    cdef int64_t n = q.totals.n
    cdef int64_t weight = q.totals.weight
    cdef int64_t* target = bins.target + rest * width
    cdef int64_t g, k
    for k in range(width):
        target[k] = q.class_totals[k] if by_class(q) else q.totals.target
    for g in range(bins.count):
        if g != rest:
            n -= bins.n[g]
            weight -= bins.weight[g]
            for k in range(width):
                target[k] -= bins.target[g * width + k]
    bins.n[rest] = n
    bins.weight[rest] = weight


cdef void drop_bin(Search* q, int64_t gone) noexcept nogil:
    """Take a bin out; those behind it move up."""
    cdef Bins* bins = q.bins
    cdef int64_t width = q.n_columns_of_target
    cdef int64_t behind
    bins.count -= 1
    behind = bins.count - gone
    memmove(bins.rank + gone, bins.rank + gone + 1, behind * sizeof(uint32_t))
    memmove(bins.row + gone, bins.row + gone + 1, behind * sizeof(int64_t))
    memmove(bins.n + gone, bins.n + gone + 1, behind * sizeof(int64_t))
    memmove(bins.weight + gone, bins.weight + gone + 1, behind * sizeof(int64_t))
    memmove(bins.target + gone * width, bins.target + (gone + 1) * width,
            behind * width * sizeof(int64_t))


cdef void search_bins(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil:
    """Search a column given as bins; keep its best split if it beats q.split.

    Serves columns with categories, and every column whose statistics come as a histogram.
    """
    cdef Bins* g = q.bins
    cdef int64_t first = 1 if g.count > 0 and g.rank[0] == 0 else 0
    cdef int64_t last = first
    cdef int64_t missing
    cdef double whole
    begin_column(q, column)
    while last < g.count and g.rank[last] <= last_ordered:
        last += 1
    if last == first and last < g.count:
        whole = search_categories(q, first)
        keep_best(q, column, first, last)
        if q.split.column == column:
            q.split.unpenalized = whole
        return
    for missing in range(first + 1):
        if last > first:
            begin_bins(q, AT_MOST, missing)
            scan_ordered(q, first, last, last < g.count or (first == 1 and not missing))
            if last < g.count:
                search_above(q, first, last, missing)
                one_versus_rest(q, last, missing)
    keep_best(q, column, first, last)


cdef void search_above(Search* q, int64_t first, int64_t last, bint missing) noexcept nogil:
    """`> v` in a hybrid column: the side is what the test sends right, categories first.

    Candidates come in ascending order all the same; missing goes with the tested side.
    """
    cdef int64_t i
    begin_pass(q, ABOVE, missing)
    if first == 1 and not missing:
        add_bin(q, 0, 1)
    for i in range(last, q.bins.count):
        add_bin(q, i, 1)
    for i in range(first, last - 1):
        add_bin(q, i, 1)
        if permitted(q):
            offer(q, allowed_score(q, True), i, False)


cdef void keep_best(Search* q, int32_t column, int64_t first, int64_t last) noexcept nogil:
    """Take the best boundary of a column as the node's split if it beats what is there.

    first, last : the ordered bins; bin 0 is missing when first is 1.
    """
    cdef Bins* g = q.bins
    cdef Split* split = &q.split
    cdef int64_t words = q.subset_words
    if not take_best(q, column, first):
        return
    if q.best_test != IN_SUBSET:
        split.boundary = g.rank[q.best_at]
        split.boundary_row = g.row[q.best_at]
        if q.best_at + 1 < last:
            split.beyond = g.rank[q.best_at + 1]
            split.beyond_row = g.row[q.best_at + 1]
        return
    if words > q.split_subset_words:
        enlarge(q, <void**>&q.split_subset, words * sizeof(uint64_t))
    if q.out_of_memory:
        split.test = LEAF
        return
    if first == 1 and q.best_missing:
        add_to_subset(q, 0)
    q.split_subset_words = words
    memcpy(q.split_subset, q.subset, words * sizeof(uint64_t))


cdef void scan_ordered(Search* q, int64_t first, int64_t last, bint close) noexcept nogil:
    """Prefixes of the bins first..last; `close`: all of them are a candidate too."""
    cdef int64_t end = last if close else last - 1
    cdef int64_t i
    if q.criterion.impurity == SQUARED:
        scan_squared(q, first, end)
    elif not by_class(q) and q.errors == NULL:
        scan_buffered(q, first, end, False)
    elif squares_are_small(q):
        scan_buffered(q, first, end, True)
    elif has_small_entropy(q):
        scan_entropy_of_bins(q, NULL, first, end)
    elif q.kind == OUTPUTS and q.criterion.impurity != GRADIENT and q.errors == NULL:
        scan_bins_of_outputs(q, first, end)
    else:
        for i in range(first, end):
            add_bin(q, i, 1)
            consider(q, i, False)


cdef void scan_squared(Search* q, int64_t first, int64_t end) noexcept nogil:
    """The boundaries behind the bins first..end. Few of them reach the best score so far, which
    takes no division to see, and only these are scored (`_number_scan`)."""
    cdef const Bins* g = q.bins
    cdef double W = q.W
    cdef double S = q.S
    cdef double reach = least_reaching(q)
    cdef int64_t i
    cdef double D, w
    for i in range(first, end):
        q.n += g.n[i]
        q.w += g.weight[i]
        q.s += g.target[i]
        w = <double>q.w
        D = most_of_difference(W, S, w, <double>q.s)
        if D * D >= reach * (w * <double>(q.totals.weight - q.w)) and consider(q, i, False):
            reach = least_reaching(q)


cdef inline void scan_buffered(Search* q, int64_t first, int64_t end,
                               bint classes) noexcept nogil:
    """The boundaries behind the bins first..end, kept in the buffer by moving the cursor.

    `classes` is a constant where this is inlined: the Gini index of several classes, whose sums of
    squares fit 64 bits; else one number per row.
    """
    cdef const Bins* g = q.bins
    cdef Boundaries* kept = q.boundaries
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
    cdef int64_t s = q.s
    cdef int64_t i, c, x, old, k = 0
    cdef bint bound = is_bound(q)
    if classes:
        q.side_is_clear = False
    for i in range(first, end):
        if classes:
            of_class = g.target + i * K
            for c in range(K):
                x = of_class[c]
                old = side[c]
                squares += x * (2 * old + x)
                cross += x * totals[c]
                side[c] = old + x
            kept.b[k] = <double>((node_squares - cross) + (squares - cross))
        else:
            s += g.target[i]
            if bound:
                kept.b[k] = <double>(q.totals.target - s)
        n += g.n[i]
        w += g.weight[i]
        kept.w[k] = <double>w
        kept.rest[k] = <double>(q.totals.weight - w)
        kept.a[k] = <double>(squares if classes else s)
        kept.at[k] = <int32_t>i
        k += (n >= least) & (n <= most) & heavy_enough(q, w)
        if k == BUFFER:
            q.buffered = k
            flush(q, False, classes)
            k = 0
    q.buffered = k
    flush(q, False, classes)
