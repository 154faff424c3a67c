"""Codes by row, and the columns that a thread counts together.

A block has at most eight columns, whose codes in a row are one word. Their histograms fit the first
cache, 4 KB a column, and a row's derivatives are read once for all of them:

    row 17    3 0 255 12 7 1 0 44 | 9 2 0 0 1 . . .        block 0 | block 1
                  v
    cells of block 0    column 0, code 3    += rows << shift | hessian, gradient
                        column 1, code 0    += the same, by one addition of 128 bits
                        ...

Columns of more codes than a byte holds are blocks of their own, and read by column.
"""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U16, STORED_U8, columns_of, next_code

cdef extern from "stores/boosted/count_rows.h" nogil:
    void count_rows(int width, const uint32_t* rows, int64_t n, const uint8_t* codes,
                    int64_t stride, const uint64_t* derivatives, uint64_t one,
                    int64_t** cells)

cdef enum:
    FEW_COLUMNS = 16        # below, blocks are half as wide, so that there are several


cdef class ColumnBlocks:
    """The columns of a coded matrix in blocks.

    Parameters
    ----------
    coded : CodedMatrix
        Held as long as this lives.

    Attributes
    ----------
    n_rows, n_blocks : int
    n_cells : int
        Of a histogram of all columns: ``n_codes + 1`` for each.

    Notes
    -----
    A byte for each cell of the columns of 8 bits, which are copied. O(cells).
    """

    def __cinit__(self, coded):
        self.bound = columns_of(coded)
        self.columns = self.bound.columns
        self.n_rows = coded.n_rows
        self.cell_of_column = <int64_t*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(int64_t))
        self.blocks = <ColumnBlock*>PyMem_RawCalloc(coded.n_columns + 1, sizeof(ColumnBlock))
        if self.cell_of_column == NULL or self.blocks == NULL:
            raise MemoryError
        self._lay_out(coded, WIDTH if coded.n_columns > FEW_COLUMNS else WIDTH // 2)
        self.codes = <uint8_t*>PyMem_RawMalloc(self.n_rows * self.stride + WIDTH)
        if self.codes == NULL:
            raise MemoryError
        self._point_at_codes()

    def __dealloc__(self):
        PyMem_RawFree(self.codes)
        PyMem_RawFree(self.blocks)
        PyMem_RawFree(self.cell_of_column)

    cdef _lay_out(self, coded, int64_t width):
        """Which columns are in which block, and where their cells and bytes are."""
        cdef ColumnBlock* block = NULL
        cdef int64_t j
        narrow = np.asarray(coded.storage) == STORED_U8
        order = np.concatenate([np.flatnonzero(narrow), np.flatnonzero(~narrow)])
        for j in order.tolist():
            is_narrow = self.columns[j].storage == STORED_U8
            if block == NULL or not is_narrow or block.n_columns == width:
                block = self.blocks + self.n_blocks
                self.n_blocks += 1
                block.is_narrow = is_narrow
                block.first_cell = self.n_cells
            self.stride += is_narrow
            self.cell_of_column[j] = self.n_cells
            block.column[block.n_columns] = <int>j
            block.cell[block.n_columns] = self.n_cells
            block.n_columns += 1
            block.n_cells += self.columns[j].n_codes + 1
            self.n_cells += self.columns[j].n_codes + 1

    cdef void _point_at_codes(self) noexcept:
        """Blocks of narrow columns come first, and stand side by side in a row."""
        cdef uint8_t* codes = self.codes
        cdef int64_t b
        for b in range(self.n_blocks):
            if self.blocks[b].is_narrow:
                self.blocks[b].codes = codes
                self.blocks[b].stride = self.stride
                codes += self.blocks[b].n_columns

    def fill(self, int64_t begin, int64_t end):
        """Copy the codes of rows begin..end; callable from any thread, by stretches."""
        cdef int64_t b
        assert 0 <= begin <= end <= self.n_rows
        with nogil:
            for b in range(self.n_blocks):
                if self.blocks[b].is_narrow:
                    copy_block(&self.blocks[b], self.columns, begin, end)


cdef void copy_block(const ColumnBlock* block, const Column* columns, int64_t begin,
                     int64_t end) noexcept nogil:
    cdef const uint8_t* of_column[WIDTH]
    cdef uint8_t* row
    cdef int64_t i
    cdef int j
    for j in range(block.n_columns):
        of_column[j] = <const uint8_t*>columns[block.column[j]].codes
    for i in range(begin, end):
        row = block.codes + i * block.stride
        for j in range(block.n_columns):
            row[j] = of_column[j][i]


cdef inline void add_derivatives(int64_t* cell, uint64_t derivatives, int shift) noexcept nogil:
    cell[0] += (<int64_t>1 << shift) + <int64_t>(derivatives & <uint64_t>0xFFFFFFFF)
    cell[1] += <int64_t>derivatives >> 32


cdef void count_wide(const Column* column, const uint32_t* rows, int64_t n,
                     const uint64_t* derivatives, int shift, int64_t* cells) noexcept nogil:
    """Rows of one column of more codes, or of a sparse one."""
    cdef int64_t at = 0
    cdef int64_t i
    cdef uint32_t row, code
    for i in range(n):
        row = <uint32_t>i if rows == NULL else rows[i]
        if column.storage == STORED_SPARSE:
            code = next_code(column, row, &at)
        elif column.storage == STORED_U16:
            code = (<const uint16_t*>column.codes)[row]
        else:
            code = (<const uint32_t*>column.codes)[row]
        add_derivatives(cells + CELL * <int64_t>code, derivatives[row], shift)


cdef void count_block(const ColumnBlock* block, const Column* columns, const uint32_t* rows,
                      int64_t n, const uint64_t* derivatives, int shift,
                      int64_t* histogram) noexcept nogil:
    """Add rows of a node to the cells of a block.

    rows : ascending, (n,); NULL: the first n rows of the table
    derivatives : by row: gradient << 32 | hessian
    histogram : of all columns
    """
    cdef int64_t* cells[WIDTH]
    cdef int j
    if n == 0:
        return
    for j in range(block.n_columns):
        cells[j] = histogram + CELL * block.cell[j]
    if block.is_narrow:
        count_rows(block.n_columns, rows, n, block.codes, block.stride, derivatives,
                   <uint64_t>1 << shift, cells)
    else:
        count_wide(columns + block.column[0], rows, n, derivatives, shift, cells[0])


def histogram_of(ColumnBlocks blocks not None, int64_t j, rows, const uint64_t[::1] derivatives):
    """Sums by the codes of a column, as its block counts them. For tests.

    Parameters
    ----------
    rows : uint32 (n,), ascending, or None
        None: all of them.

    Returns
    -------
    int64 (n_codes + 1, 3)
        Rows, hessian, gradient.
    """
    cdef int64_t shift = 40
    cdef const uint32_t[::1] some
    cdef const uint32_t* first = NULL
    cdef int64_t n = blocks.n_rows
    cdef int64_t b
    cdef int64_t[::1] cells = np.zeros(CELL * blocks.n_cells, dtype=np.int64)
    if rows is not None:
        some = rows
        first = &some[0]
        n = len(rows)
    for b in range(blocks.n_blocks):
        count_block(&blocks.blocks[b], blocks.columns, first, n, &derivatives[0], <int>shift,
                    &cells[0])
    begin = CELL * blocks.cell_of_column[j]
    own = np.asarray(cells)[begin:begin + CELL * (blocks.columns[j].n_codes + 1)].reshape(-1, CELL)
    return np.column_stack([own[:, 0] >> shift, own[:, 0] & ((<int64_t>1 << shift) - 1), own[:, 1]])
