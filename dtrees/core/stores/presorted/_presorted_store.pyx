"""The node step on presorted entries: search every column that varies, partition rows and entries.

Below a node, columns are not searched again that were constant in it, or left no side of the rows
that a leaf needs. A search ends at a split that no other can beat (both sides pure). Cost:
O(entries) per level and column.

A node that is large enough keeps the histogram of each counted column, which has few codes. The
smaller child is counted; the larger one is the parent less the smaller one, in the parent's memory.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dtrees.core.data._columns cimport Column
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._structs cimport ABSOLUTE, ALL_ORDERED, IN_SUBSET, PresortedFeature
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport subtract_words
from dtrees.core.histogram._totals cimport range_of_rows, sum_rows
from dtrees.core.search._absolute_scan cimport place_rows
from dtrees.core.search._bins cimport bins_of_entries, bins_of_histogram, search_histogram
from dtrees.core.search._entry_scan cimport search_feature
from dtrees.core.search._open_node cimport (
    OpenNode, describe, open_children, subtract_child, sum_by_orders
)
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._search cimport Search, cannot_win, perfect_score, work_of_bins
from dtrees.core.stores._partition cimport (
    ChildFeatures, Route, mark_codes, mark_feature, partition_features, partition_row_list
)
from dtrees.core.stores._store cimport CodesOfRanks, Member, Store, prefetch_codes
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef enum:
    MOST_SPARE = 128        # features that an open node has room for, and not


cdef PresortedStore presorted_store() noexcept nogil:
    """A store without rows."""
    cdef PresortedStore s
    memset(&s, 0, sizeof(PresortedStore))
    s.store.search_node = search_node
    s.store.choose = choose
    s.store.partition = partition
    return s


# ---------------------------------------------------------------------------------------------
# search

cdef void search_node(Store* store, Member* member) noexcept nogil:
    cdef PresortedStore* s = <PresortedStore*>store
    cdef OpenNode* node = member.node
    cdef Buffers* w = s.w
    if keeps_histogram(w, node) and node.histogram == NULL:
        node.histogram = <int64_t*>calloc(w.counted.n_words, sizeof(int64_t))
        if node.histogram == NULL:
            store.search.out_of_memory = True
            return
        count_features(w, store.params, node.features, node.n_features, node, node.histogram)
        store.work += node.n_features * node.totals.n
    s.histogram = node.histogram
    search_columns(s, node)


cdef void search_columns(PresortedStore* s, OpenNode* node) noexcept nogil:
    """The best split over the columns that vary in the node; constant ones lose their features."""
    cdef Search* q = s.store.search
    cdef double perfect = perfect_score(q, s.store.params, node)
    cdef int64_t n = node.n_features
    cdef int64_t r
    cdef int64_t kept = 0
    cdef bint varies
    if q.errors != NULL:
        place_rows(q, &s.w.of_row, s.w.rows + node.start, node, s.w.n_rows)
        if q.out_of_memory:
            return
    for r in range(n):
        varies = (cannot_win(q, perfect, node.features[r].column)
                  or search_presorted(s, node, &node.features[r]))
        node.features[kept] = node.features[r]
        kept += varies
    node.n_features = kept


cdef bint search_presorted(PresortedStore* s, const OpenNode* node,
                           const PresortedFeature* feature) noexcept nogil:
    """Search one column of the node, however it is read; False when it is constant, or may not be
    used: not here, and not below."""
    cdef Search* q = s.store.search
    cdef const TrainParameters* params = s.store.params
    cdef const Column* column = params.columns + feature.column
    cdef int64_t* fresh = NULL
    cdef bint varies
    if not may_use(&params.limits, q.sets, feature.column):
        return False
    if feature.length == 0:
        s.store.work += column.n_codes * params.layout.n_words
        if feature.offset < 0 or s.histogram == NULL:
            fresh = fresh_histogram(s, node, column)
            if fresh == NULL:
                return True
        varies = search_histogram(q, &params.layout,
                                  s.histogram + feature.offset if fresh == NULL else fresh,
                                  column.n_codes, feature.column, feature.last_ordered)
        free(fresh)
    elif not may_have_boundary(q, s.w, feature):
        return False
    elif feature.length < q.too_short:
        return True
    else:
        s.store.work += feature.length + 8
        if s.w.narrow:
            varies = search_feature(q, <const uint32_t*>s.w.entries, feature, s.w.ones)
        else:
            varies = search_feature(q, <const uint64_t*>s.w.entries, feature, 0)
    if varies and feature.last_ordered != ALL_ORDERED:
        s.store.work += work_of_bins(q)
    return varies


cdef inline bint may_have_boundary(const Search* q, const Buffers* w,
                                   const PresortedFeature* feature) noexcept nogil:
    """Whether the rows of a column can be divided into two sides of enough rows; else they cannot
    be below the node, either.

        least 3 rows    1 1 2 2 2 2 2 3         one rank has the third row from either end
    """
    cdef const uint32_t* e = <const uint32_t*>w.entries + feature.offset
    cdef int64_t m = feature.length
    cdef uint32_t low, high
    if m < q.min_rows:
        return False  # a side without the fill code
    if q.min_rows <= 1 or not w.narrow or feature.last_ordered != ALL_ORDERED or e[0] >> 16 == 0:
        return True
    low, high = e[q.min_rows - 1] >> 16, e[m - q.min_rows] >> 16
    return low != high if m == q.totals.n else low < feature.fill or feature.fill < high


cdef int64_t* fresh_histogram(const PresortedStore* s, const OpenNode* node,
                              const Column* column) noexcept nogil:
    """The histogram of a column whose node keeps none; the caller frees it.

    NULL without memory, which the search notes.
    """
    cdef const TrainParameters* params = s.store.params
    cdef NodeRows rows = node_rows(s.w, node.start, node.totals.n)
    cdef int64_t* histogram = <int64_t*>calloc(
        (column.n_codes + <int64_t>1) * params.layout.n_words, sizeof(int64_t))
    if histogram == NULL or not count_column(column, &rows, &params.layout, histogram):
        free(histogram)
        s.store.search.out_of_memory = True
        return NULL
    return histogram


# ---------------------------------------------------------------------------------------------
# the split

cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    """Where the node has no features of its own, `chosen` is given, and so is `histogram`."""
    cdef PresortedStore* s = <PresortedStore*>store
    cdef OpenNode* node = member.node
    cdef Search* q = store.search
    cdef const PresortedFeature* feature = node.features
    if feature != NULL:
        while feature.column != q.split.column:
            feature += 1
        s.chosen = feature
    feature = s.chosen
    store.last_ordered = feature.last_ordered
    store.codes = CodesOfRanks(not s.w.narrow or feature.length == 0, feature.fill_code, s.w.row_id)
    if q.split.test == IN_SUBSET:
        collect_bins(s, node)
    else:
        prefetch_codes(store)


cdef void collect_bins(const PresortedStore* s, const OpenNode* node) noexcept nogil:
    """The bins of the chosen column: from its entries, or from its histogram.

    Without memory there are none, which the search notes.
    """
    cdef const TrainParameters* params = s.store.params
    cdef const PresortedFeature* feature = s.chosen
    cdef const Column* column = params.columns + feature.column
    cdef int64_t* fresh = NULL
    if feature.length > 0 and s.w.narrow:
        bins_of_entries(s.store.search, <const uint32_t*>s.w.entries, feature)
    elif feature.length > 0:
        bins_of_entries(s.store.search, <const uint64_t*>s.w.entries, feature)
    else:
        if feature.offset < 0 or s.histogram == NULL:
            fresh = fresh_histogram(s, node, column)
            if fresh == NULL:
                s.store.search.bins.count = 0
                return
        bins_of_histogram(s.store.search, &params.layout,
                          s.histogram + feature.offset if fresh == NULL else fresh,
                          column.n_codes + <int64_t>1, NULL)
        free(fresh)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    """Rows, then the features of the node, if it has any of its own."""
    cdef PresortedStore* s = <PresortedStore*>store
    cdef OpenNode* node = member.node
    cdef const Route* route = &member.route
    cdef Buffers* w = s.w
    cdef const PresortedFeature* feature = s.chosen
    cdef uint32_t* rows = w.rows + node.start
    if feature.length == 0:
        mark_codes(route, store.params.columns + feature.column, w.row_id, rows, node.totals.n,
                   w.side)
    elif w.narrow:
        mark_feature(route, <uint32_t*>w.entries, feature, rows, node.totals.n, w.side)
    else:
        mark_feature(route, <uint64_t*>w.entries, feature, rows, node.totals.n, w.side)
    if not partition_rows(store.params, w, node, member.left, member.right):
        store.search.out_of_memory = True
    elif node.features != NULL:
        partition_node_features(s, node, member.left, member.right)


cdef void partition_node_features(PresortedStore* s, OpenNode* node, OpenNode* left,
                                  OpenNode* right) noexcept nogil:
    """The children of a node get its features and its histograms."""
    cdef Buffers* w = s.w
    cdef int64_t n = node.n_features
    cdef ChildFeatures children
    cdef int64_t* counted
    if not reserve_features(node, left, right):
        s.store.search.out_of_memory = True
        return
    children = ChildFeatures(left.features, &left.n_features, right.features, &right.n_features,
                             s.store.params.limits.min_rows)
    if w.narrow:
        s.store.work += partition_features(<uint32_t*>w.entries, node.features, n, w.side,
                                           <uint32_t*>w.scratch, &children)
    else:
        s.store.work += partition_features(<uint64_t*>w.entries, node.features, n, w.side,
                                           <uint64_t*>w.scratch, &children)
    give_back(left, n)
    give_back(right, n)
    if keeps_histogram(w, left) or keeps_histogram(w, right):
        counted = <int64_t*>calloc(w.counted.n_words, sizeof(int64_t))
        if counted == NULL:
            s.store.search.out_of_memory = True
            return
        count_features(w, s.store.params, node.features, n, smaller_child(left, right), counted)
        give_histograms(w, node, counted, left, right)
        s.store.work += node.totals.n * n // 2


cdef bint reserve_features(const OpenNode* node, OpenNode* left, OpenNode* right) noexcept nogil:
    """Room for the features of a node in each child that is no leaf; False without memory."""
    cdef size_t n_bytes = (node.n_features + 1) * sizeof(PresortedFeature)
    return ((left.is_leaf or claim(<void**>&left.features, n_bytes))
            and (right.is_leaf or claim(<void**>&right.features, n_bytes)))


cdef void give_back(OpenNode* child, int64_t n_features) noexcept nogil:
    """Give back room for so many features, where most of it is not needed."""
    if child.features != NULL and n_features - child.n_features > MOST_SPARE:
        resize(<void**>&child.features, (child.n_features + 1) * sizeof(PresortedFeature))


cdef bint partition_rows(const TrainParameters* params, Buffers* w, const OpenNode* node,
                         OpenNode* left, OpenNode* right) noexcept nogil:
    """Partition the rows of a node by w.side and sum up the children, which get no features.

    False without memory.
    """
    cdef uint32_t* scratch = w.row_scratch + node.start  # of this stretch: buffers are shared
    cdef int64_t n_left = partition_row_list(w.rows + node.start, node.totals.n, w.side, scratch)
    cdef OpenNode* lesser
    cdef OpenNode* other
    if not open_children(node, n_left, params.layout.n_classes, left, right):
        return False
    if node.orders != NULL:
        return sum_by_orders(node, params, &w.of_row, w.rows + node.start, left, right)
    lesser, other = (left, right) if 2 * n_left <= node.totals.n else (right, left)
    sum_rows(&w.of_row, &params.layout, w.rows + lesser.start, NULL, lesser.totals.n,
             &lesser.totals, lesser.class_totals)
    subtract_child(node, lesser, params.layout.n_classes, other)
    if params.criterion.impurity == ABSOLUTE:  # medians are no sums
        sum_rows(&w.of_row, &params.layout, w.rows + other.start, NULL, other.totals.n,
                 &other.totals, NULL)
    elif w.of_row.value != NULL:
        range_of_rows(&w.of_row, w.rows + other.start, other.totals.n, &other.totals)
    describe(left, params)
    describe(right, params)
    return True


# ---------------------------------------------------------------------------------------------
# kept histograms

cdef NodeRows node_rows(const Buffers* w, int64_t start, int64_t n) noexcept nogil:
    """Rows of buffers, to be counted."""
    cdef NodeRows rows
    memset(&rows, 0, sizeof(NodeRows))
    rows.n = n
    rows.rows = w.rows + start
    rows.row_id = w.row_id
    rows.of_row = &w.of_row
    return rows


cdef void count_features(const Buffers* w, const TrainParameters* params,
                         const PresortedFeature* features, int64_t n_features,
                         const OpenNode* node, int64_t* histogram) noexcept nogil:
    """Add the rows of a node to the histograms that are kept of some of its columns."""
    cdef NodeRows rows = node_rows(w, node.start, node.totals.n)
    cdef const PresortedFeature* feature
    cdef int64_t r
    for r in range(n_features):
        feature = features + r
        if feature.length == 0 and feature.offset >= 0:
            count_column(params.columns + feature.column, &rows, &params.layout,
                         histogram + feature.offset)


cdef void give_histograms(const Buffers* w, OpenNode* node, int64_t* of_smaller, OpenNode* left,
                          OpenNode* right) noexcept nogil:
    """Give the children their histograms, from those of the node, which are used up, and of the
    smaller child. O(cells)."""
    cdef bint is_right = smaller_child(left, right) == right
    cdef OpenNode* smaller = right if is_right else left
    cdef OpenNode* larger = left if is_right else right
    if keeps_histogram(w, larger):
        subtract_words(node.histogram, of_smaller, w.counted.n_words)
        larger.histogram = node.histogram
        node.histogram = NULL
    if keeps_histogram(w, smaller):
        smaller.histogram = of_smaller
    else:
        free(of_smaller)
