"""Nodes of several sets, and how their rows go to the children.

A row that all members of a node have there, or would have if it were in their set, stands once,
with its cell. Where the tests of the members differ it goes to both children, with the members
that sent it::

    rows, cells   all members agree      -> one child, in the order of the table
                  some left, some right  -> `some` of both children, a bit for each member
    some, who     partitioned by member, always
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memset

from dtrees.core.data._bits cimport ACQ_REL, add_atomic
from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, code_t
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._memory cimport resize
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._partition cimport Route, goes_left

cdef enum:                  # where the members that have a row send it
    BOTH = 0
    LEFT = 1
    RIGHT = 2               # 3: none of them has it

cdef extern from "stores/partition.h" nogil:
    void fill_in_front() noexcept
    int64_t take_eight_rows(const uint32_t*, const uint8_t*, const uint8_t*, int64_t, int,
                            uint32_t*, uint8_t*) noexcept

fill_in_front()


# ---------------------------------------------------------------------------------------------
# memory

cdef SharedNode* new_shared(int n_members, int n_cells, const TrainParameters* params,
                            int64_t n_dense) noexcept nogil:
    """A node without rows; NULL without memory. Freed by `free_shared`.

    n_dense : columns that are.
    """
    cdef size_t K = params.criterion.n_classes
    cdef size_t numbers = n_members * K + n_cells
    cdef size_t n_bytes = (n_members * (sizeof(OpenNode) + sizeof(int))
                           + numbers * sizeof(int64_t) + n_dense)
    cdef SharedNode* node = <SharedNode*>calloc(1, sizeof(SharedNode))
    cdef char* at = <char*>calloc(n_bytes, 1)
    cdef int m
    if node == NULL or at == NULL:
        free(node)
        free(at)
        return NULL
    node.n_members = n_members
    node.active = (<uint64_t>1 << n_members) - 1 if n_members < 64 else <uint64_t>-1
    node.n_cells = n_cells
    node.open = <OpenNode*>at  # the first of what lies in one piece
    at += n_members * sizeof(OpenNode)
    if K > 0:
        for m in range(n_members):
            node.open[m].class_totals = <int64_t*>at + m * K
    at += n_members * K * sizeof(int64_t)
    node.without = <uint64_t*>at
    at += n_cells * sizeof(uint64_t)
    node.set_of = <int*>at
    node.constant = <uint8_t*>at + n_members * sizeof(int)
    return node


cdef void release_entries(SharedNode* node) noexcept nogil:
    """Say that a node reads its entries no longer; the last one frees them."""
    if node.readers != NULL and add_atomic(&node.readers.n_nodes, -1, ACQ_REL) > 0:
        return
    free(node.readers)
    free(node.features)
    free(node.entries)


cdef void free_shared(SharedNode* node) noexcept nogil:
    cdef int m
    if node == NULL:
        return
    for m in range(node.n_members):
        free(node.open[m].above.sets)
    free(node.open)
    free(node.rows)
    free(node.cell)
    free(node.some)
    free(node.who)
    release_entries(node)
    free(node)


cdef void free_shared_list(SharedNode* node) noexcept nogil:
    cdef SharedNode* next
    while node != NULL:
        next = node.below
        free_shared(node)
        node = next


cdef bint reserve_rows(SharedNode* node, int64_t n) noexcept nogil:
    """Room for so many rows that all have; less than there is gives the rest back. False without
    memory."""
    return (resize(<void**>&node.rows, (n + 1) * sizeof(uint32_t))
            and resize(<void**>&node.cell, n + 1))


cdef bint reserve_some(SharedNode* node, int64_t n) noexcept nogil:
    """Room for so many rows, and one more, that only some of the members have; False without
    memory."""
    if not (resize(<void**>&node.some, (n + 1) * sizeof(uint32_t))
            and resize(<void**>&node.who, (n + 1) * sizeof(uint64_t))):
        return False
    node.room = n + 1
    return True


cdef bint add_some(SharedNode* node, uint32_t row, uint64_t who) noexcept nogil:
    if node.n_some == node.room and not reserve_some(node, 2 * node.room + 64):
        return False
    node.some[node.n_some] = row
    node.who[node.n_some] = who
    node.n_some += 1
    return True


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


cdef inline uint64_t left_members(const Partitioning* p, uint32_t code) noexcept nogil:
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

cdef inline void side_rows(const SharedNode* node, const code_t* codes, const Partitioning* p,
                           uint8_t* side) noexcept nogil:
    """Find the side of each row, as the members that have it agree."""
    cdef int64_t i
    cdef uint64_t full, left
    for i in range(node.n):
        full = p.full[node.cell[i]]
        left = full & left_members(p, codes[node.rows[i]])
        side[i] = (left == full) | (left == 0) << 1


cdef void take_rows(const SharedNode* node, const uint8_t* side, uint8_t wanted,
                    const Partitioning* p, SharedNode* child) noexcept nogil:
    """Rows that go to a child alone, in their order, and their cells; without a branch."""
    cdef int64_t n = 0
    cdef int64_t i
    cdef bint same = True
    cdef int c
    if is_wide and PATH_IS_ON("partition_by_eight"):
        n = take_eight_rows(node.rows, node.cell, side, node.n, wanted, child.rows, child.cell)
    else:
        for i in range(node.n):
            child.rows[n] = node.rows[i]
            child.cell[n] = node.cell[i]
            n += side[i] == wanted
    child.n = n
    for c in range(node.n_cells):
        same &= p.full[c] == 0 or p.new_cell[c] == c
    for i in range(0 if same else n):
        child.cell[i] = p.new_cell[child.cell[i]]


cdef inline bint split_rows(const SharedNode* node, const code_t* codes, const uint8_t* side,
                            const Partitioning* p, SharedNode* left,
                            SharedNode* right) noexcept nogil:
    """Rows on which the members differ, to both children; False without memory."""
    cdef const uint8_t* at = <const uint8_t*>memchr(side, BOTH, node.n)
    cdef int64_t i
    cdef uint64_t full, mask
    while at != NULL:
        i = at - side
        full = p.full[node.cell[i]]
        mask = full & left_members(p, codes[node.rows[i]])
        if not (add_some(left, node.rows[i], mask)
                and add_some(right, node.rows[i], full & ~mask)):
            return False
        at = <const uint8_t*>memchr(at + 1, BOTH, node.n - i - 1)
    return True


cdef inline void partition_some(const SharedNode* node, const code_t* codes, const uint64_t* who,
                                const Partitioning* p, SharedNode* left,
                                SharedNode* right) noexcept nogil:
    """Rows that only some have, to the children that somebody sends them to; without a branch."""
    cdef uint32_t* left_rows = left.some
    cdef uint32_t* right_rows = right.some
    cdef uint64_t* left_who = left.who
    cdef uint64_t* right_who = right.who
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t i
    cdef uint64_t mask
    cdef uint32_t row
    for i in range(node.n_some):
        row = node.some[i]
        mask = left_members(p, codes[row])
        left_rows[n_left] = row
        left_who[n_left] = who[i] & mask
        right_rows[n_right] = row
        right_who[n_right] = who[i] & ~mask
        n_left += (who[i] & mask) != 0
        n_right += (who[i] & ~mask) != 0
    left.n_some = n_left
    right.n_some = n_right


cdef inline bint part_rows(const SharedNode* node, const code_t* codes, const uint64_t* who,
                           const Partitioning* p, uint8_t* side, SharedNode* left,
                           SharedNode* right) noexcept nogil:
    """All rows but those on which the members agree, of which only the side is found."""
    side_rows(node, codes, p, side)
    partition_some(node, codes, who, p, left, right)
    return split_rows(node, codes, side, p, left, right)


cdef bint partition_shared(const SharedNode* node, const Column* column, const uint64_t* who,
                           const Partitioning* p, SharedNode* left,
                           SharedNode* right) noexcept nogil:
    """Partition the rows of a node between two children, which are empty; False without memory.

    column : dense. who : as that of the node, but for the members that go apart.
    """
    cdef uint8_t* side = <uint8_t*>malloc(node.n + 1)
    cdef bint found = (
        side != NULL and reserve_rows(left, node.n) and reserve_rows(right, node.n)
        and reserve_some(left, node.n_some) and reserve_some(right, node.n_some))
    if found and column.storage == STORED_U8:
        found = part_rows(node, <const uint8_t*>column.codes, who, p, side, left, right)
    elif found and column.storage == STORED_U16:
        found = part_rows(node, <const uint16_t*>column.codes, who, p, side, left, right)
    elif found:
        found = part_rows(node, <const uint32_t*>column.codes, who, p, side, left, right)
    if found:
        take_rows(node, side, LEFT, p, left)
        take_rows(node, side, RIGHT, p, right)
        found = reserve_rows(left, left.n) and reserve_rows(right, right.n)
    free(side)
    return found
