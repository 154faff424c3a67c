"""Splits of ordered columns, straight from the cells of a histogram of gradients.

What `_bins` finds in such a column, without making bins of the cells first:

    code         0 (missing)   1     2     3     4      n = 40, at least 10 rows on each side
    rows               2       8     0    25     5
    left of it                 8     8    33    38      missing right; 10, 10, 35, 40: left
                              few   few   ok   few

A cell is two sums side by side, so the sums up to a code are one addition of 128 bits. Cells
without rows repeat the boundary before them, and the first of equal scores wins. Boundaries are
scored together, so that divisions run side by side (measured: see `benchmarks.kernels.boost`).
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport AT_MOST
from dtrees.core.histogram._layout cimport Layout, decode_gradients
from dtrees.core.search._search cimport (
    BUFFER, NONE, Search, begin_pass, flush, take_best
)


cdef void scan_pass(Search* q, int shift, const int64_t* cells, int64_t n_codes,
                    bint missing_left) noexcept nogil:
    """The boundaries behind the codes 1, 2, ..., missing values on one side."""
    cdef uint64_t least = <uint64_t>q.min_rows << shift
    cdef uint64_t most = <uint64_t>(q.totals.n - q.min_rows + 1) << shift
    cdef int64_t mask = (<int64_t>1 << shift) - 1
    cdef int64_t lightest = q.min_weight
    cdef int64_t heaviest = q.totals.weight - q.min_weight
    cdef uint64_t rows = 0
    cdef int64_t s = 0
    cdef int64_t code, w
    cdef int64_t first = 1
    cdef int64_t k = 0
    begin_pass(q, AT_MOST, missing_left)
    if missing_left:
        rows = <uint64_t>cells[0]
        s = cells[1]
    while first <= n_codes and cells[2 * first] == 0:
        first += 1
    for code in range(first, n_codes + 1):
        rows += <uint64_t>cells[2 * code]
        if rows >= most:
            break
        s += cells[2 * code + 1]
        w = <int64_t>rows & mask
        q.buffer_w[k] = <double>w
        q.buffer_rest[k] = <double>(q.totals.weight - w)
        q.buffer_a[k] = <double>s
        q.buffer_at[k] = <int32_t>code
        k += (rows >= least) & (w >= lightest) & (w <= heaviest)
        if k == BUFFER:
            q.buffered = k
            flush(q, False, False, False, 0)
            k = 0
    q.buffered = k
    flush(q, False, False, False, 0)


cdef void scan_gradients(Search* q, const Layout* layout, const int64_t* cells, int64_t n_codes,
                         int32_t column) noexcept nogil:
    """Search an ordered column; keep its best split in q.split if it beats what is there.

    cells : (n_codes + 1, 2). O(codes), twice where values are missing in the node.
    """
    cdef bint saw_missing = cells[0] != 0 or cells[1] != 0
    cdef int64_t code
    q.best = NONE
    scan_pass(q, layout.shift, cells, n_codes, False)
    if saw_missing:
        scan_pass(q, layout.shift, cells, n_codes, True)
    if not take_best(q, column, saw_missing):
        return
    q.split.boundary = <uint32_t>q.best_at
    for code in range(q.best_at + 1, n_codes + 1):
        if cells[2 * code] != 0:
            q.split.beyond = <uint32_t>code
            break
