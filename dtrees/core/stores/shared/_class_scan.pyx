"""Ordered columns of several classes: the members of a shared node are searched side by side.

With many classes the cells of a node's histograms (codes times classes, for each set) cost more
than its rows. So only the classes and the codes that occur are counted, and a cell holds a number
for each member, eight in a register; what a row adds is a row of ones and zeros, by its cell::

    a code and a class     | m0 | m1 | m2 | ... | m7 |     rows of each member
    a row of cell 2       +|  1 |  1 |  0 | ... |  1 |     those whose sets have the cell

    codes, ascending:  side += cell;  sums of squares and weights: eight members at a time

For the Gini index, no weights, and nodes whose squares fit 32 bits; in other cases, and where there
are categories, members are searched one by one (`_bins`). Sums are integers and scores are made
of them by the same operations, so that splits are the same bits.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dtrees.core.data._columns cimport STORED_U8, Column
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.search._search cimport NONE, Search, beats, take_split
from dtrees.core.stores.shared._shared_nodes cimport SharedNode

cdef extern from "stores/shared/class_scan.h" nogil:
    void write_members(int32_t*, int64_t, uint64_t) noexcept
    void count_classes_u8(int32_t*, int64_t, int64_t, const uint8_t*, const uint32_t*,
                          const uint32_t*, const uint16_t*, const uint8_t*, const int32_t*,
                          int64_t) noexcept
    void count_classes_u16(int32_t*, int64_t, int64_t, const uint16_t*, const uint32_t*,
                           const uint32_t*, const uint16_t*, const uint8_t*, const int32_t*,
                           int64_t) noexcept
    void count_some_classes_u8(int32_t*, int64_t, int64_t, const uint8_t*, const uint32_t*,
                               const uint32_t*, const uint16_t*, const uint64_t*,
                               int64_t) noexcept
    void count_some_classes_u16(int32_t*, int64_t, int64_t, const uint16_t*, const uint32_t*,
                                const uint32_t*, const uint16_t*, const uint64_t*,
                                int64_t) noexcept
    void search_members(MemberScan*, const int32_t*, int64_t, bint, int32_t*, double) noexcept

cdef void free_classes(ClassCounts* x) noexcept nogil:
    free(x.scan.totals)
    free(x.has)
    free(x.scan.side)
    free(x.number)
    free(x.label)
    free(x.cells)
    free(x.rows)


cdef bint reserve_has(ClassCounts* x, int64_t n) noexcept nogil:
    cdef size_t n_bytes = n * sizeof(int32_t)
    if n > x.n_has:
        x.n_has = 0
        if (claim(<void**>&x.has, n_bytes) and claim(<void**>&x.scan.totals, n_bytes)
                and claim(<void**>&x.scan.side, n_bytes)):
            x.n_has = n
    return n <= x.n_has


cdef bint reserve_labels(ClassCounts* x, int64_t n, int64_t n_classes) noexcept nogil:
    if x.number == NULL and not claim(<void**>&x.number, n_classes * sizeof(uint16_t)):
        return False
    if n > x.n_labels:
        x.n_labels = n if claim(<void**>&x.label, n * sizeof(uint16_t)) else 0
    return n <= x.n_labels


cdef bint reserve_codes(ClassCounts* x, int64_t n) noexcept nogil:
    if n > x.n_cells:
        x.n_cells = 0
        if (claim(<void**>&x.cells, n * sizeof(int32_t))
                and claim(<void**>&x.rows, n * sizeof(int32_t))):
            x.n_cells = n
    return n <= x.n_cells


# ---------------------------------------------------------------------------------------------
# a node

cdef bint number_classes(ClassCounts* x, const SharedNode* node, const RowStatistics* of_row,
                         int64_t n_classes) noexcept nogil:
    """Number the classes that a node of at most `MOST_ROWS` rows holds; False without memory.

    n_classes : of the table. The limits of the members (`least`, `most`) are the caller's.
    """
    cdef MemberScan* scan = &x.scan
    cdef int64_t n = node.n + node.n_some
    cdef int64_t width = (node.n_members + MEMBERS - 1) // MEMBERS * MEMBERS
    cdef int64_t n_local = 0
    cdef int64_t i, k, t
    cdef int m
    cdef uint64_t all = (<uint64_t>1 << node.n_members) - 1 if node.n_members < 64 \
        else <uint64_t>-1
    cdef uint16_t* some
    if not reserve_labels(x, n, n_classes):
        return False
    if not reserve_has(x, width * (n_classes if n_classes > node.n_cells else node.n_cells)):
        return False
    scan.width = width
    memset(scan.n, 0, width * sizeof(int32_t))
    memset(scan.squares, 0, width * sizeof(int32_t))
    for k in range(n_classes):
        x.number[k] = <uint16_t>n_local
        t = 0
        for m in range(node.n_members):
            i = node.open[m].class_totals[k]
            t |= i
            scan.totals[n_local * width + m] = <int32_t>i
            scan.n[m] += <int32_t>i
            scan.squares[m] += <int32_t>(i * i)
        for m in range(node.n_members, width):
            scan.totals[n_local * width + m] = 0
        n_local += t > 0
    scan.n_classes = n_local
    for i in range(node.n_cells):
        write_members(x.has + i * width, width, all & ~node.without[i])
    some = x.label + node.n
    for i in range(node.n):
        x.label[i] = x.number[of_row.label[node.rows[i]]]
    for i in range(node.n_some):
        some[i] = x.number[of_row.label[node.some[i]]]
    return True


# ---------------------------------------------------------------------------------------------
# a column

cdef bint count_classes(ClassCounts* x, const SharedNode* node, const Column* column,
                        const uint32_t* rank, int64_t n_codes) noexcept nogil:
    """Count the rows of a node by code, class and member; False without memory.

    rank : by code its number, or NULL: the code. n_codes : how many.
    """
    cdef int64_t K = x.scan.n_classes
    cdef int64_t width = x.scan.width
    cdef const uint8_t* narrow = <const uint8_t*>column.codes
    cdef const uint16_t* wide = <const uint16_t*>column.codes
    cdef const uint16_t* some = x.label + node.n
    x.n_codes = n_codes
    if not reserve_codes(x, n_codes * K * width):
        return False
    memset(x.cells, 0, n_codes * K * width * sizeof(int32_t))
    if column.storage == STORED_U8:
        count_classes_u8(x.cells, K, width, narrow, rank, node.rows, x.label, node.cell, x.has,
                         node.n)
        count_some_classes_u8(x.cells, K, width, narrow, rank, node.some, some, node.who,
                              node.n_some)
    else:
        count_classes_u16(x.cells, K, width, wide, rank, node.rows, x.label, node.cell, x.has,
                          node.n)
        count_some_classes_u16(x.cells, K, width, wide, rank, node.some, some, node.who,
                               node.n_some)
    return True


cdef void search_classes(ClassCounts* x, bint has_missing) noexcept nogil:
    """The best boundary of the column for each member.

    has_missing : the first of the codes is that of missing values.
    """
    search_members(&x.scan, x.cells, x.n_codes, has_missing, x.rows, NONE)


cdef void take_boundary(const ClassCounts* x, Search* q, int32_t column, int member,
                        const uint32_t* code) noexcept nogil:
    """Make the boundary of a member the split of its node, if it beats what is there.

    code : by number.
    """
    cdef const int32_t* rows = x.rows + member
    cdef int64_t width = x.scan.width
    cdef int64_t at = x.scan.at[member] & (BEHIND - 1)
    cdef bint missing_left = x.scan.at[member] >= BEHIND
    cdef int64_t beyond = at + 1
    q.best = x.scan.best[member]
    if not beats(q, column):
        return
    while beyond < x.n_codes and rows[beyond * width] == 0:
        beyond += 1
    take_split(q, column, code[at], code[beyond] if beyond < x.n_codes else 0, missing_left,
               code[0] == 0 and rows[0] > 0)
