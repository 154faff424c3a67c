"""The rows of a growth, each with what it adds; see _row_partition.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column, RowCodes
from dtrees.core.data._structs cimport Impurity, RowStatistics, Totals
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

cdef bint new_partition(RowPartition* partition, int64_t n, bint with_value) noexcept nogil
cdef void fill_partition(RowPartition* partition, const RowStatistics* of_row, const uint32_t* rows,
                         int64_t n) noexcept nogil
cdef void free_partition(RowPartition* partition) noexcept nogil
cdef void sum_items(const RowPartition* partition, int64_t start, int64_t n, Impurity impurity,
                    double fixed_point, int64_t n_classes, Totals* totals,
                    int64_t* class_totals) noexcept nogil
cdef void range_of_items(const RowPartition* partition, int64_t start, int64_t n,
                         Totals* totals) noexcept nogil
cdef int64_t partition_items(RowPartition* partition, int64_t start, int64_t n, const Route* route,
                             const Column* column, const uint32_t* codes,
                             const RowCodes* rows) noexcept nogil
