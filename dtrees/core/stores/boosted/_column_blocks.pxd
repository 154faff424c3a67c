"""Codes by row, in blocks of columns; see _column_blocks.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column, Columns
from dtrees.core.data._structs cimport Totals

cdef enum:
    WIDTH = 8               # bytes of a block in a row, at most
    CELL = 2                # words

cdef struct SparseCells:
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

cdef struct Byte:
    int64_t first_cell      # of the code 0, in a histogram of all columns
    int n_columns           # more than one: a bundle
    const int32_t* column

cdef struct ColumnBlock:
    int n_columns
    bint is_narrow          # codes are bytes, by row
    bint is_sparse          # stored cells, by row; neither: one column, read by column
    int n_bytes             # of a row: a column each, or a bundle of several
    const Byte* bytes
    const uint8_t* codes    # (n_rows, n_bytes)
    int64_t mapped_rows     # of codes in a file, whose pages are let go of; 0: they are in memory
    int64_t first_cell      # in a histogram of all columns
    int64_t n_cells
    const int32_t* column   # (n_columns,)
    const int64_t* cell     # first cell of each column
    SparseCells stored      # of a sparse block

cdef struct StridedCodes:
    # Where partitions read the codes of a column of 8 bits.
    const uint8_t* codes    # in row 0
    int64_t stride          # bytes from row to row
    int64_t first           # what the byte of its code 0 would be


cdef class ColumnBlocks:
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_blocks
    cdef readonly int64_t n_cells       # of a histogram of all columns
    cdef int64_t n_bytes                # of a row, in all narrow blocks
    cdef int64_t mapped_rows            # of columns in files; 0: they are in memory
    cdef readonly object empty          # makes arrays, which may be in files
    cdef ColumnBlock* blocks
    cdef const Column* columns
    cdef Columns bound
    cdef int64_t* cell_of_column        # (n_columns,)
    cdef int32_t* order                 # columns, block after block
    cdef int64_t* cell_in_order
    cdef Byte* bytes
    cdef uint8_t* is_bundled            # (n_columns,)
    cdef StridedCodes* places           # (n_columns,)
    cdef list kept                      # arrays whose memory is pointed to
    cdef readonly int64_t n_laid_out    # columns that may be split
    cdef readonly int64_t n_bundled     # columns that share a byte

    cdef _lay_out(self, coded, int64_t min_rows, int64_t n_threads, bint is_part)
    cdef ColumnBlock* _begin_block(self)
    cdef void _append_byte(self, ColumnBlock* block, list columns)
    cdef void _append(self, ColumnBlock* block, int64_t j) noexcept
    cdef _lay_out_sparse(self, columns)
    cdef _copy_codes(self, uint8_t[::1] room, bint in_file)
    cdef _take_codes(self, uint8_t[::1] taken)
    cdef void _place_columns(self, const ColumnBlock* block) noexcept


cdef void count_block(const ColumnBlock* block, const Column* columns, const uint32_t* rows,
                      int64_t n, const uint64_t* derivatives, int shift,
                      int64_t* histogram) noexcept nogil
cdef bint complete_bundled(const Column* column, const Totals* totals, int shift, int64_t min_rows,
                           int64_t* cells) noexcept nogil
cdef void count_by_column(const SparseCells* stored, const Column* columns, const RowsOfNode* node,
                          StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void sum_by_row(const SparseCells* stored, const RowsOfNode* node,
                     StoredSums* sums) noexcept nogil
cdef void count_by_row(const SparseCells* stored, const Column* columns, const RowsOfNode* node,
                       const StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void take_off_stored(const SparseCells* stored, const RowsOfNode* node,
                          const StoredSums* sums, int64_t* histogram) noexcept nogil
cdef void complete_column(const Column* column, const StoredSums* sums, const Totals* totals,
                          int shift, int64_t* cells) noexcept nogil


cdef void let_go_of_column(const Column* column, int64_t n_rows) noexcept nogil


cdef inline bint is_out(const StoredSums* sums) noexcept nogil:
    """Whether the column has no split in the node, nor below it."""
    return sums.most < 0
