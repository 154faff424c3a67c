"""Python's views of functions of the kernels, for tests; nothing else imports them."""
import numpy as np

from libc.stdint cimport int8_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport STORED_SPARSE, Column
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport (
    ALL_ORDERED, ENTROPY, GINI, GRADIENT, LEAF, POISSON, SQUARED, Inherited, RowStatistics, Totals
)
from dtrees.core.histogram._layout cimport CLASSES, GRADIENTS, SUM, CellKind, Layout
from dtrees.core.search._bins cimport reserve_bins, search_histogram
from dtrees.core.search._criterion cimport NONE, Criterion
from dtrees.core.search._gradient_scan cimport scan_gradients
from dtrees.core.search._intervals cimport Bounds, bound_intervals
from dtrees.core.search._parameters cimport Limits
from dtrees.core.search._search cimport (
    Search, begin_column, begin_node, finish_node, free_search, new_search
)
from dtrees.core.stores.boosted._boosted_store cimport (
    Removal, begin_bounds_of, bound_of, common_score, note_searched, removal_of, take_off_sums
)
from dtrees.core.stores.boosted._column_blocks cimport (
    CELL, ColumnBlocks, RowsOfNode, SparseCells, StoredSums, complete_bundled, complete_column,
    count_block, count_by_column, count_by_row, is_out, sum_by_row
)
from dtrees.core.stores.shared._shared_nodes cimport Partitioning, SharedNode, take_rows

cdef extern from "search/squared.h" nogil:
    ctypedef struct NumberScan:
        double W
        double S
        double reach
        bint bounded
        int64_t mean
        int64_t n
        int64_t s
        const int64_t* target
    int64_t next_number(NumberScan*, const uint32_t*, int64_t, int64_t) noexcept
    int STRETCH_OF_NUMBERS

cdef extern from "search/two_classes.h" nogil:
    ctypedef struct TwoClasses:
        double W
        double S
        double reach
        bint bounded
        int64_t n
        int64_t s
        uint32_t ones
        const int64_t* f
    int64_t next_boundary(TwoClasses*, const uint32_t*, int64_t, int64_t, bint) noexcept

# ---------------------------------------------------------------------------------------------
# core.search

cdef class SearchOfNode:
    """The search of a node that stands alone, and what it refers to: all zero at first."""

    cdef Criterion criterion
    cdef Limits limits
    cdef RowStatistics of_row
    cdef Totals totals
    cdef Inherited above
    cdef Search* q

    def __dealloc__(self):
        free_search(self.q)

    cdef Search* begin(self, CellKind kind, const int64_t* class_totals) except NULL:
        self.q = new_search(&self.criterion, kind, self.of_row, &self.limits)
        if self.q == NULL:
            raise MemoryError
        begin_node(self.q, &self.totals, class_totals, 0, &self.above)
        return self.q


cdef void fill_bins(Search* q, const int64_t[:, ::1] target, const int64_t[::1] n,
                    int64_t first) noexcept nogil:
    """Intervals that occur, as bins; `first` is the number of the first one."""
    cdef int64_t K = target.shape[1]
    cdef int64_t i, k
    q.bins.count = 0
    for i in range(n.shape[0]):
        if n[i] > 0:
            q.bins.rank[q.bins.count] = <uint32_t>(i + first)
            q.bins.n[q.bins.count] = q.bins.weight[q.bins.count] = n[i]
            for k in range(K):
                q.bins.target[q.bins.count * K + k] = target[i, k]
            q.bins.count += 1


def bounds_of(const int64_t[:, ::1] target, const int64_t[::1] n, const uint32_t[::1] last,
              tuple span=(0.0, 1.0), int64_t min_rows=1, impurity=""):
    """Scores and bounds of intervals whose rows weigh one each.

    Parameters
    ----------
    target : int64 (n_intervals, 1 or n_classes)
        Sums of targets, or rows of each class, of all intervals in turn.
    n : int64 (n_intervals,)
        Rows.
    last : uint32 (n_intervals,)
        Last code of each; 0 of missing values, if the first one is theirs.
    span : (float, float)
        Least and greatest target.
    min_rows : int
    impurity : {"", "poisson", "entropy"}, default=""
        What is not the squared error, or the Gini index of classes. The fixed point of entropy has
        30 bits.

    Returns
    -------
    at_end, inside : float64 (n_intervals,)
        Below -1e289: nothing is permitted.
    """
    cdef SearchOfNode own = SearchOfNode()
    cdef Bounds bounds
    cdef int K = <int>target.shape[1]
    cdef int64_t first = 0 if last[0] == 0 else 1
    cdef int64_t count = n.shape[0] + first
    cdef int64_t[::1] of_class = np.sum(target, axis=0)
    cdef const uint32_t[::1] ends = np.concatenate([[0] * first, last]).astype(np.uint32)
    cdef Search* q
    cdef int64_t i
    memset(&bounds, 0, sizeof(Bounds))
    own.criterion.impurity = {"poisson": POISSON, "entropy": ENTROPY}.get(
        impurity, GINI if K > 1 else SQUARED)
    own.criterion.n_classes, own.criterion.n_outputs = K if K > 1 else 0, 1
    own.criterion.value_field = 1
    own.criterion.fixed_point = 2.0**30
    own.limits.min_rows = min_rows
    own.totals.n = own.totals.weight = np.sum(n)
    own.totals.target = of_class[0]
    q = own.begin(CLASSES if K > 1 else SUM, &of_class[0])
    if not reserve_bins(q, count):
        raise MemoryError
    fill_bins(q, target, n, first)
    begin_column(q, 0)
    bounds.lowest, bounds.highest = span
    bounds.least = 2 * NONE
    bound_intervals(q, &ends[0], count, &bounds)
    return (np.array([bounds.at_end[i] for i in range(first, count)]),
            np.array([bounds.inside[i] for i in range(first, count)]))


def split_of_cells(const int64_t[:, ::1] sums, int64_t min_rows, int64_t min_weight, double l2,
                   bint by_bins=False, tuple monotonic=None):
    """The best split of a column of gradients.

    Parameters
    ----------
    sums : int64 (n_codes + 1, 3)
        Rows, hessian and gradient of each code.
    by_bins : bool, default=False
        As columns with categories are searched.
    monotonic : (int, float, float) or None, default=None
        Direction of the column, and bounds of the steps.

    Returns
    -------
    dict or None
    """
    cdef SearchOfNode own = SearchOfNode()
    cdef Layout layout
    cdef Search* q
    cdef int64_t n_codes = sums.shape[0] - 1
    cdef int64_t[:, ::1] cells = np.zeros((n_codes + 1, 2), dtype=np.int64)
    cdef int64_t i
    cdef int8_t direction = 0
    memset(&layout, 0, sizeof(Layout))
    own.criterion.impurity, own.criterion.l2, own.criterion.gain_unit = GRADIENT, l2, 1.0
    own.limits.min_rows, own.limits.min_weight = min_rows, min_weight
    layout.kind, layout.n_classes, layout.n_words, layout.shift = GRADIENTS, 0, 2, 40
    if monotonic is not None:
        direction, own.above.lower, own.above.upper = monotonic
        own.above.has_lower = own.above.has_upper = True
        own.limits.monotonic = &direction
        own.limits.scores_by_values = True
    for i in range(n_codes + 1):
        cells[i, 0] = sums[i, 0] << layout.shift | sums[i, 1]
        cells[i, 1] = sums[i, 2]
        own.totals.n += sums[i, 0]
        own.totals.weight += sums[i, 1]
        own.totals.target += sums[i, 2]
    q = own.begin(GRADIENTS, NULL)
    if by_bins:
        search_histogram(q, &layout, &cells[0, 0], n_codes, 0, ALL_ORDERED)
    else:
        scan_gradients(q, &layout, &cells[0, 0], n_codes, 0)
    finish_node(q)
    if q.split.test == LEAF:
        return None
    return {
        "score": q.split.score, "gain": q.split.gain, "boundary": q.split.boundary,
        "beyond": q.split.beyond, "missing_left": q.split.missing_left,
        "saw_missing": q.split.saw_missing,
    }


def boundaries_of_numbers(const int64_t[::1] target, const uint16_t[::1] rank, double reach, *,
                          int64_t before=0):
    """Boundaries whose squared errors reach, as four entries at a time are looked at.

    Parameters
    ----------
    target : int64 (n,)
        Of rows that weigh one each, by ascending rank.
    rank : uint16 (n,)
    reach : float
        At most `NONE`: everything reaches.
    before : int, default=0
        How many rows with a target of 0 lie before the first one.

    Returns
    -------
    list of (row behind the boundary, sum of the targets before it) or None
        None where there are no registers of 256 bits.
    """
    cdef int64_t n = target.shape[0]
    cdef uint32_t[::1] entries = np.full(n + 4, 0xFFFFFFFF, dtype=np.uint32)
    cdef int64_t i, total = np.sum(target)
    cdef NumberScan t
    if not is_wide:
        return None
    for i in range(n):
        entries[i] = <uint32_t>rank[i] << 16 | <uint32_t>i
    t.W, t.S, t.reach = n + before, <double>total, reach
    t.bounded = reach > NONE and STRETCH_OF_NUMBERS * float(np.abs(target).max()) < 2.0**61
    t.n, t.s, t.mean, t.target = before, target[0], total // (n + before), &target[0]
    found = []
    i = next_number(&t, &entries[0], 1, n)
    while i < n:
        found.append((i, t.s))
        t.s += target[i]
        i = next_number(&t, &entries[0], i + 1, n)
    return found


def boundaries_of_labels(const uint8_t[::1] label, const uint16_t[::1] rank, double reach, *,
                         int64_t before=0, bint by_label=False):
    """Boundaries of two classes whose scores reach, as 16 entries at a time are looked at.

    Parameters
    ----------
    label : uint8 (n,)
        Classes 0 and 1; other arguments and what is returned are as in `boundaries_of_numbers`.
    by_label : bool, default=False
        Neighbours of one class are no boundary, and all ranks differ.
    """
    cdef int64_t n = label.shape[0]
    cdef int64_t ones = n - np.sum(label)
    cdef uint32_t[::1] entries = np.zeros(n + 16, dtype=np.uint32)
    cdef int64_t[2] place
    cdef int64_t i
    cdef TwoClasses t
    if not is_wide:
        return None
    place[0], place[1] = 0, ones
    for i in range(n):
        entries[i] = <uint32_t>rank[i] << 16 | <uint32_t>place[label[i]]
        place[label[i]] += 1
    t.W, t.S, t.reach, t.bounded = n + before, n - ones, reach, reach > NONE
    t.n, t.s, t.ones, t.f = before, label[0], <uint32_t>ones, NULL
    found = []
    i = next_boundary(&t, &entries[0], 1, n, by_label)
    while i < n:
        found.append((i, t.s))
        t.s += label[i]
        i = next_boundary(&t, &entries[0], i + 1, n, by_label)
    return found


# ---------------------------------------------------------------------------------------------
# core.stores

def taken_rows(const uint32_t[::1] rows, const uint8_t[::1] cell, const uint8_t[::1] side,
               int wanted, const uint8_t[::1] new_cell, const uint8_t[::1] full):
    """The rows of one side and their cells, as children get them.

    Parameters
    ----------
    rows : uint32 (n,)
    cell : uint8 (n,)
    side : uint8 (n,)
        `LEFT`, `RIGHT`, `BOTH`, or 3, as that of rows nobody has.
    wanted : int
        `LEFT` or `RIGHT`.
    new_cell, full : uint8 (n_cells,)
        What becomes of a cell, and whether somebody has it. At most `MOST_CELLS`.

    Returns
    -------
    rows : uint32 (n_taken,)
    cell : uint8 (n_taken,)
    """
    cdef uint32_t[::1] to_rows = np.empty(len(rows) + 1, dtype=np.uint32)
    cdef uint8_t[::1] to_cell = np.empty(len(rows) + 1, dtype=np.uint8)
    cdef SharedNode node
    cdef SharedNode child
    cdef Partitioning p
    cdef int c
    memset(&node, 0, sizeof(SharedNode))
    node.n, node.n_cells = len(rows), <int>len(full)
    node.rows, node.cell = <uint32_t*>&rows[0], <uint8_t*>&cell[0]
    child.rows, child.cell = &to_rows[0], &to_cell[0]
    for c in range(node.n_cells):
        p.full[c], p.new_cell[c] = full[c], new_cell[c]
    take_rows(&node, &side[0], <uint8_t>wanted, &p, &child)
    return np.asarray(to_rows)[:child.n], np.asarray(to_cell)[:child.n]


def histogram_of(ColumnBlocks blocks not None, int64_t j, rows, const uint64_t[::1] derivatives):
    """Sums by the codes of a column, as its block counts them.

    Parameters
    ----------
    rows : uint32 (n,), ascending, or None
        None: all of them.

    Returns
    -------
    int64 (n_codes + 1, 3)
        Rows, hessian, gradient.
    """
    cdef int64_t shift = 40
    cdef const uint32_t[::1] some
    cdef const uint32_t* first = NULL
    cdef int64_t n = blocks.n_rows
    cdef int64_t b
    cdef int64_t[::1] cells = np.zeros(CELL * blocks.n_cells, dtype=np.int64)
    cdef const SparseCells* stored
    cdef int64_t[:, ::1] memory = np.empty((blocks.n_laid_out + 1, 5), dtype=np.int64)
    cdef StoredSums* sums = <StoredSums*>&memory[0, 0]
    cdef StoredSums* own_sums
    cdef RowsOfNode node
    cdef Totals totals
    if rows is not None:
        some = np.append(rows, np.uint32(0)).astype(np.uint32)  # there may be none
        first = &some[0]
        n = len(rows)
    node = RowsOfNode(first, n, &derivatives[0], <int>shift)
    memset(&totals, 0, sizeof(Totals))
    for row in range(n) if rows is None else rows:
        totals.n += 1
        totals.weight += <int64_t>(derivatives[row] & <uint64_t>0xFFFFFFFF)
        totals.target += <int64_t>derivatives[row] >> 32
    for b in range(blocks.n_blocks):
        if blocks.blocks[b].is_sparse:
            stored = &blocks.blocks[b].stored
            own_sums = sums + (blocks.blocks[b].column - blocks.order)
            if first == NULL:
                count_by_column(stored, blocks.columns, &node, own_sums, &cells[0])
            else:
                sum_by_row(stored, &node, own_sums)
                count_by_row(stored, blocks.columns, &node, own_sums, &cells[0])
        else:
            count_block(&blocks.blocks[b], blocks.columns, first, n, &derivatives[0], <int>shift,
                        &cells[0])
    if blocks.is_bundled[j]:
        complete_bundled(blocks.columns + j, &totals, <int>shift, 0,
                         &cells[CELL * blocks.cell_of_column[j]])
    if blocks.columns[j].storage == STORED_SPARSE:
        own_sums = sums + [blocks.order[k] for k in range(blocks.n_laid_out)].index(j)
        complete_column(blocks.columns + j, own_sums, &totals, <int>shift,
                        &cells[CELL * blocks.cell_of_column[j]])
    begin = CELL * blocks.cell_of_column[j]
    own = np.asarray(cells)[begin:begin + CELL * (blocks.columns[j].n_codes + 1)].reshape(-1, CELL)
    return np.column_stack([own[:, 0] >> shift, own[:, 0] & ((<int64_t>1 << shift) - 1), own[:, 1]])


def scores_of_child(const int64_t[:, ::1] sums, const int64_t[:, ::1] removed, int64_t fill,
                    int64_t min_rows, int64_t min_weight, double l2):
    """The best score of a column once rows are taken off, and what its bound says.

    Parameters
    ----------
    sums : int64 (n_codes + 1, 4)
        Of a node, by code: rows, hessian, gradient, gradient without signs.
    removed : int64 (n_codes + 1, 4)
        Of the rows that leave it.
    fill : int
        Of the column.

    Returns
    -------
    score, bound : float
        -1: there is no boundary; a bound of inf: it was not searched.
    """
    cdef int64_t n_codes = sums.shape[0] - 1
    cdef int shift = 40
    cdef Criterion criterion
    cdef Limits limits
    cdef Layout layout
    cdef RowStatistics of_row
    cdef Column column
    cdef Totals[3] totals        # of the node, of the rows that leave, of the child
    cdef StoredSums[3] of_column
    cdef Removal removal
    cdef Search* q
    cdef int64_t[:, :, ::1] cells = np.zeros((3, n_codes + 1, CELL), dtype=np.int64)
    cdef int64_t code, k
    cdef int64_t[4] of_code
    memset(&criterion, 0, sizeof(Criterion))
    criterion.n_outputs = 1
    memset(&limits, 0, sizeof(Limits))
    memset(&layout, 0, sizeof(Layout))
    memset(&of_row, 0, sizeof(RowStatistics))
    memset(&column, 0, sizeof(Column))
    memset(&totals[0], 0, sizeof(totals))
    memset(&of_column[0], 0, sizeof(of_column))
    criterion.impurity, criterion.l2, criterion.gain_unit = GRADIENT, l2, 1.0
    limits.min_rows, limits.min_weight = min_rows, min_weight
    layout.kind, layout.n_words, layout.shift = GRADIENTS, CELL, shift
    column.n_codes, column.n_ordered = <uint32_t>n_codes, <uint32_t>n_codes
    column.fill = <uint32_t>fill
    for k in range(3):
        for code in range(n_codes + 1):
            for i in range(4):
                of_code[i] = (sums[code, i] if k == 0 else removed[code, i] if k == 1
                              else sums[code, i] - removed[code, i])
            cells[k, code, 0] = of_code[0] << shift | of_code[1]
            cells[k, code, 1] = of_code[2]
            totals[k].n += of_code[0]
            totals[k].weight += of_code[1]
            totals[k].target += of_code[2]
            if code != fill:
                of_column[k].first += <uint64_t>cells[k, code, 0]
                of_column[k].second += <uint64_t>of_code[2]
                of_column[k].size += <uint64_t>of_code[3]
    q = new_search(&criterion, GRADIENTS, of_row, &limits)
    if q == NULL:
        raise MemoryError
    try:
        begin_bounds_of(&of_column[0], 1, shift, min_rows)
        begin_node(q, &totals[0], NULL, 0, NULL)
        scan_gradients(q, &layout, &cells[0, 0, 0], n_codes, 0)
        if not is_out(&of_column[0]):
            note_searched(q, &column, &cells[0, 0, 0], shift, common_score(q), &of_column[0])
        removal = removal_of(q, &totals[1], &totals[2], shift)
        take_off_sums(&removal, &of_column[1], 1, &of_column[0])
        begin_node(q, &totals[2], NULL, 0, NULL)
        scan_gradients(q, &layout, &cells[2, 0, 0], n_codes, 0)
        bound = -1.0
        if not is_out(&of_column[0]):
            bound = bound_of(&of_column[0], common_score(q))
        return (q.best if q.best > NONE else -1.0), bound
    finally:
        free_search(q)
