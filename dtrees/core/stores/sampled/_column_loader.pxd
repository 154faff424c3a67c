"""The rows of a growth that draws columns; see _column_loader.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column, RowCodes, RowLists
from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, Totals
from dtrees.core.histogram._layout cimport CellKind, Layout
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._partition cimport Route

cdef enum:
    TIMES = 32              # where the fields of an item begin
    LABEL = 48
    NEAR_ROWS = 8192        # their codes by row fit the cache

cdef struct RowPartition:
    # Rows in the order of the nodes: node after node, ascending in each.
    uint64_t* item          # row | times << TIMES | label << LABEL
    int64_t* value          # regression: y of the row, else NULL
    uint64_t* spare         # scratch of the same sizes
    int64_t* spare_value
    uint8_t* side           # scratch, a byte per row
    const int64_t* weight   # by row: instead of the times; NULL
    const int64_t* target   # by row: instead of weight times value; NULL
    RowStatistics outputs   # by row: of several outputs; else there are none

cdef inline uint32_t row_of(uint64_t item) noexcept nogil:
    return <uint32_t>item

cdef inline int64_t label_of(uint64_t item) noexcept nogil:
    return <int64_t>(item >> LABEL)

cdef inline int64_t times_of(uint64_t item) noexcept nogil:
    return <int64_t>(item >> TIMES & 0xFFFF)

cdef inline int64_t weight_at(const RowPartition* partition, int64_t i) noexcept nogil:
    if partition.weight == NULL:
        return times_of(partition.item[i])
    return partition.weight[row_of(partition.item[i])]

cdef inline int64_t target_at(const RowPartition* partition, int64_t i) noexcept nogil:
    """Weighted target of an item: of the class as a number, in classification."""
    if partition.target != NULL:
        return partition.target[row_of(partition.item[i])]
    return weight_at(partition, i) * (
        label_of(partition.item[i]) if partition.value == NULL else partition.value[i])

cdef void sum_items(const RowPartition* partition, int64_t start, int64_t n, const Layout* layout,
                    Totals* totals, int64_t* class_totals) noexcept nogil
cdef void range_of_items(const RowPartition* partition, int64_t start, int64_t n,
                         Totals* totals) noexcept nogil
cdef int64_t partition_items(RowPartition* partition, int64_t start, int64_t n, const Route* route,
                             const Column* column, const uint32_t* codes,
                             const RowCodes* rows) noexcept nogil

cdef struct ColumnLoader:
    # The rows of a growth, and scratch to read columns of them.
    RowPartition partition
    int64_t n_rows
    int64_t room            # rows
    int64_t n_table_rows
    CellKind kind
    int n_classes
    bint random_splits
    int n_outputs           # 0: y is one column
    bint is_weighted        # what the modes of the search want to know of a row
    bint has_target
    RowStatistics of_row         # of the rows of a node, in their order, when it was asked for
    int64_t n_statistics       # room
    bint has_statistics        # gathered for this node
    Criterion local         # the classes that the node holds, numbered from 0
    int64_t* local_totals   # (n_classes,)
    uint16_t* local_number  # by class
    uint16_t* label         # local number of the class, in the order of the rows
    uint64_t* packed        # two classes: what each row adds, in `partition.spare`
    bint is_packed          # the node's sums fit the packed fields
    bint is_small           # and each row of the node adds less than 256
    int64_t most_times      # no row of the growth is counted more often
    bint has_packed
    bint is_paired          # rows and weights fit halves of a number
    int64_t* cells          # a histogram, all zero between two columns
    int64_t n_cells
    uint64_t* hit           # bit per code, all zero between two columns
    int64_t n_words
    uint32_t* counts        # by code, all zero between two columns
    int64_t n_counts
    uint64_t* entries       # of one column: code | position of the row in the node
    uint64_t* scratch
    int64_t n_entries       # room
    uint32_t* codes         # of one column, in the order of the rows; before, the rows
    uint32_t* sides         # random splits: a bit per column, in the order of the rows
    uint32_t* position      # by row of the table: where its item is; kept for sparse columns
    RowLists lists          # of the table
    uint64_t* present       # bit per column, all zero between two nodes
    bint knows_present      # the bits are those of this node
    PresortedFeature feature  # of the column that was read last


cdef ColumnLoader* new_loader(const TrainParameters* params, const RowStatistics* of_row, int64_t n,
                              int64_t n_table_rows) noexcept nogil
cdef bint serves(const ColumnLoader* loader, const TrainParameters* params,
                 const RowStatistics* of_row, int64_t n, int64_t n_table_rows) noexcept nogil
cdef void take_rows(ColumnLoader* loader, const TrainParameters* params,
                    const RowStatistics* of_row, const uint32_t* rows, int64_t n) noexcept nogil
cdef const uint32_t* row_numbers(const ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef uint32_t* list_rows(const ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef void note_positions(ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef void free_loader(ColumnLoader* loader) noexcept nogil
cdef void read_rows(ColumnLoader* loader, const Search* q, const OpenNode* node) noexcept nogil
cdef void pack_rows(ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef bint gather_statistics(ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef bint reserve_entries(ColumnLoader* loader, int64_t count) noexcept nogil
cdef bint reserve_cells(ColumnLoader* loader, int64_t n_codes, int64_t stride) noexcept nogil
