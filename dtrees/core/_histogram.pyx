"""Histograms: what the rows of a node add up to, for each code of a column.

A histogram has a cell per code, missing values first, of one to 1 + K numbers for K classes:

    mode               cell, int64
    COUNT              rows << 32 | rows of class 1, each below 2**32
    SUM                rows, sum of targets
    WEIGHTED_SUM       rows, weight, weighted sum of targets
    CLASSES            rows of each class
    WEIGHTED_CLASSES   rows, weight of each class

Histograms of parts of the rows add up to the histogram of all of them, in any order: that is all
that chunks, folds and bags need. It is also why only the smaller child of a node is counted; the
larger one is the node less the smaller one, to the last bit.

The search over a histogram is the search over groups (`_groups`): the codes that occur, and their
sums.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from dtrees.core._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t
from dtrees.core._groups cimport reserve_groups, search_groups
from dtrees.core._search cimport Groups, Search
from dtrees.core._structs cimport (
    CLASSES, COUNT, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Run
)
from dtrees.core._workspace cimport OpenNode, Workspace


# ---------------------------------------------------------------------------------------------
# counting

cdef inline void add_codes_in(const code_t* codes, const Payload* payload, Mode mode,
                              int64_t stride, const uint32_t* row_id, const uint32_t* rows,
                              int64_t n, int64_t* histogram) noexcept nogil:
    cdef int64_t i
    if row_id == NULL:
        for i in range(n):
            add_row(histogram + codes[rows[i]] * stride, rows[i], payload, mode)
    else:
        for i in range(n):
            add_row(histogram + codes[row_id[rows[i]]] * stride, rows[i], payload, mode)


cdef void add_codes(const code_t* codes, const Payload* payload, Mode mode, int64_t stride,
                    const uint32_t* row_id, const uint32_t* rows, int64_t n,
                    int64_t* histogram) noexcept nogil:
    """Pick the loop that was compiled for the mode."""
    if mode == COUNT:
        add_codes_in(codes, payload, COUNT, 1, row_id, rows, n, histogram)
    elif mode == SUM:
        add_codes_in(codes, payload, SUM, 2, row_id, rows, n, histogram)
    elif mode == WEIGHTED_SUM:
        add_codes_in(codes, payload, WEIGHTED_SUM, 3, row_id, rows, n, histogram)
    elif mode == CLASSES:
        add_codes_in(codes, payload, CLASSES, stride, row_id, rows, n, histogram)
    else:
        add_codes_in(codes, payload, WEIGHTED_CLASSES, stride, row_id, rows, n, histogram)


cdef void add_rows(const Column* column, const Payload* payload, Mode mode, int64_t stride,
                   const uint32_t* row_id, const uint32_t* rows, int64_t n,
                   int64_t* histogram) noexcept nogil:
    """Add n rows of a workspace to the histogram of a column.

    row_id : rows of the coded matrix, by row of the workspace; NULL: the same, and needed so for
    sparse columns, whose stored rows are met by merging two ascending lists. O(n + stored).
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef uint32_t* of_row
    cdef int64_t i, at
    if column.storage == STORED_U8:
        add_codes(<const uint8_t*>column.codes, payload, mode, stride, row_id, rows, n, histogram)
    elif column.storage == STORED_U16:
        add_codes(<const uint16_t*>column.codes, payload, mode, stride, row_id, rows, n, histogram)
    elif column.storage == STORED_U32:
        add_codes(codes, payload, mode, stride, row_id, rows, n, histogram)
    else:
        of_row = <uint32_t*>malloc((rows[n - 1] + <int64_t>1) * sizeof(uint32_t))
        at = 0
        for i in range(n):
            while at < column.stored and <uint32_t>column.rows[at] < rows[i]:
                at += 1
            if at < column.stored and <uint32_t>column.rows[at] == rows[i]:
                of_row[rows[i]] = codes[at]
            else:
                of_row[rows[i]] = column.fill
        add_codes(of_row, payload, mode, stride, NULL, rows, n, histogram)
        free(of_row)


cdef void count_runs(const Workspace* w, const Column* columns, Mode mode, int64_t stride,
                     const Run* runs, int64_t n_runs, int64_t start, int64_t n,
                     int64_t* histogram) noexcept nogil:
    """Add n rows of a workspace, from `start` on, to the histograms that are kept of its runs."""
    cdef int64_t r
    for r in range(n_runs):
        if runs[r].length == 0 and runs[r].offset >= 0:
            add_rows(columns + runs[r].column, &w.payload, mode, stride, w.row_id,
                     w.rows + start, n, histogram + runs[r].offset)


cdef void part_histogram(const Workspace* w, const Column* columns, Mode mode, int64_t stride,
                         const Run* runs, int64_t n_runs, int64_t n_cells,
                         const OpenNode* left, const OpenNode* right, bint left_wants,
                         bint right_wants, int64_t** of_node, int64_t** of_left,
                         int64_t** of_right) noexcept nogil:
    """Histograms of the children that want one, from that of their parent, which is used up.

    The smaller child is counted; the larger one is what is left. O(rows of the smaller child per
    column + cells).
    """
    cdef const OpenNode* small = left
    cdef int64_t** of_small = of_left
    cdef int64_t** of_large = of_right
    cdef bint small_wants = left_wants
    cdef bint large_wants = right_wants
    cdef int64_t* counted
    cdef int64_t* total = of_node[0]
    cdef int64_t i
    if right.totals.n < left.totals.n:
        small = right
        of_small, of_large = of_right, of_left
        small_wants, large_wants = right_wants, left_wants
    if not small_wants and not large_wants:
        return
    counted = <int64_t*>calloc(n_cells, sizeof(int64_t))
    count_runs(w, columns, mode, stride, runs, n_runs, small.start, small.totals.n, counted)
    if large_wants:
        for i in range(n_cells):
            total[i] -= counted[i]
        of_large[0] = total
        of_node[0] = NULL
    if small_wants:
        of_small[0] = counted
    else:
        free(counted)


# ---------------------------------------------------------------------------------------------
# search

cdef void groups_of_histogram(Search* q, const int64_t* histogram, int64_t n_codes) noexcept nogil:
    """The codes that occur, as groups of the search. O(n_codes * width)."""
    cdef Groups* groups = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef const int64_t* cell
    cdef int64_t code, k, n, w
    cdef int64_t g = 0
    reserve_groups(q, n_codes + 1)
    for code in range(n_codes + 1):
        if q.mode == COUNT:
            cell = histogram + code
            n = w = <int64_t>(<uint64_t>cell[0] >> 32)
            groups.target[g] = <uint32_t>cell[0]
        elif q.mode == SUM:
            cell = histogram + 2 * code
            n = w = cell[0]
            groups.target[g] = cell[1]
        elif q.mode == WEIGHTED_SUM:
            cell = histogram + 3 * code
            n = cell[0]
            w = cell[1]
            groups.target[g] = cell[2]
        else:
            n = w = 0
            cell = histogram + code * K
            if q.mode == WEIGHTED_CLASSES:
                cell += code
                n = cell[0]
                cell += 1
            for k in range(K):
                w += cell[k]
                groups.target[g * K + k] = cell[k]
            if q.mode == CLASSES:
                n = w
        groups.rank[g] = <uint32_t>code
        groups.row[g] = -1
        groups.n[g] = n
        groups.weight[g] = w
        g += n > 0
    groups.count = g


cdef bint search_histogram(Search* q, const int64_t* histogram, int64_t n_codes, int32_t column,
                           uint32_t last_ordered) noexcept nogil:
    """Search one column; keep its best split in q.split if it beats what is there.

    Returns False when the column is constant in the node. O(n_codes * width), and what the search
    over groups costs.
    """
    groups_of_histogram(q, histogram, n_codes)
    if q.groups.count <= 1:
        return False
    search_groups(q, column, last_ordered)
    return True
