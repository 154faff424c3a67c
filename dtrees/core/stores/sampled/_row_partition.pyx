"""The rows of a growth, each with what it adds to the statistics.

Where columns are drawn and read afresh (`_sampled_columns`), the rows of the open nodes are all
that growth keeps. A row, how often it is in the bag and its class are one number, which moves to
the children as a whole, so that whatever a node adds up is read from one end to the other:

    item      63        48 47        32 31                   0
             |  class     |  times     |  row                 |
    value     y of the row (regression)

Weights that are not times, and weighted targets in a unit of their own, are looked up by row.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, RowCodes, code_t
from dtrees.core.data._fixed_point cimport moment_of
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport Impurity, RowStatistics, Totals, int128_t
from dtrees.core.stores._partition cimport Route, goes_left


cdef bint new_partition(RowPartition* partition, int64_t n, bint with_value) noexcept nogil:
    """Memory for n rows; False without. Given back by `free_partition`."""
    cdef bint found
    memset(partition, 0, sizeof(RowPartition))
    found = claim(<void**>&partition.item, (n + 1) * sizeof(uint64_t))
    found &= claim(<void**>&partition.spare, (n + 1) * sizeof(uint64_t))
    found &= claim(<void**>&partition.side, n + 1)
    if with_value:
        found &= claim(<void**>&partition.value, (n + 1) * sizeof(int64_t))
        found &= claim(<void**>&partition.spare_value, (n + 1) * sizeof(int64_t))
    return found


cdef void fill_partition(RowPartition* partition, const RowStatistics* of_row, const uint32_t* rows,
                         int64_t n) noexcept nogil:
    cdef int64_t i
    cdef uint64_t row, times, label
    partition.weight = of_row.weight
    partition.target = NULL
    if of_row.value != NULL and of_row.target != of_row.value:
        partition.target = of_row.target
    for i in range(n):
        row = rows[i]
        times = 1 if of_row.times == NULL else of_row.times[row]
        label = 0 if of_row.label == NULL else of_row.label[row]
        partition.item[i] = row | times << TIMES | label << LABEL
    if partition.value != NULL:
        for i in range(n):
            partition.value[i] = of_row.value[rows[i]]


cdef void free_partition(RowPartition* partition) noexcept nogil:
    free(partition.item)
    free(partition.value)
    free(partition.spare)
    free(partition.spare_value)
    free(partition.side)
    memset(partition, 0, sizeof(RowPartition))


cdef void sum_items(const RowPartition* partition, int64_t start, int64_t n, Impurity impurity,
                    double fixed_point, int64_t n_classes, Totals* totals,
                    int64_t* class_totals) noexcept nogil:
    """Totals of the items start .. start+n; class_totals (n_classes,) is overwritten.

    Not by `histogram._totals`, a row at a time, whose sums are in memory (measured: with this, a
    sort of few rows and a step without a way for leaves of its own, forests 1.23 times as long).
    """
    cdef int64_t i, w, wy
    cdef int64_t weight = 0
    cdef int64_t target = 0
    cdef int128_t moment = 0
    memset(totals, 0, sizeof(Totals))
    totals.n = n
    if n_classes > 2:
        memset(class_totals, 0, n_classes * sizeof(int64_t))
        for i in range(start, start + n):
            w = weight_at(partition, i)
            class_totals[label_of(partition.item[i])] += w
            weight += w
        target = class_totals[1]
    elif n_classes > 0:
        for i in range(start, start + n):
            w = weight_at(partition, i)
            weight += w
            target += w * label_of(partition.item[i])
        class_totals[0] = weight - target
        if n_classes > 1:
            class_totals[1] = target
    else:
        range_of_items(partition, start, n, totals)
        for i in range(start, start + n):
            w = weight_at(partition, i)
            wy = target_at(partition, i)
            weight += w
            target += wy
            moment += moment_of(impurity, fixed_point, w, wy, partition.value[i])
    totals.weight = weight
    totals.target = target
    totals.moment = moment


cdef void range_of_items(const RowPartition* partition, int64_t start, int64_t n,
                         Totals* totals) noexcept nogil:
    """Least and greatest y of the items."""
    cdef int64_t lowest = 0x7FFFFFFFFFFFFFFF
    cdef int64_t highest = -0x7FFFFFFFFFFFFFFF
    cdef int64_t i, y
    for i in range(start, start + n):
        y = partition.value[i]
        lowest = y if y < lowest else lowest
        highest = y if y > highest else highest
    totals.lowest = lowest
    totals.highest = highest


# ---------------------------------------------------------------------------------------------
# to the children

cdef inline void mark_items(RowPartition* partition, int64_t start, int64_t n, const Route* route,
                            const code_t* codes, int64_t stride) noexcept nogil:
    """Note the sides of items by a comparison of codes; without a branch.

    stride : how far apart the codes of neighbouring rows are.
    """
    cdef const uint64_t* item = partition.item + start
    cdef uint32_t above = route.low + 1
    cdef uint32_t width = route.high - route.low
    cdef uint32_t missing_left = route.missing_left
    cdef uint8_t* side = partition.side
    cdef uint32_t code
    cdef int64_t i
    for i in range(n):
        code = codes[<uint32_t>item[i] * stride]
        side[i] = (code - above < width) | (missing_left & (code == 0))


cdef inline int64_t move_items(RowPartition* partition, int64_t start, int64_t n,
                               bint with_value) noexcept nogil:
    """Move items to the front, or to the spare ones, by their sides; returns how many went left.

    Sides are known before: no read waits for a write whose place depends on the reads before it.
    """
    cdef uint64_t* item = partition.item + start
    cdef int64_t* value = partition.value + start if with_value else NULL
    cdef const uint8_t* side = partition.side
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t i, y
    cdef uint64_t x
    for i in range(n):
        x = item[i]
        item[n_left] = x
        partition.spare[n_right] = x
        if with_value:
            y = value[i]
            value[n_left] = y
            partition.spare_value[n_right] = y
        n_left += side[i]
        n_right += 1 - side[i]
    return n_left


cdef int64_t partition_items(RowPartition* partition, int64_t start, int64_t n, const Route* route,
                             const Column* column, const uint32_t* codes,
                             const RowCodes* rows) noexcept nogil:
    """Partition the items of a node, left ones first, in their order; returns how many went left.

    codes : of the items, or NULL: those of a dense column, for a test that is no subset.
    rows : the codes by row, which were just read; its `codes` may be NULL.
    """
    cdef int64_t i, n_left
    if codes != NULL:
        for i in range(n):
            partition.side[i] = goes_left(route, codes[i])
    elif rows.codes != NULL and column.row_slot >= 0 and n <= NEAR_ROWS:
        mark_items(partition, start, n, route, rows.codes + column.row_slot, rows.width)
    elif column.storage == STORED_U8:
        mark_items(partition, start, n, route, <const uint8_t*>column.codes, 1)
    elif column.storage == STORED_U16:
        mark_items(partition, start, n, route, <const uint16_t*>column.codes, 1)
    else:
        mark_items(partition, start, n, route, <const uint32_t*>column.codes, 1)
    if partition.value == NULL:
        n_left = move_items(partition, start, n, False)
    else:
        n_left = move_items(partition, start, n, True)
        memcpy(partition.value + start + n_left, partition.spare_value,
               (n - n_left) * sizeof(int64_t))
    memcpy(partition.item + start + n_left, partition.spare, (n - n_left) * sizeof(uint64_t))
    return n_left
