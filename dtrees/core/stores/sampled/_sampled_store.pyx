"""The node step on row lists: draw columns until one splits, read them, partition the rows.

Nothing but the rows of a node is kept in order; a column is read from their codes when it is drawn.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport Column, last_ordered
from dtrees.core.data._memory cimport claim
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ABSOLUTE, IN_SUBSET, LEAF, RowStatistics
from dtrees.core.search._absolute_errors cimport begin_places, put_place, reserve_places
from dtrees.core.search._absolute_scan cimport place_rows
from dtrees.core.search._open_node cimport (
    OpenNode, describe, open_children, subtract_child, sum_by_orders
)
from dtrees.core.search._parameters cimport Limits, TrainParameters, may_use
from dtrees.core.search._search cimport Search, cannot_win, key_of_tie, perfect_score, work_of_bins
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.sampled._column_loader cimport (
    ColumnLoader, RowPartition, free_loader, new_loader, note_positions, partition_items,
    range_of_items, read_rows, row_numbers, serves, sum_items, take_rows, target_at, weight_at
)
from dtrees.core.stores.sampled._random_split cimport draw_splits, search_simd
from dtrees.core.stores.sampled._sampled_columns cimport (
    bins_of_drawn, codes_to_partition, draw_columns, drop_absent, fetch_ahead, forget_present,
    mark_present, search_drawn
)


cdef enum:
    FEW_COLUMNS = 32        # drawn columns that are sorted: a perfect split of the first ends it


# ---------------------------------------------------------------------------------------------
# memory

cdef SampledStore sampled_store() noexcept nogil:
    """A store without rows."""
    cdef SampledStore s
    memset(&s, 0, sizeof(SampledStore))
    s.store.search_node = search_node
    s.store.choose = choose
    s.store.partition = partition
    s.store.codes.same = True
    return s


cdef void free_sampled(SampledStore* s) noexcept nogil:
    free(s.drawn)
    free(s.swapped)
    free(s.ascending)
    free_loader(s.loader)


cdef bint ready_loader(SampledStore* s, const TrainParameters* params, const RowStatistics* of_row,
                       int64_t n, int64_t n_table_rows) noexcept nogil:
    """Make room in the column loader for n rows of a table; False without memory."""
    if s.loader == NULL or not serves(s.loader, params, of_row, n, n_table_rows):
        free_loader(s.loader)
        s.loader = new_loader(params, of_row, n, n_table_rows)
    return s.loader != NULL


cdef bint begin_rows(SampledStore* s, const TrainParameters* params, const Buffers* w,
                     OpenNode* root) noexcept nogil:
    """Take the rows of a root; False without memory."""
    cdef int64_t n = root.totals.n
    if not ready_loader(s, params, &w.of_row, n, w.n_rows):
        return False
    take_rows(s.loader, params, &w.of_row, w.rows + root.start, n)
    root.start = 0
    return s.n_columns == params.limits.n_columns or number_columns(s, params.limits.n_columns)


cdef bint number_columns(SampledStore* s, int64_t n_columns) noexcept nogil:
    """The permutation that columns are drawn from; False without memory."""
    cdef size_t n_bytes = n_columns * sizeof(int32_t)
    cdef int64_t i
    s.n_columns = 0
    if not (claim(<void**>&s.drawn, n_bytes) and claim(<void**>&s.swapped, n_bytes)
            and claim(<void**>&s.ascending, n_bytes)):
        return False
    for i in range(n_columns):
        s.drawn[i] = <int32_t>i
    s.n_columns = n_columns
    return True


# ---------------------------------------------------------------------------------------------
# search

cdef void search_node(Store* store, Member* member) noexcept nogil:
    """The best split over drawn columns; on beyond max_features, one by one, while none varies.

    Columns that may not be used do not count as drawn.
    """
    cdef SampledStore* s = <SampledStore*>store
    cdef OpenNode* node = member.node
    cdef Search* q = store.search
    cdef const TrainParameters* params = store.params
    cdef int64_t n_columns = params.limits.n_columns
    cdef double perfect = perfect_score(q, params, node)
    cdef int64_t first = 0
    cdef int64_t count = params.limits.max_features
    cdef int64_t n_used = 0
    cdef int64_t i, kept
    cdef int32_t column
    read_rows(s.loader, q, node)
    if q.errors != NULL and not place_items(s.loader, q, node):
        return
    store.work += 2 * node.totals.n
    mark_present(s.loader, node)
    while first < n_columns and (q.split.test == LEAF or n_used < params.limits.max_features):
        count = draw_columns(params, node.path, s.drawn, s.swapped, first, count)
        memcpy(s.ascending, s.drawn + first, count * sizeof(int32_t))
        kept = drop_barred(&params.limits, q, s.ascending, count)
        n_used += kept
        kept = drop_absent(s.loader, s.ascending, kept)
        store.work += count
        if (params.row_codes.codes != NULL and perfect >= 0
                and PATH_IS_ON("random_splits_in_registers")):
            store.work += 2 * node.totals.n
            kept = search_simd(s.loader, q, node, params, s.ascending, kept)
        if kept <= FEW_COLUMNS:
            sort_columns(q, s.ascending, kept)
        if params.limits.random_splits:
            store.work += kept * (node.totals.n + 8)
            draw_splits(s.loader, q, node, params, s.ascending, kept, perfect)
            kept = 0
        for i in range(kept):
            column = s.ascending[i]
            if cannot_win(q, perfect, column):
                continue
            if s.loader.position != NULL:
                fetch_ahead(params.columns, s.ascending, i, kept)
            if search_drawn(s.loader, q, node, params.columns + column, column):
                if params.columns[column].n_ordered < params.columns[column].n_codes:
                    store.work += work_of_bins(q)
            store.work += node.totals.n + 8
        first += count
        count = 1
    forget_present(s.loader, node)
    # the permutation as it was: the swaps once more, the last one first
    for i in range(first - 1, -1, -1):
        column = s.drawn[i]
        s.drawn[i] = s.drawn[s.swapped[i]]
        s.drawn[s.swapped[i]] = column


cdef bint place_items(const ColumnLoader* loader, Search* q, const OpenNode* node) noexcept nogil:
    """Absolute errors: take the rows of a node, which are in the order of y; False without memory.
    """
    cdef const RowPartition* partition = &loader.partition
    cdef int64_t i, item
    if node.orders != NULL:
        place_rows(q, &partition.outputs, row_numbers(loader, node), node, 0)
        return not q.out_of_memory
    if not reserve_places(q.errors, node.totals.n, node.totals.n):
        q.out_of_memory = True
        return False
    for i in range(node.totals.n):
        item = node.start + i
        put_place(q.errors, i + 1, i, partition.value[item], weight_at(partition, item),
                  target_at(partition, item))
    begin_places(q.errors, <int64_t>q.totals.moment)
    return True


cdef inline int64_t drop_barred(const Limits* limits, const Search* q, int32_t* columns,
                                int64_t n) noexcept nogil:
    """Columns that the node may use come to the front; returns how many."""
    cdef int64_t kept = 0
    cdef int64_t i
    if limits.n_set_words == 0:
        return n
    for i in range(n):
        columns[kept] = columns[i]
        kept += may_use(limits, q.sets, columns[i])
    return kept


cdef void sort_columns(const Search* q, int32_t* columns, int64_t n) noexcept nogil:
    """Columns in the order in which they win ties; few, so by insertion."""
    cdef uint64_t[FEW_COLUMNS] keys
    cdef int64_t i, j
    cdef uint64_t key
    cdef int32_t column
    for i in range(n):
        column = columns[i]
        key = key_of_tie(q, column) if q.random_ties else ~<uint64_t>column
        j = i
        while j > 0 and keys[j - 1] < key:
            keys[j] = keys[j - 1]
            columns[j] = columns[j - 1]
            j -= 1
        keys[j] = key
        columns[j] = column


# ---------------------------------------------------------------------------------------------
# the split

cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef SampledStore* s = <SampledStore*>store
    cdef OpenNode* node = member.node
    cdef Search* q = store.search
    cdef const Column* column = store.params.columns + q.split.column
    store.last_ordered = last_ordered(column)
    if q.split.test == IN_SUBSET:
        bins_of_drawn(s.loader, q, node, column, q.split.column)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    """Partition the items of the node by the test itself, and sum up the children."""
    cdef const TrainParameters* params = store.params
    cdef ColumnLoader* loader = (<SampledStore*>store).loader
    cdef const Column* column = params.columns + store.search.split.column
    cdef const OpenNode* node = member.node
    cdef const Route* route = &member.route
    cdef OpenNode* left = member.left
    cdef OpenNode* right = member.right
    cdef RowPartition* partition = &loader.partition
    cdef const uint32_t* codes = codes_to_partition(loader, store.search, node, column,
                                                    route.subset != NULL)
    cdef int64_t n_left = partition_items(partition, node.start, node.totals.n, route, column,
                                          codes, &params.row_codes)
    cdef OpenNode* lesser
    cdef OpenNode* other
    if not open_children(node, n_left, params.layout.n_classes, left, right):
        store.search.out_of_memory = True
        return
    note_positions(loader, node)
    if node.orders != NULL:
        store.search.out_of_memory |= not sum_by_orders(
            node, params, &partition.outputs, row_numbers(loader, node), left, right)
        return
    lesser, other = (left, right) if 2 * n_left <= node.totals.n else (right, left)
    sum_items(partition, lesser.start, lesser.totals.n, &params.layout, &lesser.totals,
              lesser.class_totals)
    subtract_child(node, lesser, params.layout.n_classes, other)
    if params.criterion.impurity == ABSOLUTE:  # medians are no sums
        sum_items(partition, other.start, other.totals.n, &params.layout, &other.totals, NULL)
    elif partition.value != NULL or partition.outputs.value != NULL:
        range_of_items(partition, other.start, other.totals.n, &other.totals)
    describe(left, params)
    describe(right, params)
