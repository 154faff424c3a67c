"""Stored cells of sparse columns, row by row, and what a node counts of them.

    row 17     column 3, code 2 | column 40, code 1 | column 977, code 6        its stored cells

A node reads the stored cells of its own rows, not those of all columns. What it reads it adds to
the cells of columns that store at least `min_rows` of its rows. Others have no split, neither in
the node nor below it. They are *out*: their fill cell says so, and nobody looks at the rest.

The fill cell of a column is what the node has beyond its other cells. It is computed when the
column is searched. A larger child is its parent without the rows of the smaller one, whose stored
cells are taken off one by one: most columns of a text are in few rows, and stay as they are.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals

cdef enum:
    CELL = 2                # words
    OUT = -1                # first word of the fill cell: no sum of rows and hessians is that


cdef list stored_by_row(const Column* columns, const int32_t* column, int64_t n_columns,
                        const int64_t* first_cell, int64_t n_rows, StoredCells* out):
    """Sort the stored cells of some columns by their rows; returns the arrays to be kept.

    Stored cells of the fill code are left out. O(stored cells + rows).
    """
    cdef int64_t[::1] start = np.zeros(n_rows + 2, dtype=np.int64)
    cdef uint32_t[::1] cell
    cdef uint16_t[::1] place
    cdef const Column* own
    cdef const uint32_t* codes
    cdef int64_t c, i, at
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            start[own.rows[i] + 2] += codes[i] != own.fill
    for i in range(1, n_rows + 2):
        start[i] += start[i - 1]
    cell = np.empty(start[n_rows + 1] + 1, dtype=np.uint32)
    place = np.empty(start[n_rows + 1] + 1, dtype=np.uint16)
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            if codes[i] != own.fill:
                at = start[own.rows[i] + 1]
                cell[at] = <uint32_t>(first_cell[c] + codes[i])
                place[at] = <uint16_t>c
                start[own.rows[i] + 1] = at + 1
    out.n_columns = n_columns
    out.column = column
    out.first_cell = first_cell
    out.start = &start[0]
    out.cell = &cell[0]
    out.place = &place[0]
    return [start, cell, place]


cdef inline int64_t row_of(const RowsOfNode* node, int64_t i) noexcept nogil:
    return i if node.rows == NULL else node.rows[i]


cdef inline void add_words(int64_t* cell, uint64_t first, uint64_t second) noexcept nogil:
    """Rows beside hessians fill a word to its last bit, so words wrap around: no signs here."""
    cell[0] = <int64_t>(<uint64_t>cell[0] + first)
    cell[1] = <int64_t>(<uint64_t>cell[1] + second)


cdef void count_stored(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                       int64_t min_rows, uint32_t* counts, int64_t* histogram) noexcept nogil:
    """Count the rows of a node in columns that store at least `min_rows` of them.

    counts : scratch (n_columns,). histogram : of all columns; cells of these may hold anything.
    O(stored cells of the rows + cells of the columns that are counted).
    """
    cdef const Column* column
    cdef int64_t* cell
    cdef uint64_t derivatives, first, second
    cdef int64_t c, i, k, row
    memset(counts, 0, stored.n_columns * sizeof(uint32_t))
    for i in range(node.n):
        row = row_of(node, i)
        for k in range(stored.start[row], stored.start[row + 1]):
            counts[stored.place[k]] += 1
    for c in range(stored.n_columns):
        column = columns + stored.column[c]
        cell = histogram + CELL * stored.first_cell[c]
        if counts[c] < min_rows:
            cell[CELL * <int64_t>column.fill] = OUT
        else:
            memset(cell, 0, CELL * (<int64_t>column.n_codes + 1) * sizeof(int64_t))
    for i in range(node.n):
        row = row_of(node, i)
        derivatives = node.derivatives[row]
        first = (<uint64_t>1 << node.shift) + (derivatives & <uint64_t>0xFFFFFFFF)
        second = <uint64_t>(<int64_t>derivatives >> 32)
        for k in range(stored.start[row], stored.start[row + 1]):
            if counts[stored.place[k]] >= min_rows:
                add_words(histogram + CELL * <int64_t>stored.cell[k], first, second)


cdef void take_off_stored(const StoredCells* stored, const RowsOfNode* node,
                          int64_t* histogram) noexcept nogil:
    """Take rows off a histogram that they are in. O(stored cells of the rows)."""
    cdef uint64_t derivatives, first, second
    cdef int64_t i, k, row
    for i in range(node.n):
        row = row_of(node, i)
        derivatives = node.derivatives[row]
        first = (<uint64_t>1 << node.shift) + (derivatives & <uint64_t>0xFFFFFFFF)
        second = <uint64_t>(<int64_t>derivatives >> 32)
        for k in range(stored.start[row], stored.start[row + 1]):
            add_words(histogram + CELL * <int64_t>stored.cell[k], 0 - first, 0 - second)


cdef bint complete_column(const Column* column, const Totals* totals, int shift, int64_t min_rows,
                          int64_t* cells) noexcept nogil:
    """Compute the fill cell of a column; whether it may have a split in the node.

    It has none where fewer than `min_rows` rows are elsewhere; it is out then. O(codes).
    """
    cdef int64_t* fill = cells + CELL * <int64_t>column.fill
    cdef uint64_t first = 0
    cdef uint64_t second = 0
    cdef int64_t code
    if fill[0] == OUT:
        return False
    for code in range(<int64_t>column.n_codes + 1):
        first += <uint64_t>cells[CELL * code]
        second += <uint64_t>cells[CELL * code + 1]
    first -= <uint64_t>fill[0]
    second -= <uint64_t>fill[1]
    if <int64_t>(first >> shift) < min_rows:
        fill[0] = OUT
        return False
    fill[0] = <int64_t>((<uint64_t>totals.n << shift) + <uint64_t>totals.weight - first)
    fill[1] = <int64_t>(<uint64_t>totals.target - second)
    return True
