"""What the rows of a node in one block add up to: sums, and histograms of some dense columns.

A column is counted by combination of training sets (`_node_partition`), and a set has the sum of
the combinations that it is in: integers, exact. Blocks add up in the same way. What is sent stays
small, because columns of many codes are counted in other ways::

    few codes                      a cell for each code            way 0
    many codes, all ordered,       a cell for each interval of     way b: intervals of 2**b codes;
    and there are bounds           neighbouring codes              then the codes of some of them
    many codes, else; sparse       a list of what occurs           LISTED (`_code_lists`)

Intervals are codes that differ in their last bits only, so that nobody has to be told where they
end: those of all blocks are the same. Missing values have an interval of their own::

    code        0   1   2   3   4   5   6   7   8   9        way 2
    interval    0   1   1   1   1   2   2   2   2   3        (code + 3) >> 2
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._bits cimport count_bits
from dtrees.core.data._columns cimport STORED_SPARSE, Column
from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport (
    CLASSES, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add_words, encode, words_of
)
from dtrees.core.histogram._totals cimport add_label, add_value, clear_totals
from dtrees.core.search._intervals cimport has_bounds_for
from dtrees.core.stores._dataset cimport Dataset

cdef enum:
    LIMB = 32               # bits of a part of a moment


def ways_of(Dataset dataset, resolution):
    """How each column is counted.

    Parameters
    ----------
    dataset : Dataset
        At least one row of the table.
    resolution : Resolution

    Returns
    -------
    uint8 (n_columns,)
        Bits of the codes of an interval, or `LISTED`.
    """
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef bint has_bounds = (has_bounds_for(&dataset.params.criterion)
                            and not dataset.params.limits.random_splits
                            and dataset.params.limits.monotonic == NULL)
    cdef int64_t interval_codes = resolution.interval_codes
    cdef int64_t n_intervals = resolution.n_intervals
    cdef int64_t listed_codes = resolution.listed_codes
    cdef uint8_t[::1] ways = np.zeros(n_columns, dtype=np.uint8)
    cdef const Column* column
    cdef int64_t j
    for j in range(n_columns):
        column = dataset.columns + j
        if column.storage == STORED_SPARSE:
            ways[j] = LISTED
        elif has_bounds and column.n_ordered == column.n_codes > interval_codes:
            while cells_of(column, ways[j]) > n_intervals + 1:
                ways[j] += 1
        elif column.n_codes > listed_codes:
            ways[j] = LISTED
    return np.asarray(ways)


def without_intervals(ways):
    """The same, but that columns are listed that else are counted by interval; uint8 (k,)."""
    return np.where(ways > 0, LISTED, 0).astype(np.uint8)


def sizes_of(Dataset dataset, const uint8_t[::1] ways=None):
    """Numbers in the histogram of every column, none of those that are listed; int64 (n_columns,).

    ways : by column; None: a cell for each code.
    """
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef int64_t[::1] sizes = np.zeros(n_columns, dtype=np.int64)
    cdef int32_t j
    for j in range(n_columns):
        if ways is None or ways[j] != LISTED:
            sizes[j] = words_of_column(dataset, j, ways, &dataset.params.layout)
    return np.asarray(sizes)


def count(Dataset dataset, node, uint64_t members, const int32_t[::1] columns,
          const uint8_t[::1] ways=None):
    """What the rows of a node add up to, for some of its sets, and by code of some columns.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    columns : int32 (k,)
        Dense ones; `_code_lists` has the others.
    ways : uint8 (n_columns,) or None, default=None
        By column, as `ways_of` has them; none of these columns is listed. None: a cell for each
        code.

    Returns
    -------
    sums : int64 (n_members, 10 + n_classes)
    histogram : int64 (n_members, cells of the columns)
        Column behind column.
    """
    cdef const uint32_t[::1] rows = node.rows
    cdef const uint16_t[::1] times = node.times
    cdef const uint16_t[::1] combination = node.combination
    cdef const uint64_t[::1] masks = node.masks
    cdef int64_t n = len(rows)
    cdef int64_t K = dataset.params.criterion.n_classes
    cdef int n_members = count_bits(members)
    cdef int64_t n_cells = 0
    cdef int64_t j
    cdef const uint16_t* times_of = NULL
    cdef NodeRows of_node
    cdef Layout layout = layout_of_node(dataset, node)
    for j in range(len(columns)):
        n_cells += words_of_column(dataset, columns[j], ways, &layout)
    cdef int64_t[:, ::1] sums = np.zeros((n_members, CLASS_0 + K), dtype=np.int64)
    cdef int64_t[:, ::1] histogram = np.zeros((n_members, n_cells), dtype=np.int64)
    for j in range(n_members):
        sums[j, LOWEST] = sums[j, LOWEST_SHARE] = 0x7FFFFFFFFFFFFFFF
        sums[j, HIGHEST] = sums[j, HIGHEST_SHARE] = -0x7FFFFFFFFFFFFFFF
    if n == 0 or n_members == 0:
        return np.asarray(sums), np.asarray(histogram)
    cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
    memset(&of_node, 0, sizeof(NodeRows))
    of_node.n = n
    of_node.rows = &rows[0]
    of_node.weight = &weight[0]
    of_node.target = &target[0]
    if combination is not None:
        of_node.combination = &combination[0]
    if times is not None:
        times_of = &times[0]
    write_statistics(&dataset.of_row, layout.kind, &rows[0], times_of, n, &weight[0], &target[0])
    sum_members(dataset, &of_node, &layout, masks, members, sums)
    count_columns(dataset, &of_node, &layout, masks, members, columns, ways, histogram)
    return np.asarray(sums), np.asarray(histogram)


cdef Layout layout_of_node(Dataset dataset, node):
    """How the rows of a node are counted."""
    cdef Layout layout = dataset.params.layout
    layout.kind = weighted_kind(layout.kind, node.times is not None)
    layout.n_words = words_of(layout.kind, layout.n_classes)
    layout.fixed_point = node.root.fixed_point
    return layout


cdef CellKind weighted_kind(CellKind kind, bint weighs) noexcept nogil:
    """How rows are counted that also count a number of times."""
    if not weighs or kind == WEIGHTED_SUM or kind == WEIGHTED_CLASSES:
        return kind
    return WEIGHTED_CLASSES if kind == CLASSES else WEIGHTED_SUM


cdef int64_t words_of_column(Dataset dataset, int32_t column, const uint8_t[::1] ways,
                             const Layout* layout) noexcept nogil:
    """Words of a histogram."""
    return cells_of(dataset.columns + column, way_of(ways, column)) * layout.n_words


cdef inline uint8_t way_of(const uint8_t[::1] ways, int32_t column) noexcept nogil:
    return 0 if ways is None else ways[column]


cdef void write_statistics(const RowStatistics* of_row, CellKind kind, const uint32_t* rows,
                           const uint16_t* times, int64_t n, int64_t* weight,
                           int64_t* target) noexcept nogil:
    """What each row adds, one behind the other."""
    cdef int64_t i, w, row
    cdef int64_t many = 1
    for i in range(n):
        row = rows[i]
        w = 1 if of_row.weight == NULL else of_row.weight[row]
        if times != NULL:
            many = times[i]
            w *= many
        weight[i] = w
        if of_row.label == NULL:
            target[i] = of_row.target[row] * many
        elif kind == WEIGHTED_SUM:
            target[i] = w * of_row.label[row]
        else:
            target[i] = encode(kind, w, of_row.label[row])


cdef count_columns(Dataset dataset, const NodeRows* rows, const Layout* layout,
                   const uint64_t[::1] masks, uint64_t members, const int32_t[::1] columns,
                   const uint8_t[::1] ways, int64_t[:, ::1] histogram):
    """Histograms of each set, column behind column."""
    cdef bint is_alone = len(masks) == 1 and len(histogram) == 1 and masks[0] & members != 0
    cdef NodeRows r = rows[0]
    cdef int64_t most = 0
    cdef int64_t start = 0
    cdef int64_t j
    cdef int64_t* cells
    for j in range(len(columns)):
        most = max(most, words_of_column(dataset, columns[j], ways, layout))
    cdef int64_t[::1] room = np.empty(0 if is_alone else len(masks) * most, dtype=np.int64)
    with nogil:
        for j in range(len(columns)):
            r.size = words_of_column(dataset, columns[j], ways, layout)
            r.way = way_of(ways, columns[j])
            cells = &histogram[0, start] if is_alone else &room[0]
            if not is_alone:
                memset(cells, 0, len(masks) * r.size * sizeof(int64_t))
            if not count_column(dataset.columns + columns[j], &r, layout, cells):
                with gil:
                    raise MemoryError
            if not is_alone:
                add_to_members(masks, members, cells, r.size, histogram, start)
            start += r.size


cdef void add_to_members(const uint64_t[::1] masks, uint64_t members, const int64_t* cells,
                         int64_t size, int64_t[:, ::1] histogram, int64_t start) noexcept nogil:
    """Add the histogram of each combination to those of the sets that are in it."""
    cdef int64_t k, m
    cdef uint64_t bits
    for k in range(len(masks)):
        bits = masks[k] & members
        while bits != 0:
            m = count_bits(members & ((bits & -bits) - 1))
            bits &= bits - 1
            add_words(&histogram[m, start], cells + k * size, size)


cdef sum_members(Dataset dataset, const NodeRows* rows, const Layout* layout,
                 const uint64_t[::1] masks, uint64_t members, int64_t[:, ::1] sums):
    """What the rows of a node add up to, by set."""
    cdef int64_t K = layout.n_classes
    cdef int64_t n_combinations = len(masks)
    cdef Totals* totals = <Totals*>malloc(n_combinations * sizeof(Totals))
    cdef int64_t* classes = <int64_t*>calloc(n_combinations * K + 1, sizeof(int64_t))
    cdef int64_t* shares = <int64_t*>malloc(2 * n_combinations * sizeof(int64_t))
    cdef int64_t k, m
    cdef uint64_t bits
    if totals == NULL or classes == NULL or shares == NULL:
        free(totals)
        free(classes)
        free(shares)
        raise MemoryError
    with nogil:
        sum_combinations(&dataset.of_row, rows, layout, n_combinations, totals, classes, shares)
        for k in range(n_combinations):
            bits = masks[k] & members
            while bits != 0:
                m = count_bits(members & ((bits & -bits) - 1))
                bits &= bits - 1
                add_sums(&sums[m, 0], &totals[k], classes + k * K, shares + 2 * k, K)
        free(totals)
        free(classes)
        free(shares)


cdef void sum_combinations(const RowStatistics* of_row, const NodeRows* rows,
                           const Layout* layout, int64_t n_combinations, Totals* totals,
                           int64_t* classes, int64_t* shares) noexcept nogil:
    """Sums of the rows of each combination. shares : pairs, of targets for their weights."""
    cdef int64_t K = layout.n_classes
    cdef int64_t i, k, row
    for k in range(n_combinations):
        clear_totals(&totals[k])
        shares[2 * k] = totals[k].lowest
        shares[2 * k + 1] = totals[k].highest
    for i in range(rows.n):
        k = 0 if rows.combination == NULL else rows.combination[i]
        row = rows.rows[i]
        if K > 0:
            add_label(&totals[k], classes + k * K, of_row.label[row], rows.weight[i])
        else:
            add_value(&totals[k], layout, of_row.value[row], rows.weight[i], rows.target[i])
            widen(shares + 2 * k, rows.weight[i], rows.target[i])


cdef inline void widen(int64_t* shares, int64_t weight, int64_t target) noexcept nogil:
    """Widen the range of targets for their weights, to whole numbers."""
    cdef int64_t down = target
    if weight != 1:
        down = target // weight if target >= 0 else -((weight - 1 - target) // weight)
    shares[0] = min(shares[0], down)
    shares[1] = max(shares[1], down + (down * weight != target))


cdef inline void add_sums(int64_t* sums, const Totals* totals, const int64_t* classes,
                          const int64_t* shares, int64_t K) noexcept nogil:
    """Add the sums of a combination to those of a set."""
    cdef int64_t k
    sums[N] += totals.n
    sums[WEIGHT] += totals.weight
    sums[TARGET] += totals.target
    sums[MOMENT] += <int64_t>(totals.moment >> 2 * LIMB)
    sums[MOMENT + 1] += <int64_t>(<uint32_t>(totals.moment >> LIMB))
    sums[MOMENT + 2] += <int64_t>(<uint32_t>totals.moment)
    sums[LOWEST] = min(sums[LOWEST], totals.lowest)
    sums[HIGHEST] = max(sums[HIGHEST], totals.highest)
    sums[LOWEST_SHARE] = min(sums[LOWEST_SHARE], shares[0])
    sums[HIGHEST_SHARE] = max(sums[HIGHEST_SHARE], shares[1])
    for k in range(K):
        sums[CLASS_0 + k] += classes[k]
