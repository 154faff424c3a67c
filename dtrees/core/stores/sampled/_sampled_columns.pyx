"""Columns that are drawn and read afresh: for nodes that search a few columns of many.

Keeping every column in order for every node (`_buffers`) pays when all of them are searched.
Where a node draws a few, as in a random forest, its rows are all that is kept (`_row_partition`,
`_column_loader`), and a drawn column is read from the codes of these rows:

    many rows     a histogram, all cells cleared and visited                    _sampled_histogram
    few rows      a histogram with a bit per code, so that only codes that      _sampled_histogram
                  occur are visited
    few for the   of codes, or of classes, each with a number in a cell: rows   _sampled_entries
      cells       are sorted by code
    sparse        the stored rows of the column that are in the node, found     _sampled_entries
                  by the position of every row or by binary search
    random splits the range of the codes, then the sums of one side             _random_split

Two classes fit one number per row, and a cell takes one addition.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from dtrees._random cimport below, hash64
from dtrees.core.data._columns cimport STORED_SPARSE, Column, last_ordered
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ALL_ORDERED, BY_FUNCTION, RowStatistics
from dtrees.core.search._bins cimport bins_of_entries, search_bins
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._entry_scan cimport search_feature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, by_class
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader
from dtrees.core.stores.sampled._sampled_entries cimport read_entries
from dtrees.core.stores.sampled._sampled_histogram cimport bins_of_dense, layout_of

cdef enum:
    SORT_COST = 4           # of an entry against that of a number in a cell
    MOST_WORDS = 16         # numbers in the histogram of a column, for each row of the growth


cdef int64_t draw_columns(const TrainParameters* params, uint64_t path, int32_t* order,
                          int32_t* swapped, int64_t first, int64_t count) noexcept nogil:
    """Draws first .. first+count of a node's keyed permutation of the columns.

    order : a permutation; draw i is left in order[i], and in swapped[i] where it came from, NULL
    when nobody wants to know. Draw k depends on (seed, tree, path, k) and the draws before it only.
    Returns how many there are.
    """
    cdef int64_t n = params.limits.n_columns
    cdef int64_t i, j
    cdef int32_t column
    cdef uint64_t key = hash64(hash64(params.limits.seed, params.limits.tree), path)
    if first + count > n:
        count = n - first
    for i in range(first, first + count):
        j = i + <int64_t>below(hash64(key, <uint64_t>i), <uint64_t>(n - i))
        column = order[i]
        order[i] = order[j]
        order[j] = column
        if swapped != NULL:
            swapped[i] = <int32_t>j
    return count


def drawn_columns(Dataset dataset, uint64_t path, int64_t first, int64_t count):
    """Draws first .. first+count of a node's columns, in their order; int32 (<= count,)."""
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef int32_t[::1] order = np.arange(n_columns, dtype=np.int32)
    count = min(count, n_columns - first)
    if dataset.params.limits.max_features < n_columns:
        draw_columns(&dataset.params, path, &order[0], NULL, 0, first + count)
    return np.asarray(order)[first:first + count].copy()


def n_first_draws(Dataset dataset, uint64_t path, sets):
    """How many draws a node begins with: so many that it may use `max_features` of them.

    sets : bytes or None
        A bit for each set of columns that its ancestors have left it. None: all.
    """
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef int64_t n_used = dataset.params.limits.max_features
    if dataset.sets_of_column is None:
        return n_used
    own = dataset.sets_of_column[drawn_columns(dataset, path, 0, n_columns)]
    if sets is not None:
        own &= np.frombuffer(sets, dtype=np.uint64)
    return min(int(np.searchsorted(np.cumsum(own.any(axis=1)), n_used)) + 1, n_columns)


cdef bint search_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil:
    """Read and search one column; False when it is constant in the node."""
    cdef const Criterion* criterion
    cdef bint varies
    if (by_class(q) and last_ordered(column) == ALL_ORDERED
            and q.criterion.impurity != BY_FUNCTION and PATH_IS_ON("local_classes")):
        criterion = q.criterion
        see_local(loader, q)
        varies = search_read(loader, q, node, column, number)
        see_all(q, criterion, node)
        return varies
    return search_read(loader, q, node, column, number)


cdef bint search_read(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                      int32_t number) noexcept nogil:
    """The same by sorted entries or by a histogram, whichever is cheaper."""
    cdef RowStatistics of_row
    cdef bint varies
    if by_entries(loader, q, column, node.totals.n):
        read_entries(loader, q, node, column, number)
        if loader.feature.length == 0:
            return False
        of_row = q.of_row
        q.of_row = loader.of_row
        if q.criterion == &loader.local:
            q.of_row.label = loader.label
        varies = search_feature(q, <const uint64_t*>loader.entries, &loader.feature, 0)
        q.of_row = of_row
        return varies
    bins_of_dense(loader, q, column, node)
    if q.bins.count <= 1:
        return False
    search_bins(q, number, last_ordered(column))
    return True


cdef bint by_entries(const ColumnLoader* loader, const Search* q, const Column* column,
                     int64_t n) noexcept nogil:
    """Whether a column is sorted rather than counted.

    Its histogram would be mostly empty: fewer rows than words of a bit per code, fewer than
    numbers in the cells that they hit, or more cells than a growth of so many rows should hold.
    """
    cdef int64_t n_cells = (column.n_codes + <int64_t>1) * layout_of(loader, q).n_words
    cdef int64_t n_hit = column.n_codes if column.n_codes < n else n
    if column.storage == STORED_SPARSE or n < column.n_codes >> 6:
        return True
    if by_class(q) and n * SORT_COST <= n_hit * q.criterion.n_classes:
        return True
    return n_cells > MOST_WORDS * (loader.n_rows + 4096)


cdef void bins_of_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                        int32_t number) noexcept nogil:
    """The codes of a column in the node, as bins of the search."""
    cdef RowStatistics of_row
    if by_entries(loader, q, column, node.totals.n):
        read_entries(loader, q, node, column, number)
        if loader.feature.length == 0:
            q.bins.count = 0
            return
        of_row = q.of_row
        q.of_row = loader.of_row
        bins_of_entries(q, <const uint64_t*>loader.entries, &loader.feature)
        q.of_row = of_row
    else:
        bins_of_dense(loader, q, column, node)


cdef inline void see_local(ColumnLoader* loader, Search* q) noexcept nogil:
    """Let the search see the classes of the node only; until `see_all`.

    For columns without categories, whose scores are sums over classes.
    """
    q.criterion = &loader.local
    q.class_totals = loader.local_totals
    q.n_columns_of_target = loader.local.n_classes
    q.side_is_clear = False


cdef inline void see_all(Search* q, const Criterion* criterion,
                         const OpenNode* node) noexcept nogil:
    q.criterion = criterion
    q.class_totals = node.class_totals
    q.n_columns_of_target = criterion.n_classes
    q.side_is_clear = False
