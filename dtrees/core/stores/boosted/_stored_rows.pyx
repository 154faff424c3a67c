"""Stored cells of sparse columns, row by row, and what a node counts of them.

    row 17     column 3, code 2 | column 40, code 1 | column 977, code 6        its stored cells

A node sums up the stored cells of its own rows by column, not those of all rows. What it reads it
adds to the cells of columns that store at least `min_rows` of its rows. Others have no split,
neither in the node nor below it. They are *out*, and nobody looks at their cells.

The fill cell of a column is what the node has beyond its stored cells. It is computed when the
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


cdef inline uint64_t first_of(uint64_t derivatives, int shift) noexcept nogil:
    """A row and its hessian."""
    return (<uint64_t>1 << shift) + (derivatives & <uint64_t>0xFFFFFFFF)


cdef inline uint64_t second_of(uint64_t derivatives) noexcept nogil:
    """Its gradient."""
    return <uint64_t>(<int64_t>derivatives >> 32)


cdef inline void add_to_sums(StoredSums* sums, uint64_t derivatives, int shift) noexcept nogil:
    cdef int64_t gradient = <int64_t>derivatives >> 32
    sums.first += first_of(derivatives, shift)
    sums.second += <uint64_t>gradient
    sums.size += <uint64_t>(-gradient if gradient < 0 else gradient)


cdef void count_by_column(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                          StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Sum and count all rows of the table, which needs no look at what stands by row.

    O(stored cells + cells).
    """
    cdef const Column* column
    cdef const uint32_t* codes
    cdef StoredSums own
    cdef int64_t* cell
    cdef uint64_t derivatives
    cdef int64_t c, i
    for c in range(stored.n_columns):
        column = columns + stored.column[c]
        codes = <const uint32_t*>column.codes
        cell = histogram + CELL * stored.first_cell[c]
        memset(cell, 0, CELL * (<int64_t>column.n_codes + 1) * sizeof(int64_t))
        memset(&own, 0, sizeof(StoredSums))
        for i in range(column.stored):
            if codes[i] != column.fill:
                derivatives = node.derivatives[column.rows[i]]
                add_to_sums(&own, derivatives, node.shift)
                add_words(cell + CELL * <int64_t>codes[i], first_of(derivatives, node.shift),
                          second_of(derivatives))
        sums[c] = own


cdef void sum_by_row(const StoredCells* stored, const RowsOfNode* node,
                     StoredSums* sums) noexcept nogil:
    """Sums of the rows of a node in each column; O(stored cells of the rows + columns)."""
    cdef uint64_t derivatives
    cdef int64_t i, k, row
    memset(sums, 0, stored.n_columns * sizeof(StoredSums))
    for i in range(node.n):
        row = node.rows[i]
        derivatives = node.derivatives[row]
        for k in range(stored.start[row], stored.start[row + 1]):
            add_to_sums(sums + stored.place[k], derivatives, node.shift)


cdef void count_by_row(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                       const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Count the rows of a node in the columns that are not out.

    histogram : of all columns; cells of these may hold anything.
    O(stored cells of the rows + cells of the columns that are counted).
    """
    cdef uint64_t first, second
    cdef int64_t c, i, k, row
    for c in range(stored.n_columns):
        if not is_out(sums + c):
            memset(histogram + CELL * stored.first_cell[c], 0,
                   CELL * (<int64_t>columns[stored.column[c]].n_codes + 1) * sizeof(int64_t))
    for i in range(node.n):
        row = node.rows[i]
        first = first_of(node.derivatives[row], node.shift)
        second = second_of(node.derivatives[row])
        for k in range(stored.start[row], stored.start[row + 1]):
            if not is_out(sums + stored.place[k]):
                add_words(histogram + CELL * <int64_t>stored.cell[k], first, second)


cdef void take_off_stored(const StoredCells* stored, const RowsOfNode* node,
                          const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Take rows off a histogram that they are in. O(stored cells of the rows)."""
    cdef uint64_t first, second
    cdef int64_t i, k, row
    for i in range(node.n):
        row = node.rows[i]
        first = 0 - first_of(node.derivatives[row], node.shift)
        second = 0 - second_of(node.derivatives[row])
        for k in range(stored.start[row], stored.start[row + 1]):
            if not is_out(sums + stored.place[k]):
                add_words(histogram + CELL * <int64_t>stored.cell[k], first, second)


cdef void complete_column(const Column* column, const StoredSums* sums, const Totals* totals,
                          int shift, int64_t* cells) noexcept nogil:
    """Compute the fill cell of a column: what the node has beyond its stored cells."""
    cdef int64_t* fill = cells + CELL * <int64_t>column.fill
    fill[0] = <int64_t>((<uint64_t>totals.n << shift) + <uint64_t>totals.weight - sums.first)
    fill[1] = <int64_t>(<uint64_t>totals.target - sums.second)
