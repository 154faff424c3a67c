"""Stored cells of sparse columns, row by row; see _stored_rows.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals
from dtrees.core.search._search cimport Search

cdef struct StoredCells:
    # Of the columns of a block.
    int64_t n_columns
    const int32_t* column       # (n_columns,)
    const int64_t* first_cell   # (n_columns,), in a histogram of all columns
    const int64_t* start        # (n_rows + 1,)
    const uint32_t* cell        # of each stored cell: its place in the histogram
    const uint16_t* place       # and the number of its column in the block

cdef struct StoredSums:
    # Of a column in a node, over its stored cells.
    uint64_t first          # rows << shift | sum of hessians
    uint64_t second         # sum of gradients
    uint64_t size           # sum of what gradients are without their signs
    double most             # bounds of its splits, and whether it is out
    double least

cdef struct RowsOfNode:
    const uint32_t* rows        # ascending, (n,); NULL: the first n of the table
    int64_t n
    const uint64_t* derivatives     # by row: gradient << 32 | hessian
    int shift

cdef struct Removal:
    # Rows that are taken off a node, which becomes its larger child; hessians with l2 once a side.
    int shift
    int64_t min_rows
    double l2
    double floor            # the least weight of a side, with l2
    double weight           # of the child, with l2 of both sides
    double taken            # weight that is taken off
    double step             # gradient by weight of the node, without its sign
    double moved            # how far that moves


cdef list stored_by_row(const Column* columns, const int32_t* column, int64_t n_columns,
                        const int64_t* first_cell, int64_t n_rows, StoredCells* out)
cdef void count_by_column(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                          StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void sum_by_row(const StoredCells* stored, const RowsOfNode* node,
                     StoredSums* sums) noexcept nogil
cdef void count_by_row(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                       const StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void take_off_stored(const StoredCells* stored, const RowsOfNode* node,
                          const StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void complete_column(const Column* column, const StoredSums* sums, const Totals* totals,
                          int shift, int64_t* cells) noexcept nogil
cdef Removal removal_of(const Search* q, const Totals* lesser, const Totals* other,
                        int shift) noexcept nogil
cdef void begin_bounds_of(StoredSums* sums, int64_t n_columns, int shift,
                          int64_t min_rows) noexcept nogil
cdef void take_off_sums(const Removal* removal, const StoredSums* taken, int64_t n_columns,
                        StoredSums* sums) noexcept nogil
cdef double common_score(const Search* q) noexcept nogil
cdef void note_searched(const Search* q, const Column* column, const int64_t* cells, int shift,
                        double common, StoredSums* sums) noexcept nogil
cdef int64_t most_promising(const StoredSums* sums, int64_t n_columns) noexcept nogil


cdef inline bint is_out(const StoredSums* sums) noexcept nogil:
    """Whether the column has no split in the node, nor below it."""
    return sums.most < 0


cdef inline double bound_of(const StoredSums* sums, double common) noexcept nogil:
    """No boundary of the column has a score above it; it may be inf. common : `common_score`."""
    return (common + sums.most * sums.most) * (1.0 + 1e-9)
