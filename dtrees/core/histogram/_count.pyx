"""Rows of a column to the cells of their codes: one loop for every store that has rows by number.

    rows         12  13  17  20 ...
    codes         4   0   4   9 ...      of the column, by row of the table
    histogram     0   0   2   1 ...      of each row, where several sets are counted
                  v
    cells[histogram * size + code * n_words] += what the row adds

Rows that only some members of a shared node have go to a histogram for each of these; the cells of
a code stand side by side, and `size` is the words of all of them.

What varies (the width of the codes, the kind of cells, where a row's statistics are) is a constant
of the loop, compiled once for each case from the same lines (measured: with one loop that looks
where things are, and one for all kinds of cells that become bins (`search._bins`), cross-validation
takes 1.03 to 1.14 times as long). O(rows), and O(rows + stored) for a sparse column, whose stored
rows are met by merging two ascending lists.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t, next_code
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport (
    CLASSES, COUNT, OUTPUTS, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add,
    add_row
)

cdef enum:
    # What a loop is compiled for, as bits.
    RENUMBERED = 1          # rows have numbers of their own (`row_id`)
    RANKED = 2              # codes are numbered in the histogram (`rank`)
    GATHERED = 4            # statistics in the order of the rows (`weight`, `target`)
    BY_CELL = 8             # a histogram for each set of rows (`cell`)
    BY_COMBINATION = 16     # the same, of many (`combination`)
    BY_INTERVAL = 32        # a cell for several codes (`way`)
    BY_MEMBER = 64          # several histograms for each row (`members`)


cdef inline void add_one(int64_t* cell, CellKind kind, int how, const RowStatistics* of_row,
                         const int64_t* weight, const int64_t* target, int64_t i,
                         uint32_t row) noexcept nogil:
    """Add a row to a cell: from what was gathered, place i, or from what all rows add."""
    if how & GATHERED and kind == OUTPUTS:
        add_row(cell, kind, of_row, i)
    elif how & GATHERED:
        add(cell, kind, weight[i], target[i])
    else:
        add_row(cell, kind, of_row, row)


cdef inline void count_in(const code_t* codes, const NodeRows* r, CellKind kind, int64_t n_words,
                          int how, int64_t* cells) noexcept nogil:
    """All arguments but the pointers are constants where it is called."""
    cdef const uint32_t* rows = r.rows
    cdef const uint32_t* rank = r.rank
    cdef const int64_t* weight = r.weight
    cdef const int64_t* target = r.target
    cdef int64_t size = r.size
    cdef int64_t rest = (<int64_t>1 << r.way) - 1
    cdef int64_t i
    cdef uint64_t bits
    cdef uint32_t row, code
    cdef int64_t* cell
    for i in range(r.n):
        row = rows[i]
        code = codes[r.row_id[row] if how & RENUMBERED else row]
        if how & RANKED:
            code = rank[code]
        elif how & BY_INTERVAL:
            code = <uint32_t>((code + rest) >> r.way)
        cell = cells + <int64_t>code * (size if how & BY_MEMBER else n_words)
        if how & BY_MEMBER:
            bits = r.members[i]
            while bits != 0:
                add_one(cell + trailing_zeros(bits) * n_words, kind, how, r.of_row, weight, target,
                        i, row)
                bits &= bits - 1
            continue
        if how & BY_CELL:
            cell += r.cell[i] * size
        elif how & BY_COMBINATION:
            cell += r.combination[i] * size
        add_one(cell, kind, how, r.of_row, weight, target, i, row)


cdef inline void count_gathered(const code_t* codes, const NodeRows* r, CellKind kind,
                                int64_t n_words, int64_t* cells) noexcept nogil:
    """Pick the loop that was compiled for where things are."""
    if r.combination != NULL and r.way > 0:
        count_in(codes, r, kind, n_words, GATHERED | BY_COMBINATION | BY_INTERVAL, cells)
    elif r.combination != NULL:
        count_in(codes, r, kind, n_words, GATHERED | BY_COMBINATION, cells)
    elif r.way > 0:
        count_in(codes, r, kind, n_words, GATHERED | BY_INTERVAL, cells)
    else:
        count_in(codes, r, kind, n_words, GATHERED, cells)


cdef inline void count_kind(const code_t* codes, const NodeRows* r, CellKind kind,
                            int64_t n_words, int64_t* cells) noexcept nogil:
    """Pick the loop, of rows that are gathered or not."""
    if r.of_row == NULL:
        count_gathered(codes, r, kind, n_words, cells)
    elif r.members != NULL and r.rank != NULL:
        count_in(codes, r, kind, n_words, BY_MEMBER | RANKED, cells)
    elif r.members != NULL:
        count_in(codes, r, kind, n_words, BY_MEMBER, cells)
    elif r.cell != NULL and r.rank != NULL:
        count_in(codes, r, kind, n_words, BY_CELL | RANKED, cells)
    elif r.cell != NULL:
        count_in(codes, r, kind, n_words, BY_CELL, cells)
    elif r.row_id != NULL:
        count_in(codes, r, kind, n_words, RENUMBERED, cells)
    else:
        count_in(codes, r, kind, n_words, 0, cells)


cdef inline void count_codes(const code_t* codes, const NodeRows* r, const Layout* layout,
                             int64_t* cells) noexcept nogil:
    """Pick the loop that was compiled for the kind of cells."""
    if layout.kind == COUNT:
        count_kind(codes, r, COUNT, 1, cells)
    elif layout.kind == SUM:
        count_kind(codes, r, SUM, 2, cells)
    elif layout.kind == WEIGHTED_SUM:
        count_kind(codes, r, WEIGHTED_SUM, 3, cells)
    elif layout.kind == CLASSES:
        count_kind(codes, r, CLASSES, layout.n_words, cells)
    elif layout.kind == OUTPUTS and r.weight != NULL:  # gathered, in `of_row`
        count_gathered(codes, r, OUTPUTS, layout.n_words, cells)
    elif layout.kind == OUTPUTS:
        count_kind(codes, r, OUTPUTS, layout.n_words, cells)
    else:
        count_kind(codes, r, WEIGHTED_CLASSES, layout.n_words, cells)


cdef bint count_column(const Column* column, const NodeRows* rows, const Layout* layout,
                       int64_t* cells) noexcept nogil:
    """Add rows of a node to the cells of a column; False: a sparse column, and no memory for it.

    layout : of any kind but those of pairs. Rows of sparse columns are not renumbered.
    """
    cdef uint32_t* codes
    if rows.n == 0:
        return True
    if column.storage == STORED_U8:
        count_codes(<const uint8_t*>column.codes, rows, layout, cells)
    elif column.storage == STORED_U16:
        count_codes(<const uint16_t*>column.codes, rows, layout, cells)
    elif column.storage == STORED_U32:
        count_codes(<const uint32_t*>column.codes, rows, layout, cells)
    else:
        codes = spread_codes(column, rows.rows, rows.n)
        if codes == NULL:
            return False
        count_codes(<const uint32_t*>codes, rows, layout, cells)
        free(codes)
    return True


cdef uint32_t* spread_codes(const Column* column, const uint32_t* rows, int64_t n) noexcept nogil:
    """The codes of ascending rows of a sparse column, by row; the caller frees them."""
    cdef uint32_t* by_row = <uint32_t*>malloc((rows[n - 1] + <int64_t>1) * sizeof(uint32_t))
    cdef int64_t at = 0
    cdef int64_t i
    for i in range(n if by_row != NULL else 0):
        by_row[rows[i]] = next_code(column, rows[i], &at)
    return by_row
