"""Histograms of the rows of a node of several sets, one for each cell.

    rows of the node          12  13  17  20  ...
    what they add              a   b   c   d  ...   gathered once for all columns, if packed
    cells of a column      | H0 | H1 | ... | Hk |   a row goes to the histogram of its cell

Rows that some members have go to histograms of these members. Where a row adds one number, or two,
the numbers of all members stand side by side, so that it is added to all of them at once::

    a code                 | m0 | m1 | m2 | ... |   and the row, or 0 for those that lack it

Neighbouring rows mostly belong to different cells, so an addition seldom waits for the one before.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport PACKED, SUM, CellKind, add_row
from dtrees.core.stores.shared._shared_nodes cimport SharedNode

cdef extern from "stores/shared/shared_histogram.h" nogil:
    void count_some_u8(int64_t*, int64_t, const uint8_t*, const uint32_t*, const uint32_t*,
                       const uint64_t*, const int64_t*, const int64_t*, int64_t) noexcept
    void count_some_u16(int64_t*, int64_t, const uint16_t*, const uint32_t*, const uint32_t*,
                        const uint64_t*, const int64_t*, const int64_t*, int64_t) noexcept


cdef inline void mark_hits(const SharedNode* node, const code_t* codes,
                           uint64_t* hit) noexcept nogil:
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.n):
        code = codes[node.rows[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)
    for i in range(node.n_some):
        code = codes[node.some[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef int64_t rank_codes(const SharedNode* node, const Column* column, uint64_t* hit,
                        uint32_t* code, uint32_t* rank) noexcept nogil:
    """The codes that occur in a node, ascending, and by code their numbers; returns how many.

    hit : a bit per code, all zero, before and after.
    """
    cdef int64_t n = 0
    cdef int64_t word
    cdef uint64_t bits
    if column.storage == STORED_U8:
        mark_hits(node, <const uint8_t*>column.codes, hit)
    elif column.storage == STORED_U16:
        mark_hits(node, <const uint16_t*>column.codes, hit)
    else:
        mark_hits(node, <const uint32_t*>column.codes, hit)
    for word in range((column.n_codes >> 6) + 1):
        bits = hit[word]
        hit[word] = 0
        while bits != 0:
            code[n] = <uint32_t>((word << 6) + trailing_zeros(bits))
            bits &= bits - 1
            rank[code[n]] = <uint32_t>n
            n += 1
    return n


# ---------------------------------------------------------------------------------------------
# rows that all members have

cdef void count_rows(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil:
    """Add the rows that all members have to the histogram of their cell."""
    cdef NodeRows rows
    memset(&rows, 0, sizeof(NodeRows))
    rows.n = node.n
    rows.rows = node.rows
    rows.cell = node.cell
    rows.size = counting.size
    rows.rank = counting.rank
    rows.target = counting.added
    rows.of_row = counting.of_row if counting.added == NULL else NULL
    count_column(column, &rows, &counting.layout, cells)


# ---------------------------------------------------------------------------------------------
# rows that some of them have

cdef inline void count_some_in(const SharedNode* node, const code_t* codes,
                               const Counting* counting, int64_t* cells) noexcept nogil:
    cdef CellKind kind = counting.layout.kind
    cdef const int64_t* target = counting.of_row.target
    cdef int64_t width = numbers_of_some(node)
    cdef int64_t i, at
    cdef uint64_t bits
    for i in range(node.n_some):
        at = codes[node.some[i]]
        if counting.rank != NULL:
            at = counting.rank[at]
        bits = node.who[i]
        while bits != 0:
            if kind == PACKED:
                cells[at * width + trailing_zeros(bits)] += counting.some_added[i]
            elif kind == SUM:
                cells[2 * at * width + trailing_zeros(bits)] += 1
                cells[(2 * at + 1) * width + trailing_zeros(bits)] += target[node.some[i]]
            else:
                add_row(cells + trailing_zeros(bits) * counting.size
                        + at * counting.layout.n_words, counting.layout.kind, counting.of_row,
                        node.some[i])
            bits &= bits - 1


cdef void count_some(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil:
    """Add the other rows to the histograms of the members that have them: one behind the other, or
    side by side (`are_beside`)."""
    cdef const uint8_t* narrow = <const uint8_t*>column.codes
    cdef const uint16_t* wide = <const uint16_t*>column.codes
    cdef const int64_t* target = counting.of_row.target
    cdef int64_t width = numbers_of_some(node)
    if column.storage == STORED_U32:
        count_some_in(node, <const uint32_t*>column.codes, counting, cells)
    elif is_wide and are_beside(counting):
        if column.storage == STORED_U8:
            count_some_u8(cells, width, narrow, counting.rank, node.some, node.who,
                          counting.some_added, target, node.n_some)
        else:
            count_some_u16(cells, width, wide, counting.rank, node.some, node.who,
                           counting.some_added, target, node.n_some)
    elif column.storage == STORED_U8:
        count_some_in(node, narrow, counting, cells)
    else:
        count_some_in(node, wide, counting, cells)
