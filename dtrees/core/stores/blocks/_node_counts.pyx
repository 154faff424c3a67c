"""Sums, histograms and lists of the rows of a node in one block.

A column is counted by combination of training sets (`_node_partition`), and a set has the sum of
the combinations that it is in: integers, exact. Blocks add up in the same way. What is sent stays
small, because columns of many codes are counted in other ways::

    few codes                      a cell for each code            way 0
    many codes, all ordered,       a cell for each interval of     way b: intervals of 2**b codes;
    and there are bounds           neighbouring codes              then the codes of some of them
    many codes, else; sparse       a list of what occurs           LISTED

Intervals are codes that differ in their last bits only, so that nobody has to be told where they
end: those of all blocks are the same. Missing values have an interval of their own::

    code        0   1   2   3   4   5   6   7   8   9        way 2
    interval    0   1   1   1   1   2   2   2   2   3        (code + 3) >> 2

A list has what occurs, of sparse columns and of those of many codes::

    histogram of all columns    0 0 0 4 0 2 0 0 ...  0 0 1 0 ...        never made
    place                       3  5  90,412                            ascending
    value                       4  2  1
    who                         3  3  1         a bit for each training set that has it

A place is a number of the histogram of all columns, as if each had all of its codes. What is listed
is what occurs, however many columns and codes there are. Training sets of a node share most of its
rows, so a number is listed once for all sets that have it; ``who`` ascends at a place. Where one
set is asked for, nobody is said.

*Dense columns* are sorted by code. Where the node can tell in which intervals a split may lie
(`_histogram_store`), rows of other intervals are passed over. O(rows) for a column.

*Sparse columns* have the stored cells of a block by column, code and row, sorted once for each
block and remembered as long as its codes live. Cells that hold the fill code are left out: what a
node has beyond the others holds it ([SP] 3), which only who has the sums of all blocks can tell.
There are two ways to the cells of a node. Either all cells of the columns are looked at, and those
are skipped whose row is not in the node; or the cells of its rows are marked, a bit each, and the
marks are read in their order::

    by column    O(cells of the columns in the block)                  large nodes, few columns
    by row       O(cells of the rows of the node + cells / 64)         small nodes, all columns
"""
from weakref import WeakKeyDictionary

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._bits cimport count_bits, trailing_zeros
from dtrees.core.data._columns cimport STORED_SPARSE, Column, read_codes
from dtrees.core.data._memory cimport claim_zeros, resize
from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport (
    CLASSES, COUNT, OUTPUTS, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add, add_row,
    add_words, encode, words_of
)
from dtrees.core.histogram._totals cimport add_label, add_to_totals, add_value, clear_totals
from dtrees.core.search._intervals cimport has_bounds_for
from dtrees.core.search._sort cimport sort_by_code
from dtrees.core.stores._dataset cimport Dataset

from dtrees._forks import LockOfObject, lock_of_process
from dtrees.coding.coded import SPARSE

cdef enum:
    LIMB = 32               # bits of a part of a moment
    FIRST_ROOM = 256        # numbers of a list
    MARKED = 4              # what a cell costs that is marked, in cells that are looked at

cdef uint64_t MIXER = 0x9E3779B97F4A7C15


def ways_of(Dataset dataset, resolution):
    """Choose how each column is counted.

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
    """Ways in which columns are listed that else are counted by interval; uint8 (k,)."""
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
    """Count the rows of a node, for some of its sets, and by code of some columns.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    columns : int32 (k,)
        Dense ones that are not listed.
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
    cdef RowStatistics own
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
    if layout.kind == OUTPUTS:
        _arrays = gathered_outputs(&dataset.of_row, rows, times, weight, &own)
        of_node.of_row = &own
    else:
        write_statistics(&dataset.of_row, layout.kind, &rows[0], times_of, n, &weight[0],
                         &target[0])
    sum_members(dataset, &of_node, &layout, masks, members, sums)
    count_columns(dataset, &of_node, &layout, masks, members, columns, ways, histogram)
    return np.asarray(sums), np.asarray(histogram)


cdef Layout layout_of_node(Dataset dataset, node):
    """The layout in which the rows of a node are counted."""
    cdef Layout layout = dataset.params.layout
    if node.times is not None:  # rows also count a number of times
        if layout.kind == CLASSES:
            layout.kind = WEIGHTED_CLASSES
        elif layout.kind != WEIGHTED_CLASSES and layout.kind != OUTPUTS:
            layout.kind = WEIGHTED_SUM
    layout.n_words = words_of(layout.kind, layout.n_classes)
    layout.fixed_point = node.root.fixed_point
    return layout


cdef int64_t words_of_column(Dataset dataset, int32_t column, const uint8_t[::1] ways,
                             const Layout* layout) noexcept nogil:
    """Words of a histogram."""
    return cells_of(dataset.columns + column, way_of(ways, column)) * layout.n_words


cdef inline uint8_t way_of(const uint8_t[::1] ways, int32_t column) noexcept nogil:
    return 0 if ways is None else ways[column]


cdef void write_statistics(const RowStatistics* of_row, CellKind kind, const uint32_t* rows,
                           const uint16_t* times, int64_t n, int64_t* weight,
                           int64_t* target) noexcept nogil:
    """Write what each row adds, one behind the other."""
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


cdef list gathered_outputs(const RowStatistics* of_row, const uint32_t[::1] rows,
                           const uint16_t[::1] times, int64_t[::1] weight, RowStatistics* own):
    """Several outputs: what rows add, one behind the other, as statistics; returns its arrays."""
    cdef int64_t m = of_row.n_outputs
    cdef int64_t n = len(rows) * m
    cdef bint of_classes = of_row.label != NULL
    cdef uint16_t[::1] label = np.empty(n if of_classes else 1, dtype=np.uint16)
    cdef int64_t[:, ::1] numbers = np.empty((2, 1 if of_classes else n), dtype=np.int64)
    cdef int64_t i, k, row, many
    own[0] = of_row[0]
    own.weight = &weight[0]
    if of_classes:
        own.label = &label[0]
    else:
        own.value, own.target = &numbers[0, 0], &numbers[1, 0]
    for i in range(len(rows)):
        row = rows[i]
        many = 1 if times is None else times[i]
        weight[i] = many if of_row.weight == NULL else of_row.weight[row] * many
        for k in range(m):
            if of_classes:
                label[i * m + k] = of_row.label[row * m + k]
            else:
                numbers[0, i * m + k] = of_row.value[row * m + k]
                numbers[1, i * m + k] = of_row.target[row * m + k] * many
    return [label, numbers]


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
    """Sum up the rows of a node, by set."""
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
        if rows.of_row != NULL:
            add_to_totals(rows.of_row, layout, i, &totals[k], classes + k * K)
            see_numbers(rows.of_row, i, &totals[k])
        elif K > 0:
            add_label(&totals[k], classes + k * K, of_row.label[row], rows.weight[i])
        else:
            add_value(&totals[k], layout, of_row.value[row], rows.weight[i], rows.target[i])
            widen(shares + 2 * k, rows.weight[i], rows.target[i])


cdef inline void see_numbers(const RowStatistics* of_row, int64_t i, Totals* totals) noexcept nogil:
    """Several numbers: the range of what is made of those of a row, one number if all are alike."""
    cdef uint64_t mixed = 0
    cdef int64_t k
    for k in range(of_row.n_outputs if of_row.value != NULL else 0):
        mixed = (mixed ^ <uint64_t>of_row.value[i * of_row.n_outputs + k]) * MIXER
        mixed ^= mixed >> 29
    totals.lowest = min(totals.lowest, <int64_t>mixed)
    totals.highest = max(totals.highest, <int64_t>mixed)


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


# ---------------------------------------------------------------------------------------------
# lists

cdef struct Numbers:
    # A list.
    int64_t* place
    int64_t* value
    uint64_t* who
    bint has_who
    int64_t n
    int64_t room


cdef bint append(Numbers* numbers, int64_t place, int64_t value, uint64_t who) noexcept nogil:
    """A number that is not zero behind the others; False without memory."""
    cdef int64_t room
    if numbers.n == numbers.room:
        room = 2 * numbers.room if numbers.room > 0 else FIRST_ROOM
        if not (resize(<void**>&numbers.place, room * sizeof(int64_t))
                and resize(<void**>&numbers.value, room * sizeof(int64_t))):
            return False
        if numbers.has_who and not resize(<void**>&numbers.who, room * sizeof(uint64_t)):
            return False
        numbers.room = room
    numbers.place[numbers.n] = place
    numbers.value[numbers.n] = value
    if numbers.has_who:
        numbers.who[numbers.n] = who
    numbers.n += value != 0
    return True


cdef arrays_of(const Numbers* numbers):
    """Copies of what a list has: places, values, and who or None."""
    cdef int64_t[::1] place = np.empty(numbers.n, dtype=np.int64)
    cdef int64_t[::1] value = np.empty(numbers.n, dtype=np.int64)
    cdef uint64_t[::1] who = np.empty(numbers.n if numbers.has_who else 0, dtype=np.uint64)
    if numbers.n > 0:
        memcpy(&place[0], numbers.place, numbers.n * sizeof(int64_t))
        memcpy(&value[0], numbers.value, numbers.n * sizeof(int64_t))
        if numbers.has_who:
            memcpy(&who[0], numbers.who, numbers.n * sizeof(uint64_t))
    return np.asarray(place), np.asarray(value), np.asarray(who) if numbers.has_who else None


def merged(one, other, int64_t sign=1):
    """A list and another one `sign` times, added up; zeros are left out. O(both).

    Parameters
    ----------
    one, other : (int64 (n,), int64 (n,), uint64 (n,) or None)
        Places, values, who.
    sign : {1, -1}, default=1
    """
    cdef const int64_t[::1] place = one[0]
    cdef const int64_t[::1] value = one[1]
    cdef const uint64_t[::1] who = one[2]
    cdef const int64_t[::1] other_place = other[0]
    cdef const int64_t[::1] other_value = other[1]
    cdef const uint64_t[::1] other_who = other[2]
    cdef bint has_who = who is not None
    cdef int64_t n = len(place)
    cdef int64_t n_other = len(other_place)
    cdef int64_t[::1] places = np.empty(n + n_other, dtype=np.int64)
    cdef int64_t[::1] values = np.empty(n + n_other, dtype=np.int64)
    cdef uint64_t[::1] found = np.empty(n + n_other if has_who else 0, dtype=np.uint64)
    cdef int64_t i = 0
    cdef int64_t j = 0
    cdef int64_t k = 0
    cdef int order
    with nogil:
        while i < n or j < n_other:
            if j == n_other:
                order = -1
            elif i == n:
                order = 1
            else:
                order = (place[i] > other_place[j]) - (place[i] < other_place[j])
                if order == 0 and has_who:
                    order = (who[i] > other_who[j]) - (who[i] < other_who[j])
            places[k] = other_place[j] if order > 0 else place[i]
            if has_who:
                found[k] = other_who[j] if order > 0 else who[i]
            values[k] = (value[i] if order <= 0 else 0) + (
                sign * other_value[j] if order >= 0 else 0)
            i += order <= 0
            j += order >= 0
            k += values[k] != 0
    arrays = [np.asarray(places)[:k].copy(), np.asarray(values)[:k].copy()]
    return *arrays, np.asarray(found)[:k].copy() if has_who else None


def of_sets(const int64_t[::1] place, const int64_t[::1] value, const uint64_t[::1] who,
            int64_t n_sets):
    """The numbers of each set, which are asked for together.

    Parameters
    ----------
    place, value, who
        A list.
    n_sets : int
        A set for each bit from 0 on.

    Returns
    -------
    list of (int64 (n,), int64 (n,))
        Places and values of each set; zeros are left out. O(numbers).
    """
    cdef int64_t[::1] n = np.zeros(n_sets, dtype=np.int64)
    cdef int64_t[::1] start = np.zeros(n_sets + 1, dtype=np.int64)
    cdef int64_t[::1] places, values
    cdef int64_t i, k, m
    cdef uint64_t bits
    if who is None or len(place) == 0:
        return [(np.asarray(place), np.asarray(value))] * n_sets
    with nogil:
        for i in range(len(who)):
            bits = who[i]
            while bits != 0:
                start[trailing_zeros(bits) + 1] += 1
                bits &= bits - 1
        for m in range(n_sets):
            start[m + 1] += start[m]
    places = np.empty(start[n_sets], dtype=np.int64)
    values = np.empty(start[n_sets], dtype=np.int64)
    with nogil:
        for i in range(len(who)):
            bits = who[i]
            while bits != 0:
                m = trailing_zeros(bits)
                bits &= bits - 1
                k = start[m] + n[m]
                if n[m] > 0 and places[k - 1] == place[i]:
                    values[k - 1] += value[i]
                    continue
                if n[m] > 0 and values[k - 1] == 0:
                    k -= 1
                    n[m] -= 1
                places[k] = place[i]
                values[k] = value[i]
                n[m] += 1
        for m in range(n_sets):
            n[m] -= n[m] > 0 and values[start[m] + n[m] - 1] == 0
    return [(np.asarray(places)[start[m]:start[m] + n[m]],
             np.asarray(values)[start[m]:start[m] + n[m]]) for m in range(n_sets)]


# ---------------------------------------------------------------------------------------------
# cells that are added up one after the other

cdef struct NodeCells:
    # Of a node: its rows, the cell that is added up, and the list.
    CellKind kind
    int64_t n_words             # of a cell
    int64_t width               # words of a bit for each of them
    const int64_t* weight       # by number of the row in the node
    const int64_t* target
    RowStatistics outputs       # of several outputs, in place of weight and target
    const uint16_t* combination     # or NULL
    const int32_t* part_of      # by combination: sets that are asked for and have it, by number;
    const uint64_t* who         # -1: none. A bit for each of these sets
    int64_t place               # of the cell that is added up; -1: none
    int32_t* seen               # parts that have rows in the cell
    int64_t n_seen
    int64_t* words              # (n_parts, n_words) of it,
    uint64_t* used              # (n_parts, width): a bit for each of them that was added to
    bint* is_seen
    Numbers numbers


cdef class CellLists:
    """The list of a node that has a row and is asked for a set, at least.

    Rows come in the order of cells::

        cell    row, combination of sets        list    place   value   who
        7       3, 0      9, 2      4, 0                7       2       0 1 2
                                                        7       1         1 2
        8       1, 0                                    8       1       0 1 2

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    """
    cdef NodeCells cells
    cdef list arrays            # whose memory it points to

    def __cinit__(self, Dataset dataset, node, uint64_t members):
        cdef const uint32_t[::1] rows = node.rows
        cdef const uint16_t[::1] times = node.times
        cdef const uint16_t[::1] combination = node.combination
        cdef int64_t n = len(rows)
        cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
        cdef const uint16_t* times_of = NULL
        cdef Layout layout = layout_of_node(dataset, node)
        cdef NodeCells* c = &self.cells
        parts, number = np.unique(sets_of(node.masks, members), return_inverse=True)
        has_nobody = parts[0] == 0
        cdef const int32_t[::1] part_of = number.astype(np.int32) - np.int32(has_nobody)
        cdef const uint64_t[::1] who = parts[1 if has_nobody else 0:]
        cdef int64_t n_parts = max(1, len(who))
        if times is not None:
            times_of = &times[0]
        self.arrays = [weight, target, combination, part_of, who]
        if layout.kind == OUTPUTS:
            self.arrays += gathered_outputs(&dataset.of_row, rows, times, weight, &c.outputs)
        else:
            write_statistics(&dataset.of_row, layout.kind, &rows[0], times_of, n, &weight[0],
                             &target[0])
        c.kind = layout.kind
        c.n_words = layout.n_words
        c.width = (layout.n_words + 63) // 64
        c.weight = &weight[0]
        c.target = &target[0]
        if combination is not None:
            c.combination = &combination[0]
        c.part_of = &part_of[0]
        if len(who) > 0:
            c.who = &who[0]
        c.place = -1
        c.numbers.has_who = count_bits(members) > 1
        if not (claim_zeros(<void**>&c.words, n_parts * c.n_words * sizeof(int64_t))
                and claim_zeros(<void**>&c.used, n_parts * c.width * sizeof(uint64_t))
                and claim_zeros(<void**>&c.seen, n_parts * sizeof(int32_t))
                and claim_zeros(<void**>&c.is_seen, n_parts * sizeof(bint))):
            raise MemoryError

    def __dealloc__(self):
        free(self.cells.numbers.place)
        free(self.cells.numbers.value)
        free(self.cells.numbers.who)
        free(self.cells.words)
        free(self.cells.used)
        free(self.cells.seen)
        free(self.cells.is_seen)

    cdef found(self):
        """The list, once all cells are over: places, values and who has them."""
        return arrays_of(&self.cells.numbers)


cdef sets_of(const uint64_t[::1] masks, uint64_t members):
    """By combination a bit for each of the sets that are asked for, numbered from 0 on."""
    cdef uint64_t[::1] found = np.zeros(len(masks), dtype=np.uint64)
    cdef int64_t k
    cdef uint64_t bits
    for k in range(len(masks)):
        bits = masks[k] & members
        while bits != 0:
            found[k] |= <uint64_t>1 << count_bits(members & ((bits & -bits) - 1))
            bits &= bits - 1
    return np.asarray(found)


cdef inline bint take(NodeCells* c, int64_t cell, int64_t i) noexcept nogil:
    """Add row i of the node to a cell, whose cells come in ascending order; False: no memory."""
    cdef int32_t part = c.part_of[0 if c.combination == NULL else c.combination[i]]
    cdef int64_t word = 0
    cdef uint64_t first = 1
    if cell * c.n_words != c.place:
        if not end_cell(c):
            return False
        c.place = cell * c.n_words
    if part < 0:
        return True
    if not c.is_seen[part]:
        c.is_seen[part] = True
        c.seen[c.n_seen] = part
        c.n_seen += 1
    if c.kind == OUTPUTS:
        take_outputs(c, part, i)
        return True
    if c.kind == CLASSES:
        first = 0
        word = c.target[i]
    elif c.kind == WEIGHTED_CLASSES:
        word = 1 + c.target[i]
    elif c.kind == SUM:
        first = 3
    elif c.kind != COUNT:
        first = 7
    add(c.words + part * c.n_words, c.kind, c.weight[i], c.target[i])
    c.used[part * c.width] |= first
    c.used[part * c.width + (word >> 6)] |= <uint64_t>(word > 0 or first == 0) << (word & 63)
    return True


cdef void take_outputs(NodeCells* c, int32_t part, int64_t i) noexcept nogil:
    """Add row i of several outputs to the cell, and mark the words that it adds to."""
    cdef const RowStatistics* own = &c.outputs
    cdef int64_t k, word
    add_row(c.words + part * c.n_words, OUTPUTS, own, i)
    c.used[part * c.width] |= 3
    for k in range(own.n_outputs):
        word = 2 + (k if own.label == NULL or own.zero_one else own.label[i * own.n_outputs + k])
        c.used[part * c.width + (word >> 6)] |= <uint64_t>1 << (word & 63)


cdef bint end_cell(NodeCells* c) noexcept nogil:
    """Write the cell that is added up to the list; False without memory."""
    cdef int64_t t, i
    cdef uint64_t bits
    if c.n_seen > 1:
        sort_seen(c)
    for t in range(c.width if c.n_seen > 0 else 0):
        bits = 0
        for i in range(c.n_seen):
            bits |= c.used[c.seen[i] * c.width + t]
            c.used[c.seen[i] * c.width + t] = 0
        while bits != 0:
            if not list_word(c, 64 * t + trailing_zeros(bits)):
                return False
            bits &= bits - 1
    for i in range(c.n_seen):
        c.is_seen[c.seen[i]] = False
    c.n_seen = 0
    return True


cdef void sort_seen(NodeCells* c) noexcept nogil:
    """Parts ascend, as do their sets as numbers."""
    cdef int64_t i, k
    cdef int32_t part
    for i in range(1, c.n_seen):
        part = c.seen[i]
        k = i
        while k > 0 and c.seen[k - 1] > part:
            c.seen[k] = c.seen[k - 1]
            k -= 1
        c.seen[k] = part


cdef bint list_word(NodeCells* c, int64_t w) noexcept nogil:
    """Write a word of all parts that have rows in the cell."""
    cdef int64_t i
    cdef int64_t* word
    for i in range(c.n_seen):
        word = c.words + c.seen[i] * c.n_words + w
        if not append(&c.numbers, c.place + w, word[0], c.who[c.seen[i]]):
            return False
        word[0] = 0
    return True


# ---------------------------------------------------------------------------------------------
# dense columns

def list_codes(Dataset dataset, node, uint64_t members, const int32_t[::1] columns,
               const int64_t[::1] first, const uint8_t[::1] ways=None,
               const uint64_t[::1] alive=None):
    """The histograms of dense columns as lists.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    columns : int32 (k,)
        Ascending.
    first : int64 (n_columns + 1,)
        Cells of the columns before each one, if each code has one.
    ways, alive : uint8 (n_columns,), uint64 (n,), or None
        Intervals of the columns, as `ways_of` has them, and a bit for each whose codes are
        listed (`HistogramRequest`). None: all codes are.

    Returns
    -------
    places, values : int64 (n,)
    who : uint64 (n,) or None
        A list.

    Raises
    ------
    MemoryError
    """
    cdef const uint32_t[::1] rows = node.rows
    cdef int64_t n = len(rows)
    cdef CellLists lists
    cdef uint32_t[::1] codes
    cdef uint64_t[::1] pairs
    cdef const uint64_t* alive_of = NULL
    cdef uint8_t way = 0
    cdef bint fits
    cdef int64_t k, n_pairs
    cdef int32_t j
    if n == 0 or members == 0 or len(columns) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing.view(np.uint64) if count_bits(members) > 1 else None
    lists = CellLists(dataset, node, members)
    codes = np.empty(n, dtype=np.uint32)
    pairs = np.empty(2 * n, dtype=np.uint64)
    if alive is not None:
        alive_of = &alive[0]
    for k in range(len(columns)):
        j = columns[k]
        if alive is not None:
            way = ways[j]
        with nogil:
            read_codes(dataset.columns + j, &rows[0], n, &codes[0])
            n_pairs = choose_rows(codes, way, alive_of, &pairs[0])
            sort_by_code(&pairs[0], &pairs[n], n_pairs, dataset.columns[j].n_codes)
            fits = list_sorted(&lists.cells, &pairs[0], n_pairs, first[j])
        if not fits:
            raise MemoryError
        if alive is not None:
            alive_of += cells_of(dataset.columns + j, way) // 64 + 1
    return lists.found()


cdef int64_t choose_rows(const uint32_t[::1] codes, uint8_t way, const uint64_t* alive,
                         uint64_t* pairs) noexcept nogil:
    """Codes and numbers of the rows whose interval is alive; returns how many there are.

    alive : NULL: all are.
    """
    cdef int64_t n = 0
    cdef int64_t i, interval
    for i in range(len(codes)):
        pairs[n] = <uint64_t>codes[i] << 32 | <uint64_t>i
        if alive == NULL:
            n += 1
            continue
        interval = interval_of(codes[i], way)
        n += alive[interval >> 6] >> (interval & 63) & 1
    return n


cdef bint list_sorted(NodeCells* cells, const uint64_t* pairs, int64_t n,
                      int64_t first) noexcept nogil:
    """Add the rows of a column, sorted by code, to the lists; False without memory.

    first : cell of the column's code 0.
    """
    cdef int64_t i
    for i in range(n):
        if not take(cells, first + <int64_t>(pairs[i] >> 32), <int64_t><uint32_t>pairs[i]):
            return False
    return end_cell(cells)


# ---------------------------------------------------------------------------------------------
# sparse columns

cdef class StoredCells:
    """Stored cells of a coded matrix by column, code and row.

    A run of cells of one code is what a cell of a histogram adds up::

        column 0                       column 1              column 2 ...
        code 2       code 3            code 1                code 1        code 4
        rows 3 7 8   rows 0 5          rows 2                rows 0 1      rows 6        0, 1, 2 ...

    They are also listed by row, once some node has so few rows that it pays.
    """
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_columns     # that are sparse
    cdef readonly int64_t n_stored      # cells that do not hold the fill code
    cdef int64_t[::1] start             # (n_columns + 1,): where the cells of a column begin
    cdef int32_t[::1] row               # (n_stored,)
    cdef uint32_t[::1] code
    cdef int64_t[::1] first             # codes of all columns of the table before this one
    cdef int32_t[::1] number            # by column of the table: among the sparse ones, or -1
    cdef bint has_rows                  # somebody has asked for what follows
    cdef int64_t[::1] start_of_row      # (n_rows + 1,)
    cdef uint32_t[::1] cell_of_row      # cells of the first row, of the second ...
    cdef object making

    def __init__(self, coded):
        storage = np.asarray(coded.storage)
        columns = np.flatnonzero(storage == SPARSE)
        slots = np.asarray(coded.slot)[columns].astype(np.int64)
        number = np.full(len(storage), -1, dtype=np.int32)
        number[columns] = np.arange(len(columns))
        n_codes = np.asarray(coded.n_codes, dtype=np.int64) + 1
        before = np.cumsum(n_codes) - n_codes
        self.n_rows = coded.n_rows
        self.n_columns = len(columns)
        self.number = number
        self.first = before[columns]
        self.making = LockOfObject()
        n = len(coded.sparse_rows)
        self.start = np.zeros(len(columns) + 1, dtype=np.int64)
        self.row = np.empty(n, dtype=np.int32)
        self.code = np.empty(n, dtype=np.uint32)
        indptr = np.ascontiguousarray(coded.sparse_indptr, dtype=np.int64)
        most = int(np.diff(indptr).max(initial=0))
        self.sort_cells(slots, indptr, np.ascontiguousarray(coded.sparse_rows, dtype=np.int32),
                        np.ascontiguousarray(coded.sparse_codes, dtype=np.uint32),
                        np.ascontiguousarray(coded.fill_code, dtype=np.uint32), n_codes[columns],
                        np.empty(2 * most + 1, dtype=np.uint64))

    cdef sort_cells(self, const int64_t[::1] slots, const int64_t[::1] indptr,
                    const int32_t[::1] rows, const uint32_t[::1] codes, const uint32_t[::1] fill,
                    const int64_t[::1] n_codes, uint64_t[::1] items):
        """Fill the arrays. items : twice as many as the longest column has cells, and one."""
        cdef int64_t half = len(items) // 2
        cdef int64_t n = 0
        cdef int64_t k, p, s, i, m
        with nogil:
            for k in range(self.n_columns):
                s = slots[k]
                m = 0
                for p in range(indptr[s], indptr[s + 1]):
                    items[m] = <uint64_t>codes[p] << 32 | <uint32_t>rows[p]
                    m += codes[p] != fill[s]
                sort_by_code(&items[0], &items[half], m, <uint32_t>n_codes[k])
                for i in range(m):
                    self.row[n + i] = <int32_t><uint32_t>items[i]
                    self.code[n + i] = <uint32_t>(items[i] >> 32)
                n += m
                self.start[k + 1] = n
        self.n_stored = n

    cdef make_rows(self):
        """List the cells by row, unless that is done."""
        cdef int64_t[::1] start
        cdef uint32_t[::1] cells
        cdef int64_t p, row
        with self.making.of_process():
            if self.has_rows:
                return
            start = np.zeros(self.n_rows + 2, dtype=np.int64)
            cells = np.empty(self.n_stored, dtype=np.uint32)
            with nogil:
                for p in range(self.n_stored):
                    start[self.row[p] + 2] += 1
                for row in range(self.n_rows):
                    start[row + 2] += start[row + 1]
                for p in range(self.n_stored):
                    row = self.row[p]
                    cells[start[row + 1]] = <uint32_t>p
                    start[row + 1] += 1
            self.cell_of_row = cells
            self.start_of_row = start[:self.n_rows + 1]
            self.has_rows = True


_remembered = WeakKeyDictionary()
_making = lock_of_process()     # threads that ask for the same share what the first one makes


cdef StoredCells stored_cells_of(coded):
    """The stored cells of a coded matrix, remembered as long as it lives."""
    with _making:
        cells = _remembered.get(coded)
    if cells is None:
        cells = StoredCells(coded)
        with _making:
            cells = _remembered.setdefault(coded, cells)
    return cells


cdef struct Counting:
    # Of a node.
    int64_t n_columns           # as `StoredCells`
    const int64_t* start
    const int32_t* row
    const uint32_t* code
    const int64_t* first
    uint32_t* number            # by row: its number in the node from 1 on; 0: it is not there
    uint64_t* marks             # a bit for each cell; NULL: the columns are looked at
    const int64_t* start_of_row
    const uint32_t* cell_of_row
    NodeCells* cells            # that are added up


cdef class StoredCounter:
    """Counts the stored cells of nodes of a block, one after the other.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    coded : CodedMatrix
        Whose rows these are.

    Attributes
    ----------
    by_row, by_column : int
        Nodes whose cells were marked, and of which all cells of the columns were looked at.
    """
    cdef Dataset dataset
    cdef StoredCells cells
    cdef uint32_t[::1] number
    cdef uint64_t[::1] marks        # of the last node whose cells were marked
    cdef readonly int64_t by_row
    cdef readonly int64_t by_column

    def __init__(self, Dataset dataset, coded):
        self.dataset = dataset
        self.cells = stored_cells_of(coded)
        self.number = np.zeros(coded.n_rows, dtype=np.uint32)

    def count(self, node, uint64_t members, columns=None):
        """The histograms of the sparse ones among some columns.

        Parameters
        ----------
        node : NodeRows
        members : int
            A bit for each training set that is asked for.
        columns : int32 (k,) or None, default=None
            In any order; None: all.

        Returns
        -------
        places, values : int64 (n,)
        who : uint64 (n,) or None
            A list.

        Raises
        ------
        MemoryError
        """
        cdef const uint32_t[::1] rows = node.rows
        cdef int32_t[::1] numbers = self.numbers_of(columns)
        cdef CellLists lists
        cdef Counting c
        cdef bint fits
        if len(rows) == 0 or members == 0 or self.cells.n_stored == 0 or (
                numbers is not None and len(numbers) == 0):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing.view(np.uint64) if count_bits(members) > 1 else None
        lists = CellLists(self.dataset, node, members)
        memset(&c, 0, sizeof(Counting))
        c.cells = &lists.cells
        self.begin(&c, self.is_by_row(rows, numbers))
        with nogil:
            fits = count_rows(&c, rows, numbers)
        if not fits:
            raise MemoryError
        return lists.found()

    cdef begin(self, Counting* c, bint by_row):
        """Tell where the cells are."""
        c.number = &self.number[0]
        c.n_columns = self.cells.n_columns
        c.start = &self.cells.start[0]
        c.row = &self.cells.row[0]
        c.code = &self.cells.code[0]
        c.first = &self.cells.first[0]
        self.by_row += by_row
        self.by_column += not by_row
        if by_row:
            self.cells.make_rows()
            self.marks = np.zeros(self.cells.n_stored // 64 + 1, dtype=np.uint64)
            c.marks = &self.marks[0]
            c.start_of_row = &self.cells.start_of_row[0]
            c.cell_of_row = &self.cells.cell_of_row[0]

    cdef int32_t[::1] numbers_of(self, columns):
        """Numbers of the sparse ones among some columns, ascending; None: all."""
        if columns is None:
            return None
        numbers = np.asarray(self.cells.number)[columns]
        return np.sort(numbers[numbers >= 0])

    cdef bint is_by_row(self, const uint32_t[::1] rows, const int32_t[::1] numbers):
        """Tell if marking the cells of some rows costs less than looking at all of the columns."""
        cdef StoredCells cells = self.cells
        cdef int64_t of_columns = cells.n_stored if numbers is None else 0
        cdef double of_rows = <double>cells.n_stored * len(rows) / cells.n_rows  # about
        cdef int64_t i
        if cells.n_stored >= 0xFFFFFFFF:
            return False
        for i in range(0 if numbers is None else len(numbers)):
            of_columns += cells.start[numbers[i] + 1] - cells.start[numbers[i]]
        return MARKED * of_rows + cells.n_stored // 64 < of_columns


cdef bint count_rows(Counting* c, const uint32_t[::1] rows,
                     const int32_t[::1] numbers) noexcept nogil:
    """Count; False without memory."""
    cdef int64_t n = len(rows)
    cdef bint fits
    cdef int64_t i
    for i in range(n):
        c.number[rows[i]] = <uint32_t>(i + 1)
    if c.marks == NULL:
        fits = count_all(c, numbers)
    else:
        fits = count_marked(c, rows, numbers)
    for i in range(n):
        c.number[rows[i]] = 0
    return fits and end_cell(c.cells)


cdef bint count_all(Counting* c, const int32_t[::1] numbers) noexcept nogil:
    """Look at all cells of the columns."""
    cdef int64_t n = c.n_columns if numbers is None else len(numbers)
    cdef int64_t i, k, p
    cdef uint32_t number
    for i in range(n):
        k = i if numbers is None else numbers[i]
        for p in range(c.start[k], c.start[k + 1]):
            number = c.number[c.row[p]]
            if number != 0 and not take(c.cells, c.first[k] + c.code[p],
                                        number - <int64_t>1):
                return False
    return True


cdef bint count_marked(Counting* c, const uint32_t[::1] rows,
                       const int32_t[::1] numbers) noexcept nogil:
    """Mark the cells of the rows, and read the marks; all columns, or some of them."""
    cdef int64_t i, p
    cdef uint32_t cell
    for i in range(len(rows)):
        for p in range(c.start_of_row[rows[i]], c.start_of_row[rows[i] + <int64_t>1]):
            cell = c.cell_of_row[p]
            c.marks[cell >> 6] |= <uint64_t>1 << (cell & 63)
    if numbers is None:
        return read_marks(c, 0, c.start[c.n_columns], 0)
    for i in range(len(numbers)):
        if not read_marks(c, c.start[numbers[i]], c.start[numbers[i] + 1], numbers[i]):
            return False
    return True


cdef bint read_marks(Counting* c, int64_t begin, int64_t end, int64_t k) noexcept nogil:
    """Count the marked cells of begin..end; k : a column at or before the first."""
    cdef int64_t w, p
    cdef uint64_t bits
    if begin >= end:
        return True
    for w in range(begin >> 6, (end - 1 >> 6) + 1):
        bits = c.marks[w]
        if 64 * w < begin:
            bits &= ~<uint64_t>0 << (begin & 63)
        if 64 * (w + 1) > end:
            bits &= ~<uint64_t>0 >> (64 * (w + 1) - end)
        while bits != 0:
            p = 64 * w + trailing_zeros(bits)
            bits &= bits - 1
            if p >= c.start[k + 1]:
                k = stretch_of(c.start, k + 1, c.n_columns, p)
            if not take(c.cells, c.first[k] + c.code[p],
                        c.number[c.row[p]] - <int64_t>1):
                return False
    return True
