"""Codes by row, and blocks of columns; see _column_blocks.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column, Columns

cdef enum:
    WIDTH = 8               # columns of a block, at most
    CELL = 2                # words

cdef struct ColumnBlock:
    int n_columns
    bint is_narrow          # codes are bytes, by row; otherwise one column, read by column
    uint8_t* codes          # of its first column, in row 0
    int64_t stride          # bytes from row to row
    int64_t first_cell      # in a histogram of all columns
    int64_t n_cells
    int32_t column[WIDTH]
    int64_t cell[WIDTH]     # first cell of each column


cdef class ColumnBlocks:
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_blocks
    cdef readonly int64_t n_cells       # of a histogram of all columns
    cdef int64_t stride                 # bytes of a row
    cdef uint8_t* codes                 # (n_rows, stride)
    cdef ColumnBlock* blocks
    cdef const Column* columns
    cdef Columns bound
    cdef int64_t* cell_of_column        # (n_columns,)

    cdef _lay_out(self, coded, int64_t width)
    cdef void _point_at_codes(self) noexcept


cdef void count_block(const ColumnBlock* block, const Column* columns, const uint32_t* rows,
                      int64_t n, const uint64_t* derivatives, int shift,
                      int64_t* histogram) noexcept nogil
