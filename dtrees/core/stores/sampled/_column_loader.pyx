"""The rows of a growth that draws columns, and what is read of a node.

Where columns are drawn and read afresh (`_sampled_columns`), the rows of the open nodes are all
that growth keeps. A row, how often it is in the bag and its class are one number, which moves to
the children as a whole, so that whatever a node adds up is read from one end to the other:

    item      63        48 47        32 31                   0
             |  class     |  times     |  row                 |
    value     y of the row (regression)

Weights that are not times, and weighted targets in a unit of their own, are looked up by row.

A loader holds these rows and whatever scratch is needed to read a column of them. For each node it
prepares, once for all columns that are drawn there, what its rows add to a sum:

    several classes   the classes that the node holds, numbered anew
    two classes       rows, weight and weight of class 1 of a row in one number, so that a cell
                      takes one addition
    few rows          weight and target of each
    sorted columns    class, weight and target of each, when a column asks for them

Its memory serves the next growth, if that is of a like table.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, RowCodes, code_t
from dtrees.core.data._fixed_point cimport moment_of
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ABSOLUTE, RowStatistics, Totals, int128_t
from dtrees.core.histogram._layout cimport (
    CLASSES, LARGEST_FIELD, LARGEST_HALF, OUTPUTS, PACKED, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM,
    CellKind, Layout, encode
)
from dtrees.core.histogram._totals cimport (
    Median, add_to_totals, are_alike, pass_row, tell_median
)
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, by_class
from dtrees.core.stores._partition cimport Route, goes_left

# ---------------------------------------------------------------------------------------------
# the rows of a growth

cdef void sum_items(const RowPartition* partition, int64_t start, int64_t n, const Layout* layout,
                    Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of the items start .. start+n; class_totals (n_classes,) is overwritten.

    Not by `histogram._totals`, a row at a time, whose sums are in memory (measured: with this, a
    sort of few rows and a step without a way for leaves of its own, forests 1.23 times as long).
    """
    cdef int64_t i, w, wy
    cdef int64_t weight = 0
    cdef int64_t target = 0
    cdef int128_t moment = 0
    cdef int64_t n_classes = layout.n_classes
    cdef Median m
    memset(totals, 0, sizeof(Totals))
    if partition.outputs.n_outputs > 0:
        memset(class_totals, 0, n_classes * sizeof(int64_t))
        for i in range(start, start + n):
            add_to_totals(&partition.outputs, NULL, row_of(partition.item[i]), totals, class_totals)
        range_of_items(partition, start, n, totals)
        return
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
            moment += moment_of(layout.impurity, layout.fixed_point, w, wy, partition.value[i])
    totals.weight = weight
    totals.target = target
    totals.moment = moment
    if layout.impurity == ABSOLUTE:
        memset(&m, 0, sizeof(Median))
        m.weight = weight
        for i in range(start, start + n):
            pass_row(&m, partition.value[i], weight_at(partition, i), target_at(partition, i))
        tell_median(&m, layout.shift, totals)


cdef void range_of_items(const RowPartition* partition, int64_t start, int64_t n,
                         Totals* totals) noexcept nogil:
    """Least and greatest y of the items; of several outputs, whether they differ."""
    cdef int64_t lowest = 0x7FFFFFFFFFFFFFFF
    cdef int64_t highest = -0x7FFFFFFFFFFFFFFF
    cdef int64_t i, y
    if partition.outputs.n_outputs > 0:
        totals.lowest = totals.highest = 0
        for i in range(start + 1, start + n if partition.outputs.value != NULL else 0):
            if not are_alike(&partition.outputs, row_of(partition.item[start]),
                             row_of(partition.item[i])):
                totals.highest = 1
                break
        return
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


# ---------------------------------------------------------------------------------------------
# the rows of a node

cdef enum:
    NO_POSITION = 0xFFFFFFFF    # of a row that the growth has not


cdef ColumnLoader* new_loader(const TrainParameters* params, const RowStatistics* of_row, int64_t n,
                              int64_t n_table_rows) noexcept nogil:
    """A loader for n rows of a table of n_table_rows; NULL without memory.

    of_row : by row of the table. Freed by `free_loader`.
    """
    cdef ColumnLoader* loader = <ColumnLoader*>calloc(1, sizeof(ColumnLoader))
    cdef CellKind kind = params.layout.kind
    cdef int64_t n_classes = params.criterion.n_classes
    cdef int64_t n_rows = n + n // 8  # the next bag may be larger
    cdef RowPartition* partition
    cdef bint found
    if loader == NULL:
        return NULL
    partition = &loader.partition
    loader.room = n_rows
    loader.n_table_rows = n_table_rows
    loader.kind = kind
    loader.n_classes = params.criterion.n_classes
    loader.random_splits = params.limits.random_splits
    loader.is_weighted = is_weighted(of_row)
    loader.n_outputs = loader.of_row.n_outputs = of_row.n_outputs
    loader.of_row.n_lanes = of_row.n_lanes
    loader.has_target = has_target(kind, of_row)
    loader.lists = params.lists
    found = claim(<void**>&loader.codes, (n_rows + 1) * sizeof(uint32_t))
    found &= claim(<void**>&partition.item, (n_rows + 1) * sizeof(uint64_t))
    found &= claim(<void**>&partition.spare, (n_rows + 1) * sizeof(uint64_t))
    found &= claim(<void**>&partition.side, n_rows + 1)
    if loader.random_splits:
        found &= claim(<void**>&loader.sides, (n_rows + 1) * sizeof(uint32_t))
        found &= reserve_cells(loader, 32, n_classes + 3)  # for each bit of the sides
    if of_row.value != NULL and kind != OUTPUTS:
        found &= claim(<void**>&partition.value, (n_rows + 1) * sizeof(int64_t))
        found &= claim(<void**>&partition.spare_value, (n_rows + 1) * sizeof(int64_t))
    if kind == CLASSES or kind == WEIGHTED_CLASSES:
        found &= claim(<void**>&loader.local_totals, (n_classes + 1) * sizeof(int64_t))
        found &= claim(<void**>&loader.local_number, n_classes * sizeof(uint16_t))
        found &= claim(<void**>&loader.label, (n_rows + 1) * sizeof(uint16_t))
    elif of_row.label != NULL and kind != OUTPUTS:
        loader.packed = loader.partition.spare  # a node is searched before it is partitioned
    if loader.lists.start != NULL:
        found &= claim(<void**>&loader.position, (n_table_rows + 1) * sizeof(uint32_t))
        if loader.position != NULL:
            memset(loader.position, 0xFF, n_table_rows * sizeof(uint32_t))  # NO_POSITION
        found &= claim_zeros(<void**>&loader.present, loader.lists.n_words * sizeof(uint64_t))
    if not found:
        free_loader(loader)
        return NULL
    return loader


cdef inline bint is_weighted(const RowStatistics* of_row) noexcept nogil:
    return of_row.times != NULL or of_row.weight != NULL


cdef inline bint has_target(CellKind kind, const RowStatistics* of_row) noexcept nogil:
    return (kind == SUM or kind == WEIGHTED_SUM
            or kind == OUTPUTS and of_row.target != NULL)


cdef bint serves(const ColumnLoader* loader, const TrainParameters* params,
                 const RowStatistics* of_row, int64_t n, int64_t n_table_rows) noexcept nogil:
    """Whether the loader of another growth has all that `new_loader` would give this one."""
    return (loader.kind == params.layout.kind and loader.n_classes == params.criterion.n_classes
            and loader.is_weighted == is_weighted(of_row)
            and loader.n_outputs == of_row.n_outputs
            and loader.of_row.n_lanes == of_row.n_lanes
            and loader.has_target == has_target(loader.kind, of_row)
            and loader.room >= n and loader.n_table_rows == n_table_rows
            and loader.lists.n_words == params.lists.n_words
            and loader.random_splits == params.limits.random_splits)


cdef void take_rows(ColumnLoader* loader, const TrainParameters* params,
                    const RowStatistics* of_row, const uint32_t* rows, int64_t n) noexcept nogil:
    """The rows of a growth; `rows` may be the loader's own scratch (`codes`)."""
    cdef RowPartition* partition = &loader.partition
    cdef int64_t i
    cdef uint64_t row, times, label
    if loader.position != NULL:  # nobody has the rows of the growth before: O(these)
        for i in range(loader.n_rows):
            loader.position[row_of(partition.item[i])] = NO_POSITION
        for i in range(n):
            loader.position[rows[i]] = <uint32_t>i
    loader.n_rows = n
    loader.lists = params.lists
    loader.local = params.criterion
    loader.most_times = 0
    partition.weight = of_row.weight
    partition.target = NULL
    memset(&partition.outputs, 0, sizeof(RowStatistics))
    loader.of_row.zero_one, loader.of_row.largest = of_row.zero_one, of_row.largest
    if of_row.n_outputs > 0:
        partition.outputs = of_row[0]
    elif of_row.value != NULL and of_row.target != of_row.value:
        partition.target = of_row.target
    for i in range(n):
        row = rows[i]
        times = 1 if of_row.times == NULL else of_row.times[row]
        label = 0 if of_row.label == NULL or of_row.n_outputs > 0 else of_row.label[row]
        partition.item[i] = row | times << TIMES | label << LABEL
        loader.most_times = max(loader.most_times, <int64_t>times)
    if partition.value != NULL:
        for i in range(n):
            partition.value[i] = of_row.value[rows[i]]


cdef const uint32_t* row_numbers(const ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """The rows of a node, until a column is read."""
    cdef int64_t i
    for i in range(node.totals.n):
        loader.codes[i] = row_of(loader.partition.item[node.start + i])
    return loader.codes


cdef uint32_t* list_rows(const ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """The rows of a node, which the caller frees; NULL without memory."""
    cdef size_t n_bytes = node.totals.n * sizeof(uint32_t)
    cdef uint32_t* rows = <uint32_t*>malloc(n_bytes + 1)
    if rows != NULL:
        memcpy(rows, row_numbers(loader, node), n_bytes)
    return rows


cdef void note_positions(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """Note where the rows of a node are, after they were partitioned."""
    cdef int64_t i
    if loader.position != NULL:
        for i in range(node.start, node.start + node.totals.n):
            loader.position[row_of(loader.partition.item[i])] = <uint32_t>i


cdef void free_loader(ColumnLoader* loader) noexcept nogil:
    if loader == NULL:
        return
    free(loader.partition.item)
    free(loader.partition.value)
    free(loader.partition.spare)
    free(loader.partition.spare_value)
    free(loader.partition.side)
    free(loader.of_row.label)
    free(loader.of_row.weight)
    free(loader.of_row.target)
    free(loader.of_row.numbers)
    free(loader.local_totals)
    free(loader.local_number)
    free(loader.label)
    free(loader.cells)
    free(loader.hit)
    free(loader.counts)
    free(loader.entries)
    free(loader.scratch)
    free(loader.codes)
    free(loader.sides)
    free(loader.position)
    free(loader.present)
    free(loader)


cdef void read_rows(ColumnLoader* loader, const Search* q, const OpenNode* node) noexcept nogil:
    """Take the rows of a node: what they add to a histogram. O(rows)."""
    loader.has_statistics = False
    loader.is_packed = loader.is_small = False
    loader.is_paired = node.totals.weight <= LARGEST_HALF
    if q.kind == OUTPUTS:
        loader.is_paired = False
    elif by_class(q):
        number_classes(loader, node, q.criterion.n_classes)
    elif q.criterion.n_classes > 0:
        loader.is_packed = (node.totals.weight <= LARGEST_FIELD
                            and PATH_IS_ON("packed_cell_of_two_classes"))
        loader.is_small = (loader.is_packed and loader.partition.weight == NULL
                           and loader.most_times < 256)
        loader.has_packed = False


cdef void number_classes(ColumnLoader* loader, const OpenNode* node,
                         int64_t n_classes) noexcept nogil:
    """Number the classes that the node holds; cells and sums of the others are zero anyway."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int n_local = 0
    cdef int64_t i
    for i in range(n_classes):
        loader.local_number[i] = <uint16_t>n_local
        loader.local_totals[n_local] = node.class_totals[i]
        n_local += node.class_totals[i] > 0
    loader.local.n_classes = n_local
    for i in range(node.totals.n):
        loader.label[i] = loader.local_number[label_of(item[i])]


cdef void pack_rows(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """Two classes: all that a row adds in one number, if that is not there yet."""
    cdef const RowPartition* partition = &loader.partition
    cdef const uint64_t* item = partition.item + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t i
    if loader.has_packed or not loader.is_packed:
        return
    loader.has_packed = True
    for i in range(n):
        loader.packed[i] = <uint64_t>encode(PACKED, weight_at(partition, node.start + i),
                                            label_of(item[i]))


cdef bint gather_statistics(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, one by one, if that is not there yet; False without memory.
    """
    cdef const RowPartition* partition = &loader.partition
    cdef int64_t start = node.start
    cdef int64_t count = node.totals.n + node.totals.n // 2
    cdef int64_t width = partition.outputs.n_outputs
    cdef int64_t i
    cdef bint found
    if loader.has_statistics:
        return True
    if node.totals.n > loader.n_statistics:
        loader.n_statistics = 0
        found = True
        if width == 0 or not loader.has_target:
            found &= claim(<void**>&loader.of_row.label, max(width, 1) * count * sizeof(uint16_t))
        if loader.is_weighted:
            found &= claim(<void**>&loader.of_row.weight, count * sizeof(int64_t))
        if loader.has_target:
            found &= claim(<void**>&loader.of_row.target,
                           max(width, 1) * count * sizeof(int64_t))
        if loader.of_row.n_lanes > 0:
            found &= claim(<void**>&loader.of_row.numbers,
                           loader.of_row.n_lanes * count * sizeof(double))
        if not found:
            return False
        loader.n_statistics = count
    loader.has_statistics = True
    if width > 0:
        gather_outputs(loader, node)
        return True
    for i in range(node.totals.n):
        loader.of_row.label[i] = <uint16_t>label_of(partition.item[start + i])
    if loader.is_weighted:
        for i in range(node.totals.n):
            loader.of_row.weight[i] = weight_at(partition, start + i)
    if loader.has_target:
        for i in range(node.totals.n):
            loader.of_row.target[i] = target_at(partition, start + i)
    return True


cdef void gather_outputs(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, of several outputs; there is room."""
    cdef const RowPartition* partition = &loader.partition
    cdef const RowStatistics* by_row = &partition.outputs
    cdef int64_t m = by_row.n_outputs
    cdef int64_t lanes = by_row.n_lanes
    cdef int64_t i, row
    for i in range(node.totals.n):
        row = row_of(partition.item[node.start + i])
        if lanes > 0:
            memcpy(loader.of_row.numbers + i * lanes, by_row.numbers + row * lanes,
                   lanes * sizeof(double))
        if loader.is_weighted:
            loader.of_row.weight[i] = by_row.weight[row]
        if loader.has_target:
            memcpy(loader.of_row.target + i * m, by_row.target + row * m, m * sizeof(int64_t))
        else:
            memcpy(loader.of_row.label + i * m, by_row.label + row * m, m * sizeof(uint16_t))


cdef bint reserve_entries(ColumnLoader* loader, int64_t count) noexcept nogil:
    """Room for so many entries; False without memory."""
    if count <= loader.n_entries:
        return True
    loader.n_entries = 0
    if (claim(<void**>&loader.entries, count * sizeof(uint64_t))
            and claim(<void**>&loader.scratch, count * sizeof(uint64_t))):
        loader.n_entries = count
    return loader.n_entries > 0


cdef bint reserve_cells(ColumnLoader* loader, int64_t n_codes, int64_t stride) noexcept nogil:
    """A histogram of zeros and bits for codes 0..n_codes; False without memory."""
    cdef int64_t n_cells = (n_codes + 1) * stride
    cdef int64_t n_words = (n_codes >> 6) + 1
    if n_cells > loader.n_cells:
        loader.n_cells = 0
        if claim_zeros(<void**>&loader.cells, n_cells * sizeof(int64_t)):
            loader.n_cells = n_cells
    if n_words > loader.n_words:
        loader.n_words = 0
        if claim_zeros(<void**>&loader.hit, n_words * sizeof(uint64_t)):
            loader.n_words = n_words
    return n_cells <= loader.n_cells and n_words <= loader.n_words
