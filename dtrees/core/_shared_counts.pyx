"""Histograms of the rows of a node of several sets, one for each cell.

    rows of the node          12  13  17  20  ...
    what they add              a   b   c   d  ...   gathered once for all columns, where it is packed
    cells of a column      | H0 | H1 | ... | Hk |   a row goes to the histogram of its cell

Neighbouring rows mostly belong to different cells, so an addition seldom waits for the one before.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._columns cimport STORED_U8, Column, code_t
from dtrees.core._histogram cimport add_row
from dtrees.core._structs cimport COUNT, SUM, WEIGHTED_SUM, Mode

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil


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
    """The codes that occur in a node, ascending, and by code their places; returns how many.

    hit : a bit per code, all zero, before and after.
    """
    cdef int64_t n = 0
    cdef int64_t word
    cdef uint64_t bits
    if column.storage == STORED_U8:
        mark_hits(node, <const uint8_t*>column.codes, hit)
    else:
        mark_hits(node, <const uint16_t*>column.codes, hit)
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

cdef inline void count_in(const SharedNode* node, const code_t* codes, const Counting* counting,
                          Mode mode, int64_t stride, bint ranked, int64_t* cells) noexcept nogil:
    cdef const uint32_t* rank = counting.rank
    cdef const uint32_t* rows = node.rows
    cdef const uint8_t* cell = node.cell
    cdef int64_t size = counting.size
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.n):
        code = codes[rows[i]]
        if ranked:
            code = rank[code]
        add_row(cells + cell[i] * size + code * stride, rows[i], counting.payload, mode)


cdef inline void count_packed(const SharedNode* node, const code_t* codes,
                              const Counting* counting, bint ranked,
                              int64_t* cells) noexcept nogil:
    cdef const uint32_t* rank = counting.rank
    cdef const uint32_t* rows = node.rows
    cdef const uint8_t* cell = node.cell
    cdef const int64_t* added = counting.added
    cdef int64_t size = counting.size
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.n):
        code = codes[rows[i]]
        if ranked:
            code = rank[code]
        cells[cell[i] * size + code] += added[i]


cdef inline void count_codes(const SharedNode* node, const code_t* codes,
                             const Counting* counting, bint ranked, int64_t* cells) noexcept nogil:
    """Pick the loop that was compiled for the mode."""
    if counting.packed != NULL:
        count_packed(node, codes, counting, ranked, cells)
    elif counting.mode == COUNT:
        count_in(node, codes, counting, COUNT, 1, ranked, cells)
    elif counting.mode == SUM:
        count_in(node, codes, counting, SUM, 2, ranked, cells)
    elif counting.mode == WEIGHTED_SUM:
        count_in(node, codes, counting, WEIGHTED_SUM, 3, ranked, cells)
    else:
        count_in(node, codes, counting, counting.mode, counting.stride, ranked, cells)


cdef void count_rows(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil:
    """Add the rows that all members have to the histogram of their cell."""
    cdef const uint8_t* narrow = <const uint8_t*>column.codes
    cdef const uint16_t* wide = <const uint16_t*>column.codes
    if column.storage == STORED_U8 and counting.rank == NULL:
        count_codes(node, narrow, counting, False, cells)
    elif column.storage == STORED_U8:
        count_codes(node, narrow, counting, True, cells)
    elif counting.rank == NULL:
        count_codes(node, wide, counting, False, cells)
    else:
        count_codes(node, wide, counting, True, cells)


# ---------------------------------------------------------------------------------------------
# rows that some of them have

cdef inline void count_some_in(const SharedNode* node, const code_t* codes,
                               const Counting* counting, int64_t* cells) noexcept nogil:
    cdef int64_t i, at
    cdef uint64_t bits
    cdef uint32_t row
    cdef int64_t* cell
    for i in range(node.n_some):
        row = node.some[i]
        at = codes[row]
        if counting.rank != NULL:
            at = counting.rank[at]
        bits = node.who[i]
        while bits != 0:
            cell = cells + trailing_zeros(bits) * counting.size + at * counting.stride
            bits &= bits - 1
            if counting.packed != NULL:
                cell[0] += counting.packed[row]
            else:
                add_row(cell, row, counting.payload, counting.mode)


cdef void count_some(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil:
    """Add the other rows to the histograms of the members that have them."""
    if column.storage == STORED_U8:
        count_some_in(node, <const uint8_t*>column.codes, counting, cells)
    else:
        count_some_in(node, <const uint16_t*>column.codes, counting, cells)
