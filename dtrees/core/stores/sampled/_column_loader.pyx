"""The rows of a growth that draws columns, and of one node after the other.

A loader holds the row partition (`_row_partition`) and whatever scratch is needed to read a column
of it. For each node it prepares, once for all columns that are drawn there, what its rows add to a
sum:

    several classes   the classes that the node holds, numbered anew
    two classes       rows, weight and weight of class 1 of a row in one number, so that a cell
                      takes one addition
    few rows          weight and target of each
    sorted columns    class, weight and target of each, when a column asks for them

Its memory serves the next growth, if that is of a like table. How columns are read is the matter of
`_sampled_columns` and the files that it names.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport (
    CLASSES, LARGEST_FIELD, LARGEST_HALF, PACKED, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind,
    encode
)
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, by_class
from dtrees.core.stores.sampled._row_partition cimport (
    RowPartition, fill_partition, free_partition, label_of, new_partition, row_of, target_at,
    times_of, weight_at
)

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
    cdef bint found
    if loader == NULL:
        return NULL
    loader.room = n_rows
    loader.n_table_rows = n_table_rows
    loader.kind = kind
    loader.n_classes = params.criterion.n_classes
    loader.random_splits = params.limits.random_splits
    loader.is_weighted = is_weighted(of_row)
    loader.has_target = kind == SUM or kind == WEIGHTED_SUM
    loader.lists = params.lists
    found = new_partition(&loader.partition, n_rows, of_row.value != NULL)
    found &= claim(<void**>&loader.codes, (n_rows + 1) * sizeof(uint32_t))
    if kind == CLASSES or kind == WEIGHTED_CLASSES:
        found &= claim(<void**>&loader.local_totals, (n_classes + 1) * sizeof(int64_t))
        found &= claim(<void**>&loader.local_number, n_classes * sizeof(uint16_t))
        found &= claim(<void**>&loader.label, (n_rows + 1) * sizeof(uint16_t))
    elif of_row.label != NULL:
        loader.packed = loader.partition.spare  # a node is searched before it is partitioned
        if loader.random_splits:
            found &= claim(<void**>&loader.small_weight, n_rows + 1)
            found &= claim(<void**>&loader.small_target, n_rows + 1)
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


cdef bint serves(const ColumnLoader* loader, const TrainParameters* params,
                 const RowStatistics* of_row, int64_t n, int64_t n_table_rows) noexcept nogil:
    """Whether the loader of another growth has all that `new_loader` would give this one."""
    return (loader.kind == params.layout.kind and loader.n_classes == params.criterion.n_classes
            and loader.is_weighted == is_weighted(of_row)
            and loader.room >= n and loader.n_table_rows == n_table_rows
            and loader.lists.n_words == params.lists.n_words
            and loader.random_splits == params.limits.random_splits)


cdef void take_rows(ColumnLoader* loader, const TrainParameters* params,
                    const RowStatistics* of_row, const uint32_t* rows, int64_t n) noexcept nogil:
    """The rows of a growth; `rows` may be the loader's own scratch (`codes`)."""
    cdef int64_t i
    forget_positions(loader)
    loader.n_rows = n
    loader.lists = params.lists
    loader.local = params.criterion
    fill_partition(&loader.partition, of_row, rows, n)
    loader.most_times = 0
    for i in range(n if loader.random_splits else 0):
        if times_of(loader.partition.item[i]) > loader.most_times:
            loader.most_times = times_of(loader.partition.item[i])
    if loader.position != NULL:
        for i in range(n):
            loader.position[rows[i]] = <uint32_t>i


cdef void forget_positions(ColumnLoader* loader) noexcept nogil:
    """Nobody has the rows of the growth before. O(its rows), which may be few of the table's."""
    cdef int64_t i
    if loader.position != NULL:
        for i in range(loader.n_rows):
            loader.position[row_of(loader.partition.item[i])] = NO_POSITION


cdef uint32_t* list_rows(const ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """The rows of a node, which the caller frees; NULL without memory."""
    cdef uint32_t* rows = <uint32_t*>malloc((node.totals.n + 1) * sizeof(uint32_t))
    cdef int64_t i
    for i in range(node.totals.n if rows != NULL else 0):
        rows[i] = row_of(loader.partition.item[node.start + i])
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
    free_partition(&loader.partition)
    free(loader.of_row.label)
    free(loader.of_row.weight)
    free(loader.of_row.target)
    free(loader.local_totals)
    free(loader.local_number)
    free(loader.label)
    free(loader.small_weight)
    free(loader.small_target)
    free(loader.cells)
    free(loader.hit)
    free(loader.counts)
    free(loader.entries)
    free(loader.scratch)
    free(loader.codes)
    free(loader.position)
    free(loader.present)
    free(loader)


cdef void read_rows(ColumnLoader* loader, const Search* q, const OpenNode* node) noexcept nogil:
    """Take the rows of a node: what they add to a histogram. O(rows)."""
    loader.has_statistics = False
    loader.is_packed = False
    loader.is_paired = node.totals.weight <= LARGEST_HALF
    loader.is_small = False
    if by_class(q):
        number_classes(loader, node, q.criterion.n_classes)
    elif q.criterion.n_classes > 0:
        loader.is_packed = (node.totals.weight <= LARGEST_FIELD
                            and PATH_IS_ON("packed_cell_of_two_classes"))
        loader.has_packed = False
        loader.has_small = False
        loader.is_small = (loader.small_weight != NULL and loader.partition.weight == NULL
                           and loader.is_paired and loader.most_times < 256)


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


cdef void pack_small(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """The same in two numbers of 8 bits, for random splits."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef uint64_t weight
    cdef int64_t i
    if loader.has_small:
        return
    loader.has_small = True
    for i in range(node.totals.n):
        weight = times_of(item[i])
        loader.small_weight[i] = <uint8_t>weight
        loader.small_target[i] = <uint8_t>(weight * <uint64_t>label_of(item[i]))


cdef bint reserve_statistics(ColumnLoader* loader, int64_t count) noexcept nogil:
    """Room for so many rows; False without memory."""
    cdef bint found
    if count <= loader.n_statistics:
        return True
    count = count + count // 2
    loader.n_statistics = 0
    found = claim(<void**>&loader.of_row.label, count * sizeof(uint16_t))
    if loader.is_weighted:
        found &= claim(<void**>&loader.of_row.weight, count * sizeof(int64_t))
    if loader.has_target:
        found &= claim(<void**>&loader.of_row.target, count * sizeof(int64_t))
    if found:
        loader.n_statistics = count
    return found


cdef bint gather_statistics(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, one by one, if that is not there yet; False without memory.
    """
    cdef const RowPartition* partition = &loader.partition
    cdef int64_t start = node.start
    cdef int64_t i
    if loader.has_statistics:
        return True
    if not reserve_statistics(loader, node.totals.n):
        return False
    loader.has_statistics = True
    for i in range(node.totals.n):
        loader.of_row.label[i] = <uint16_t>label_of(partition.item[start + i])
    if loader.is_weighted:
        for i in range(node.totals.n):
            loader.of_row.weight[i] = weight_at(partition, start + i)
    if loader.has_target:
        for i in range(node.totals.n):
            loader.of_row.target[i] = target_at(partition, start + i)
    return True


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
