"""Histograms: what the rows of a node add up to, for each code of a column.

A histogram has a cell per code, missing values first, of one to 1 + K numbers for K classes:

    mode               cell, int64
    COUNT              rows << 32 | rows of class 1
    SUM                rows, sum of targets
    WEIGHTED_SUM       rows, weight, weighted sum of targets
    CLASSES            rows of each class
    WEIGHTED_CLASSES   rows, weight of each class

Histograms of parts of the rows add up to the histogram of all of them, in any order: that is all
that chunks, folds and bags need. It is also why only the smaller child of a node is counted; the
larger one is the node less the smaller one, to the last bit.

The search over a histogram scores the candidates of the search over entries (`_splitter`), with
the same formulas, in the same order.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from dtrees.core._groups cimport append_group, search_groups
from dtrees.core._search cimport BUFFER, NONE, Search, beats, begin_pass, flush
from dtrees.core._structs cimport (
    ALL_ORDERED, AT_MOST, CLASSES, COUNT, GINI, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode,
    Payload, Run, Split
)
from dtrees.core._workspace cimport STORED_U16, STORED_U32, STORED_U8, Column, OpenNode, Workspace

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


# ---------------------------------------------------------------------------------------------
# counting

cdef inline void add_row(int64_t* cell, int64_t row, const Payload* payload,
                         Mode mode) noexcept nogil:
    if mode == COUNT:
        cell[0] += <int64_t>1 << 32 | payload.label[row]
    elif mode == SUM:
        cell[0] += 1
        cell[1] += payload.target[row]
    elif mode == WEIGHTED_SUM:
        cell[0] += 1
        cell[1] += payload.weight[row]
        cell[2] += payload.target[row]
    elif mode == CLASSES:
        cell[payload.label[row]] += 1
    else:
        cell[0] += 1
        cell[1 + payload.label[row]] += payload.weight[row]


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
    cdef int64_t width = q.n_columns_of_target
    cdef const int64_t* cell
    cdef int64_t code, g, k, n, w
    q.groups.count = 0
    for code in range(n_codes + 1):
        if q.mode == CLASSES:
            cell = histogram + code * width
            n = 0
            for k in range(width):
                n += cell[k]
            w = n
        elif q.mode == WEIGHTED_CLASSES:
            cell = histogram + code * (1 + width)
            n = cell[0]
            cell += 1
            w = 0
            for k in range(width):
                w += cell[k]
        elif q.mode == COUNT:
            cell = histogram + code
            n = w = cell[0] >> 32
        elif q.mode == SUM:
            cell = histogram + 2 * code
            n = w = cell[0]
            cell += 1
        else:
            cell = histogram + 3 * code
            n = cell[0]
            w = cell[1]
            cell += 2
        if n == 0:
            continue
        g = append_group(q, <uint32_t>code, -1)
        q.groups.n[g] = n
        q.groups.weight[g] = w
        for k in range(width):
            q.groups.target[g * width + k] = cell[k]
        if q.mode == COUNT:
            q.groups.target[g] = <uint32_t>cell[0]


cdef inline int64_t rows_in(const int64_t* histogram, int64_t code, Mode mode,
                            int64_t n_classes) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t k
    if mode == COUNT:
        return histogram[code] >> 32
    if mode == SUM:
        return histogram[2 * code]
    if mode == WEIGHTED_SUM:
        return histogram[3 * code]
    for k in range(n_classes):
        n += histogram[code * n_classes + k]
    return n


cdef inline int64_t scan_pairs(Search* q, const int64_t* histogram, int64_t n_codes,
                               Mode mode) noexcept nogil:
    """Score the boundaries between the codes that occur; returns how many codes occur.

    A boundary is named by the code to its left; `mode` is a constant where this is inlined.
    Boundaries are written to the buffer and kept by moving the cursor, without a branch.
    """
    cdef double* bw = q.buffer_w
    cdef double* ba = q.buffer_a
    cdef int32_t* bat = q.buffer_at
    cdef int64_t n_missing = rows_in(histogram, 0, mode, 0)
    cdef int64_t least = q.min_rows
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t missing, code, first, n, w, s, cn, cw, cs, last
    cdef int64_t occur = 0
    cdef int64_t k = 0
    for missing in range(2 if n_missing > 0 else 1):
        begin_pass(q, AT_MOST, missing)
        first = 0 if missing else 1
        n = w = s = last = occur = 0
        for code in range(first, n_codes + 1):
            if mode == COUNT:
                cn = cw = histogram[code] >> 32
                cs = <uint32_t>histogram[code]
            elif mode == SUM:
                cn = cw = histogram[2 * code]
                cs = histogram[2 * code + 1]
            else:
                cn = histogram[3 * code]
                cw = histogram[3 * code + 1]
                cs = histogram[3 * code + 2]
            bw[k] = <double>w
            ba[k] = <double>s
            bat[k] = <int32_t>last
            k += (cn > 0) & (last > 0) & (n >= least) & (n <= most)
            last = code if cn > 0 else last
            occur += cn > 0
            n += cn
            w += cw
            s += cs
            if k == BUFFER:
                q.buffered = k
                flush(q, False, False, False, 0)
                k = 0
        if n_missing > 0 and not missing and last > 0 and n >= least and n <= most:
            # everything that is not missing, on the left
            bw[k] = <double>w
            ba[k] = <double>s
            bat[k] = <int32_t>last
            k += 1
        q.buffered = k
        flush(q, False, False, False, 0)
        k = 0
    return occur


cdef int64_t scan_classes(Search* q, const int64_t* histogram, int64_t n_codes) noexcept nogil:
    """The same for unweighted rows of three classes or more, by the gini index."""
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t* side = q.side
    cdef const int64_t* totals = q.class_totals
    cdef const int64_t* cell
    cdef int64_t node_squares = <int64_t>q.squares
    cdef int64_t n_missing = rows_in(histogram, 0, CLASSES, K)
    cdef int64_t least = q.min_rows
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t missing, code, c, h, old, n, cn, squares, cross, last
    cdef int64_t occur = 0
    cdef int64_t k = 0
    for missing in range(2 if n_missing > 0 else 1):
        begin_pass(q, AT_MOST, missing)
        q.side_is_clear = False
        squares = cross = n = last = occur = 0
        for code in range(0 if missing else 1, n_codes + 1):
            q.buffer_w[k] = <double>n
            q.buffer_a[k] = <double>squares
            q.buffer_b[k] = <double>((node_squares - cross) + (squares - cross))
            q.buffer_at[k] = <int32_t>last
            cell = histogram + code * K
            cn = 0
            for c in range(K):
                h = cell[c]
                old = side[c]
                squares += h * (2 * old + h)
                cross += h * totals[c]
                side[c] = old + h
                cn += h
            k += (cn > 0) & (last > 0) & (n >= least) & (n <= most)
            last = code if cn > 0 else last
            occur += cn > 0
            n += cn
            if k == BUFFER:
                q.buffered = k
                flush(q, False, True, False, 0)
                k = 0
        if n_missing > 0 and not missing and last > 0 and n >= least and n <= most:
            q.buffer_w[k] = <double>n
            q.buffer_a[k] = <double>squares
            q.buffer_b[k] = <double>((node_squares - cross) + (squares - cross))
            q.buffer_at[k] = <int32_t>last
            k += 1
        q.buffered = k
        flush(q, False, True, False, 0)
        k = 0
    return occur


cdef bint search_histogram(Search* q, const int64_t* histogram, int64_t n_codes, int32_t column,
                           uint32_t last_ordered) noexcept nogil:
    """Search one column; keep its best split in q.split if it beats what is there.

    Returns False when the column is constant in the node. O(n_codes * width), plus the search
    over groups for columns with categories and for statistics that have no loop of their own.
    """
    cdef bint fast_classes = q.mode == CLASSES and q.criterion.impurity == GINI
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t occur, beyond
    cdef Split* split = &q.split
    if last_ordered != ALL_ORDERED or not (fast_classes or q.mode == COUNT or q.mode == SUM
                                           or q.mode == WEIGHTED_SUM):
        groups_of_histogram(q, histogram, n_codes)
        if q.groups.count <= 1:
            return False
        search_groups(q, column, last_ordered)
        return True
    q.best = NONE
    if fast_classes:
        occur = scan_classes(q, histogram, n_codes)
    elif q.mode == COUNT:
        occur = scan_pairs(q, histogram, n_codes, COUNT)
    elif q.mode == SUM:
        occur = scan_pairs(q, histogram, n_codes, SUM)
    else:
        occur = scan_pairs(q, histogram, n_codes, WEIGHTED_SUM)
    if occur <= 1:
        return False
    if not beats(q, column):
        return True
    split.score = q.best
    split.column = column
    split.test = AT_MOST
    split.missing_left = q.best_missing
    split.saw_missing = rows_in(histogram, 0, q.mode, K) > 0
    split.boundary = <uint32_t>q.best_at
    split.boundary_row = -1
    split.beyond = 0
    split.beyond_row = -1
    for beyond in range(q.best_at + 1, n_codes + 1):
        if rows_in(histogram, beyond, q.mode, K) > 0:
            split.beyond = <uint32_t>beyond
            break
    return True
