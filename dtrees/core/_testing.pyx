"""Python's views of functions of the kernels, for tests; nothing else imports them."""
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._structs cimport (
    ENTROPY, GINI, POISSON, SQUARED, Inherited, RowStatistics, Totals
)
from dtrees.core.histogram._layout cimport CLASSES, SUM
from dtrees.core.search._bins cimport reserve_bins
from dtrees.core.search._criterion cimport NONE, Criterion
from dtrees.core.search._intervals cimport Bounds, bound_intervals
from dtrees.core.search._parameters cimport Limits
from dtrees.core.search._search cimport Search, begin_column, begin_node, free_search, new_search
from dtrees.core.stores.shared._shared_nodes cimport Partitioning, SharedNode, take_rows

# ---------------------------------------------------------------------------------------------
# core.search

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
              tuple span=(0.0, 1.0), int64_t min_rows=1, impurity="", away=None):
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
    away : (int, int64 (n_intervals,)) or None, default=None
        About the mean of the targets, and sums of their distances from it.

    Returns
    -------
    at_end, inside : float64 (n_intervals,)
        Below -1e289: nothing is permitted.
    """
    cdef Criterion criterion
    cdef Limits limits
    cdef RowStatistics of_row
    cdef Totals totals
    cdef Bounds bounds
    cdef Inherited above
    cdef int K = <int>target.shape[1]
    cdef int64_t first = 0 if last[0] == 0 else 1
    cdef int64_t count = n.shape[0] + first
    cdef int64_t[::1] of_class = np.sum(target, axis=0)
    cdef const uint32_t[::1] ends = np.concatenate([[0] * first, last]).astype(np.uint32)
    cdef Search* q
    cdef int64_t i
    memset(&criterion, 0, sizeof(Criterion))
    memset(&limits, 0, sizeof(Limits))
    memset(&of_row, 0, sizeof(RowStatistics))
    memset(&totals, 0, sizeof(Totals))
    memset(&bounds, 0, sizeof(Bounds))
    memset(&above, 0, sizeof(Inherited))
    criterion.impurity = {"poisson": POISSON, "entropy": ENTROPY}.get(
        impurity, GINI if K > 1 else SQUARED)
    criterion.n_classes = K if K > 1 else 0
    criterion.fixed_point = 2.0**30
    limits.min_rows = min_rows
    q = new_search(&criterion, CLASSES if K > 1 else SUM, of_row, &limits)
    if q == NULL or not reserve_bins(q, count):
        free_search(q)
        raise MemoryError
    totals.n = totals.weight = np.sum(n)
    totals.target = of_class[0]
    fill_bins(q, target, n, first)
    begin_node(q, &totals, &of_class[0], 0, &above)
    begin_column(q, 0)
    bounds.lowest, bounds.highest = span
    bounds.least = 2 * NONE
    if away is not None:
        bounds.has_away, bounds.mean = True, away[0]
        for i in range(n.shape[0]):
            bounds.away[i + first] = away[1][i]
    bound_intervals(q, &ends[0], count, &bounds)
    free_search(q)
    return (np.array([bounds.at_end[i] for i in range(first, count)]),
            np.array([bounds.inside[i] for i in range(first, count)]))


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
