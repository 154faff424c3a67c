"""Rows and entries of a node, stably parted between its children.

The column of the test marks each row of the node with its side; every other column then parts its
run by the marks. Order is kept on both sides, so both halves are in ascending order of rank again
and are runs of the children:

    entries of a column before     a1 b1 c2 d2 e5 f7          (row, rank)
    side of the row                 L  R  L  L  R  L
    after                          a1 c2 d2 f7 | b1 e5

Left entries are written back in place, right ones to scratch and copied behind them: every entry
is written to both places and a cursor moves, without a branch. O(entries).
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dtrees.core._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t
from dtrees.core._structs cimport AT_MOST, IN_SUBSET, Run, Split, entry_t


cdef Route route_of(const Split* split, uint32_t last_ordered, const uint64_t* subset,
                    int64_t subset_words) noexcept nogil:
    """The test of a split on the ranks it was searched with."""
    cdef Route route
    route.subset = NULL
    route.subset_words = 0
    route.low = 0
    route.high = 0
    route.missing_left = split.missing_left
    if split.test == IN_SUBSET:
        route.subset = subset
        route.subset_words = subset_words
    elif split.test == AT_MOST:
        route.high = split.boundary
    else:
        route.low = split.boundary
        route.high = last_ordered
    return route


cdef void mark_run(const Route* route, const entry_t* entries, const Run* run,
                   const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    """side[row] = 1 where the row goes left.

    rows : the n rows of the node, needed where some hold the fill code.
    """
    cdef const entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i
    cdef uint8_t left
    if run.length < n:
        left = goes_left(route, run.fill)
        for i in range(n):
            side[rows[i]] = left
    for i in range(run.length):
        side[e[i] & mask] = goes_left(route, <uint32_t>(e[i] >> shift))


cdef inline void mark_dense(const Route* route, const code_t* codes, const uint32_t* row_id,
                            const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    cdef int64_t i
    if row_id != NULL:
        for i in range(n):
            side[rows[i]] = goes_left(route, codes[row_id[rows[i]]])
    else:
        for i in range(n):
            side[rows[i]] = goes_left(route, codes[rows[i]])


cdef void mark_codes(const Route* route, const Column* column, const uint32_t* row_id,
                     const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    """side[row] = 1 where the row goes left, from the codes of the column.

    row_id : rows of the coded matrix, by row of the workspace; NULL: the same, and needed so for
    sparse columns, for which rows ascend.
    """
    cdef int64_t i
    cdef int64_t at = 0
    cdef uint32_t code
    if column.storage == STORED_U8:
        mark_dense(route, <const uint8_t*>column.codes, row_id, rows, n, side)
    elif column.storage == STORED_U16:
        mark_dense(route, <const uint16_t*>column.codes, row_id, rows, n, side)
    elif column.storage == STORED_U32:
        mark_dense(route, <const uint32_t*>column.codes, row_id, rows, n, side)
    else:
        for i in range(n):
            while at < column.stored and <uint32_t>column.rows[at] < rows[i]:
                at += 1
            code = column.fill
            if at < column.stored and <uint32_t>column.rows[at] == rows[i]:
                code = (<const uint32_t*>column.codes)[at]
            side[rows[i]] = goes_left(route, code)


cdef int64_t split_run(entry_t* entries, const Run* run, const uint8_t* side,
                       entry_t* scratch) noexcept nogil:
    """Part a run in place; returns how many entries went left."""
    cdef entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i
    cdef int64_t left = 0
    cdef int64_t right = 0
    cdef entry_t entry
    cdef uint8_t is_left
    for i in range(run.length):
        entry = e[i]
        is_left = side[entry & mask]
        e[left] = entry
        scratch[right] = entry
        left += is_left
        right += 1 - is_left
    if right > 16:
        memcpy(e + left, scratch, right * sizeof(entry_t))
    else:
        for i in range(right):
            e[left + i] = scratch[i]
    return left


cdef int64_t keep_side(entry_t* entries, const Run* run, const uint8_t* side,
                       uint8_t keep) noexcept nogil:
    """Keep the entries of one side only, at the start of the run; returns how many."""
    cdef entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i
    cdef int64_t kept = 0
    cdef entry_t entry
    for i in range(run.length):
        entry = e[i]
        e[kept] = entry
        kept += side[entry & mask] == keep
    return kept


cdef inline void hand_down(Run* runs, int64_t* n_runs, const Run* run, int64_t offset,
                           int64_t length) noexcept nogil:
    """Append a part of a run to the runs of a child."""
    cdef Run* new = runs + n_runs[0]
    new[0] = run[0]
    new.offset = offset
    new.length = <uint32_t>length
    n_runs[0] += 1


cdef int64_t part_runs(entry_t* entries, const Run* runs, int64_t n_runs, const uint8_t* side,
                       entry_t* scratch, Run* left, int64_t* n_left, Run* right,
                       int64_t* n_right) noexcept nogil:
    """Part the runs of a node in place, and list those of its children.

    left, right : (n_runs,), NULL for leaves, which need no runs; n_left and n_right count what is
    appended. Columns that are counted have no entries and are handed down as they are; a child
    without any entry of a sparse column is not handed its run. Returns how many entries there were.
    """
    cdef const Run* run
    cdef int64_t n_entries = 0
    cdef int64_t r, k
    if left == NULL and right == NULL:
        return 0
    for r in range(n_runs):
        run = runs + r
        n_entries += run.length
        if run.length == 0:
            if left != NULL:
                hand_down(left, n_left, run, run.offset, 0)
            if right != NULL:
                hand_down(right, n_right, run, run.offset, 0)
            continue
        if left == NULL:
            k = keep_side(entries, run, side, 0)
            if k > 0:
                hand_down(right, n_right, run, run.offset, k)
        elif right == NULL:
            k = keep_side(entries, run, side, 1)
            if k > 0:
                hand_down(left, n_left, run, run.offset, k)
        else:
            k = split_run(entries, run, side, scratch)
            if k > 0:
                hand_down(left, n_left, run, run.offset, k)
            if k < run.length:
                hand_down(right, n_right, run, run.offset + k, run.length - k)
    return n_entries
