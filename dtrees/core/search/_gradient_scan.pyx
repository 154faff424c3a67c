"""Splits of ordered columns, straight from the cells of a histogram of gradients.

What `_bins` finds in such a column, without making bins of the cells first:

    code         0 (missing)   1     2     3     4      n = 40, at least 10 rows on each side
    rows               2       8     0    25     5
    left of it                 8     8    33    38      missing right; 10, 10, 35, 40: left
                              few   few   ok   few

A cell is two sums side by side, so the sums up to a code are one addition of 128 bits. Cells
without rows repeat the boundary before them, and the first of equal scores wins. Boundaries are
scored together, so that divisions run side by side.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport AT_MOST
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._search cimport (
    Boundaries, Search, begin_column, begin_pass, flush, is_bound, keep_boundary, take_best
)

cdef extern from "search/gradients.h" nogil:
    const int64_t CODES_AT_ONCE, LANES_OF_SCORES
    ctypedef struct SidesOfNode:
        double weight, target, l2
        int shift
        uint64_t min_rows, max_rows
        int64_t min_weight, max_weight
    int64_t weight_of_sum(const SidesOfNode*, int64_t)
    int64_t permitted_sums(const SidesOfNode*, const int64_t*, int64_t, int64_t*)
    void add_up_plain(const int64_t*, int64_t, int64_t*, int64_t*)
    void add_up_wide(const int64_t*, int64_t, int64_t*, int64_t*)
    int64_t best_boundary_plain(const SidesOfNode*, int64_t*, int64_t, double*)
    int64_t best_boundary_wide(const SidesOfNode*, int64_t*, int64_t, double*)


cdef SidesOfNode sides_of_node(const Search* q, int shift) noexcept nogil:
    cdef SidesOfNode node
    node.weight, node.target, node.l2 = q.W, q.S, q.criterion.l2
    node.shift = shift
    node.min_rows, node.max_rows = <uint64_t>q.min_rows, <uint64_t>(q.totals.n - q.min_rows)
    node.min_weight, node.max_weight = q.min_weight, q.totals.weight - q.min_weight
    return node


cdef void offer_bound(Search* q, const SidesOfNode* node, const int64_t* sums, int64_t n,
                      int64_t code) noexcept nogil:
    """The boundaries behind n codes, from `code` on, where candidates are scored by values."""
    cdef Boundaries* kept = q.boundaries
    cdef int64_t i, w, k = 0
    for i in range(n):
        if i > 0 and sums[2 * i] == sums[2 * i - 2]:
            continue    # no rows: measured 2.0, full trees with path_smooth
        w = weight_of_sum(node, sums[2 * i])
        kept.w[k] = <double>w
        kept.rest[k] = <double>(q.totals.weight - w)
        kept.a[k] = <double>sums[2 * i + 1]
        kept.at[k] = <int32_t>(code + i)
        k += 1
    q.buffered = k
    flush(q, False, False)


cdef void scan_pass(Search* q, const SidesOfNode* node, const int64_t* cells, int64_t n_codes,
                    bint missing_left) noexcept nogil:
    """The boundaries behind the codes 1, 2, ..., missing values on one side."""
    cdef int64_t sums[2 * (CODES_AT_ONCE + LANES_OF_SCORES)]
    cdef int64_t before[2]
    cdef int64_t code = 1
    cdef int64_t n, first, end, found
    begin_pass(q, AT_MOST, missing_left)
    before[0] = cells[0] if missing_left else 0
    before[1] = cells[1] if missing_left else 0
    while missing_left and code <= n_codes and cells[2 * code] == 0:
        code += 1
    while code <= n_codes and <uint64_t>before[0] >> node.shift <= node.max_rows:
        n = min(<int64_t>CODES_AT_ONCE, n_codes + 1 - code)
        if is_wide:
            add_up_wide(cells + 2 * code, n, before, sums)
        else:
            add_up_plain(cells + 2 * code, n, before, sums)
        end = permitted_sums(node, sums, n, &first)
        if is_bound(q):
            offer_bound(q, node, sums + 2 * first, end - first, code + first)
        elif first < end:
            if is_wide:
                found = best_boundary_wide(node, sums + 2 * first, end - first, &q.best)
            else:
                found = best_boundary_plain(node, sums + 2 * first, end - first, &q.best)
            if found >= 0:
                keep_boundary(q, code + first + found)
        code += n


cdef int64_t best_of_outputs(Search* q, const SidesOfNode* node, const int64_t* cells,
                             int64_t stride, const int64_t* sums, int64_t n, int64_t first,
                             int64_t end) noexcept nogil:
    """The first of the boundaries first..end behind n codes with the best score so far; or -1.

    The score is that of `score_of_gradients`. cells : of the first of these codes. sums : of the
    weight up to each. q.side : gradients before them, IN, OUT
    """
    cdef double[CODES_AT_ONCE] left
    cdef double[CODES_AT_ONCE] right
    cdef const int64_t* own
    cdef double scale, s, t, w, rest, score
    cdef int64_t i, o, gradient, total
    cdef int64_t found = -1
    for i in range(n):
        left[i] = right[i] = 0
    for o in range(q.criterion.n_outputs):
        own = cells + o * stride
        gradient, total, scale = q.side[o], q.class_totals[o], q.criterion.scale[o]
        for i in range(n):
            gradient += own[2 * i + 1]
            s = <double>gradient * scale
            t = <double>(total - gradient) * scale
            left[i] += s * s
            right[i] += t * t
        q.side[o] = gradient
    for i in range(first, end):
        w = <double>weight_of_sum(node, sums[2 * i])
        rest = node.weight - w + node.l2
        w += node.l2
        score = (left[i] * rest + right[i] * w) / (w * rest)
        if score > q.best:
            q.best = score
            found = i
    return found


cdef void scan_outputs(Search* q, const Layout* layout, const int64_t* cells, int64_t n_codes,
                       int32_t column) noexcept nogil:
    """As `scan_gradients`, of several outputs.

    O(outputs x codes), twice where values are missing in the node.
    """
    cdef int64_t sums[2 * (CODES_AT_ONCE + LANES_OF_SCORES)]
    cdef int64_t before[2]
    cdef int64_t stride = layout.to_next_output
    cdef bint saw_missing = cells[0] != 0
    cdef SidesOfNode node
    cdef int64_t code, n, first, end, found
    cdef int o, missing_left
    begin_column(q, column)
    if q.totals.n < 2 * q.min_rows:
        return
    node = sides_of_node(q, layout.shift)
    for missing_left in range(2 if saw_missing else 1):
        begin_pass(q, AT_MOST, missing_left)
        before[0] = cells[0] if missing_left else 0
        before[1] = 0
        for o in range(q.criterion.n_outputs):
            q.side[o] = cells[o * stride + 1] if missing_left else 0
        q.side_is_clear = False
        code = 1
        while missing_left and code <= n_codes and cells[2 * code] == 0:
            code += 1
        while code <= n_codes:
            n = min(<int64_t>CODES_AT_ONCE, n_codes + 1 - code)
            add_up_plain(cells + 2 * code, n, before, sums)
            end = permitted_sums(&node, sums, n, &first)
            found = best_of_outputs(q, &node, cells + 2 * code, stride, sums, n, first, end)
            if found >= 0:
                keep_boundary(q, code + found)
            code += n
    keep_best_boundary(q, cells, n_codes, column, saw_missing)


cdef void keep_best_boundary(Search* q, const int64_t* cells, int64_t n_codes, int32_t column,
                             bint saw_missing) noexcept nogil:
    """Make the best boundary of a column the node's split, if it beats it."""
    cdef int64_t code
    if not take_best(q, column, saw_missing):
        return
    q.split.boundary = <uint32_t>q.best_at
    for code in range(q.best_at + 1, n_codes + 1):
        if cells[2 * code] != 0:
            q.split.beyond = <uint32_t>code
            break


cdef void scan_gradients(Search* q, const Layout* layout, const int64_t* cells, int64_t n_codes,
                         int32_t column) noexcept nogil:
    """Search an ordered column; keep its best split in q.split if it beats what is there.

    cells : (n_codes + 1, 2). O(codes), twice where values are missing in the node.
    """
    cdef bint saw_missing = cells[0] != 0 or cells[1] != 0
    cdef SidesOfNode node
    begin_column(q, column)
    if q.totals.n < 2 * q.min_rows:
        return
    node = sides_of_node(q, layout.shift)
    scan_pass(q, &node, cells, n_codes, False)
    if saw_missing:
        scan_pass(q, &node, cells, n_codes, True)
    keep_best_boundary(q, cells, n_codes, column, saw_missing)
