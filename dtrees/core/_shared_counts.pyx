"""Histograms of the rows of a node of several sets, one for each cell.

    rows of the node          12  13  17  20  ...
    what they add              a   b   c   d  ...   gathered once for all columns, if packed
    cells of a column      | H0 | H1 | ... | Hk |   a row goes to the histogram of its cell

Rows that some members have go to histograms of these members. Where rows are packed the numbers of
all members stand side by side, so that a row is added to all of them at once::

    a code                 | m0 | m1 | m2 | ... |   and the row, or 0 for those that lack it

Neighbouring rows mostly belong to different cells, so an addition seldom waits for the one before.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._columns cimport STORED_U8, Column, code_t
from dtrees.core._histogram cimport add_row
from dtrees.core._structs cimport COUNT, SUM, WEIGHTED_SUM, Mode
from dtrees.core._wide cimport is_wide

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil

cdef extern from "counting.h" nogil:
    void count_some_u8(int64_t*, int64_t, const uint8_t*, const uint32_t*, const uint32_t*,
                       const uint64_t*, const int64_t*, int64_t) noexcept
    void count_some_u16(int64_t*, int64_t, const uint16_t*, const uint32_t*, const uint32_t*,
                        const uint64_t*, const int64_t*, int64_t) noexcept


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
    if counting.added != NULL:
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
    cdef bint packed = counting.some_added != NULL
    cdef int64_t width = numbers_of_some(node)
    cdef int64_t i, at
    cdef uint64_t bits
    for i in range(node.n_some):
        at = codes[node.some[i]]
        if counting.rank != NULL:
            at = counting.rank[at]
        bits = node.who[i]
        while bits != 0:
            if packed:
                cells[at * width + trailing_zeros(bits)] += counting.some_added[i]
            else:
                add_row(cells + trailing_zeros(bits) * counting.size + at * counting.stride,
                        node.some[i], counting.payload, counting.mode)
            bits &= bits - 1


cdef void count_some(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil:
    """Add the other rows to the histograms of the members that have them: one behind the other, or
    side by side where rows are packed."""
    cdef const uint8_t* narrow = <const uint8_t*>column.codes
    cdef const uint16_t* wide = <const uint16_t*>column.codes
    cdef int64_t width = numbers_of_some(node)
    if is_wide and counting.some_added != NULL:
        if column.storage == STORED_U8:
            count_some_u8(cells, width, narrow, counting.rank, node.some, node.who,
                          counting.some_added, node.n_some)
        else:
            count_some_u16(cells, width, wide, counting.rank, node.some, node.who,
                           counting.some_added, node.n_some)
    elif column.storage == STORED_U8:
        count_some_in(node, narrow, counting, cells)
    else:
        count_some_in(node, wide, counting, cells)
