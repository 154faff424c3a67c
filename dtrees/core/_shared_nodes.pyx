"""Nodes of several sets, and how their rows go to the children.

A row that all members of a node have there, or would have if it were in their set, stands once,
with its cell. Where the tests of the members differ it goes to both children, with the members
that sent it::

    rows, cells   all members agree      -> one child, in the order of the table
                  some left, some right  -> `some` of both children, a bit for each member
    some, who     part by member, always
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from dtrees.core._columns cimport STORED_U8, Column, code_t
from dtrees.core._plan cimport Plan
from dtrees.core._route cimport Route, goes_left
from dtrees.core._workspace cimport OpenNode


cdef SharedNode* new_shared(int n_members, int n_cells, const Plan* plan) noexcept nogil:
    """A node without rows. Freed by `free_shared`."""
    cdef SharedNode* node = <SharedNode*>calloc(1, sizeof(SharedNode))
    cdef size_t K = plan.criterion.n_classes
    cdef size_t numbers = n_members * (K + 1) + n_cells
    cdef char* at = <char*>calloc(1, n_members * (sizeof(OpenNode) + sizeof(int))
                                  + numbers * sizeof(int64_t) + plan.limits.n_columns)
    cdef int m
    node.n_members = n_members
    node.active = (<uint64_t>1 << n_members) - 1 if n_members < 64 else <uint64_t>-1
    node.n_cells = n_cells
    node.open = <OpenNode*>at  # the first of what lies in one piece
    at += n_members * sizeof(OpenNode)
    if K > 0:
        for m in range(n_members):
            node.open[m].class_totals = <int64_t*>at + m * K
    at += n_members * K * sizeof(int64_t)
    node.record = <int64_t*>at
    at += n_members * sizeof(int64_t)
    node.without = <uint64_t*>at
    at += n_cells * sizeof(uint64_t)
    node.set_of = <int*>at
    node.constant = <uint8_t*>at + n_members * sizeof(int)
    return node


cdef void free_shared(SharedNode* node) noexcept nogil:
    free(node.open)
    free(node.rows)
    free(node.cell)
    free(node.some)
    free(node.who)
    free(node)


cdef void free_shared_list(SharedNode* node) noexcept nogil:
    cdef SharedNode* next
    while node != NULL:
        next = node.below
        free_shared(node)
        node = next


cdef void reserve_rows(SharedNode* node, int64_t n) noexcept nogil:
    """Room for so many rows that all have; less than there is gives the rest back."""
    node.rows = <uint32_t*>realloc(node.rows, (n + 1) * sizeof(uint32_t))
    node.cell = <uint8_t*>realloc(node.cell, n + 1)


cdef void add_some(SharedNode* node, uint32_t row, uint64_t who) noexcept nogil:
    """A row that only some of the members have."""
    if node.n_some == node.room:
        node.room = 2 * node.room + 64
        node.some = <uint32_t*>realloc(node.some, node.room * sizeof(uint32_t))
        node.who = <uint64_t*>realloc(node.who, node.room * sizeof(uint64_t))
    node.some[node.n_some] = row
    node.who[node.n_some] = who
    node.n_some += 1


# ---------------------------------------------------------------------------------------------
# tests

cdef void mark_codes_left(const Route* route, int n, int64_t width,
                          uint64_t* left_of) noexcept nogil:
    """For codes 0 .. width-1, a bit for each of n members whose test sends it left. O(width + n)
    but for subsets.

    left_of : uint64 (width + 1,)
    """
    cdef uint64_t bit, bits
    cdef int64_t code, low, high
    cdef int k
    memset(left_of, 0, (width + 1) * sizeof(uint64_t))
    for k in range(n):
        if route[k].subset == NULL:  # where a stretch of codes begins and ends
            low = route[k].low + <int64_t>1
            high = route[k].high + <int64_t>1
            high = high if high < width else width
            if low < high:
                bit = <uint64_t>1 << k
                left_of[low] ^= bit
                left_of[high] ^= bit
    bits = 0
    for code in range(width):
        bits ^= left_of[code]
        left_of[code] = bits
    for k in range(n):
        bit = <uint64_t>1 << k
        if route[k].missing_left:
            left_of[0] |= bit
        if route[k].subset != NULL:
            for code in range(1, width):
                left_of[code] |= <uint64_t>goes_left(&route[k], <uint32_t>code) << k


cdef inline uint64_t left_members(const Parting* p, uint32_t code) noexcept nogil:
    """A bit for each member whose test sends a code left."""
    cdef uint64_t mask = 0
    cdef int k
    if p.left_of != NULL:
        return p.left_of[code]
    for k in range(p.n):
        mask |= <uint64_t>goes_left(&p.route[k], code) << k
    return mask


# ---------------------------------------------------------------------------------------------
# rows

cdef inline void part_rows(const SharedNode* node, const code_t* codes, const int64_t* added,
                           Parting* p, SharedNode* left, SharedNode* right) noexcept nogil:
    """Rows go where all members that have them agree, or to both sides; without a branch where
    they agree."""
    cdef const uint32_t* rows = node.rows
    cdef const uint8_t* cells = node.cell
    cdef uint32_t* left_rows = left.rows
    cdef uint32_t* right_rows = right.rows
    cdef uint8_t* left_cell = left.cell
    cdef uint8_t* right_cell = right.cell
    cdef int64_t sums[3 * MOST_CELLS]
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t i
    cdef uint64_t full, mask, all_left, all_right
    cdef uint32_t row
    cdef uint8_t cell, place
    memset(sums, 0, sizeof(sums))
    for i in range(node.n):
        row = rows[i]
        cell = cells[i]
        full = p.full[cell]
        place = p.place[cell]
        mask = full & left_members(p, codes[row])
        all_left = (mask == full) & (full != 0)
        all_right = (mask == 0) & (full != 0)
        left_rows[n_left] = row
        left_cell[n_left] = place
        right_rows[n_right] = row
        right_cell[n_right] = place
        n_left += all_left
        n_right += all_right
        if added != NULL:
            sums[(2 * all_right + all_left) * MOST_CELLS + place] += added[i]
        if mask != full and mask != 0:
            add_some(left, row, mask)
            add_some(right, row, full & ~mask)
    left.n = n_left
    right.n = n_right
    for i in range(MOST_CELLS):
        p.left_sums[i] = sums[MOST_CELLS + i]
        p.right_sums[i] = sums[2 * MOST_CELLS + i]


cdef inline void part_some(const SharedNode* node, const code_t* codes, const uint64_t* who,
                           const Parting* p, SharedNode* left, SharedNode* right) noexcept nogil:
    cdef int64_t i
    cdef uint64_t mask
    for i in range(node.n_some):
        if who[i] == 0:
            continue
        mask = left_members(p, codes[node.some[i]])
        if who[i] & mask:
            add_some(left, node.some[i], who[i] & mask)
        if who[i] & ~mask:
            add_some(right, node.some[i], who[i] & ~mask)


cdef void part_shared(const SharedNode* node, const Column* column, const int64_t* added,
                      const uint64_t* who, Parting* p, SharedNode* left,
                      SharedNode* right) noexcept nogil:
    """Part the rows of a node between two children, which are empty.

    column : of 8 or 16 bits. added : what each of the rows adds, packed, or NULL. who : as that of
    the node, but for the members that part. p : its sums are filled here.
    """
    cdef const uint8_t* narrow = <const uint8_t*>column.codes
    cdef const uint16_t* wide = <const uint16_t*>column.codes
    reserve_rows(left, node.n)
    reserve_rows(right, node.n)
    if column.storage == STORED_U8:
        part_rows(node, narrow, added, p, left, right)
        part_some(node, narrow, who, p, left, right)
    else:
        part_rows(node, wide, added, p, left, right)
        part_some(node, wide, who, p, left, right)
    reserve_rows(left, left.n)
    reserve_rows(right, right.n)
