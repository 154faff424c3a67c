"""When the search of a node may end: at a split that no other can beat."""
import numpy as np

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._structs cimport ENTROPY, GINI, SQUARED, Totals
from dtrees.core.histogram._layout cimport CLASSES, COUNT, SUM, has_classes
from dtrees.core.search._criterion cimport squared_score, xlogx
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport NONE, Search

cdef enum:
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below
    FEW_ROWS = 10           # of a regression, whose best split of all is looked for


cdef double perfect_score(const Search* q, const TrainParameters* params, const OpenNode* node,
                          const uint32_t* rows) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure, or few rows: columns that do not come before one that reaches it are passed
    over. A side adds f(l) of its classes less f of their sum to an entropy, at most 0: roundings of
    f(x) = x log x keep f(a) + f(b) <= f(a + b), as f(1) is 0 and f(a + b) is greater by 1.38.

    rows : of the node, NULL where they are not listed.
    """
    cdef const Totals* t = &node.totals
    if params.layout.kind == COUNT and t.weight < EXACT_WEIGHT:
        return squared_score(<double>t.weight, <double>t.target, <double>t.target,
                             <double>(t.weight - t.target), <double>t.target)
    if (params.layout.kind == CLASSES and params.criterion.impurity == GINI
            and t.weight < EXACT_WEIGHT):
        return <double>t.weight
    if (has_classes(params.layout.kind) and params.criterion.impurity == ENTROPY
            and t.weight < EXACT_WEIGHT):
        return <double>(xlogx(q.criterion, t.weight) - q.entropy)
    if params.layout.kind == SUM and params.criterion.impurity == SQUARED and t.n == 2:
        return -1.0
    if (params.layout.kind == SUM and params.criterion.impurity == SQUARED and rows != NULL
            and t.n <= FEW_ROWS):
        return best_of_orders(q, t, rows)
    return 1e300


cdef double best_of_orders(const Search* q, const Totals* t, const uint32_t* rows) noexcept nogil:
    """The best score of a few rows of weight 1, in whatever order a column has them.

    Of k rows on the left, the score is a convex function of their sum, and rounding keeps the order
    of doubles: none scores more than the k rows of least or of greatest target (Fisher 1958).
    """
    cdef int64_t[FEW_ROWS] y
    cdef int64_t least = max(q.min_rows, q.min_weight, 1)
    cdef int64_t low = 0
    cdef int64_t i, k, x
    cdef double W = <double>t.weight
    cdef double S = <double>t.target
    cdef double best = NONE
    cdef double left, right
    for i in range(t.n):
        x = q.of_row.target[rows[i]]
        k = i
        while k > 0 and y[k - 1] > x:
            y[k] = y[k - 1]
            k -= 1
        y[k] = x
    for k in range(1, t.n):
        low += y[k - 1]
        if k < least or t.n - k < least:
            continue
        left = squared_score(W, S, <double>k, W - <double>k, <double>low)
        right = squared_score(W, S, W - <double>k, <double>k, <double>(t.target - low))
        best = max(best, left, right)
    return best


cdef int64_t work_of_bins(const Search* q) noexcept nogil:
    """What the search of a column with categories costs, in entries, about."""
    cdef int64_t K = q.criterion.n_classes if q.criterion.n_classes > 2 else 1
    cdef int64_t work = q.bins.count * K
    if K == 1:
        return work + 64
    if q.bins.count <= 11:
        return work * (1024 // 11)
    return work * 4 + 64 * (K + (work if work < q.totals.n else q.totals.n))


def best_of_few_rows(const int64_t[::1] target, int64_t min_rows=1, int64_t min_weight=1):
    """The score that no split of some rows of weight 1 can beat, by their squared error.

    Parameters
    ----------
    target : int64 (n_rows,)
        Of at most 10 rows.
    min_rows, min_weight : int, default=1
        Of both sides.

    Returns
    -------
    float
        -1e290 where no split is permitted.
    """
    cdef int64_t[::1] own = np.array(target)
    cdef uint32_t[::1] rows = np.arange(len(target), dtype=np.uint32)
    cdef Search q
    cdef Totals t
    if not 0 < len(target) <= FEW_ROWS:
        raise ValueError(f"{len(target)} rows")
    memset(&q, 0, sizeof(Search))
    memset(&t, 0, sizeof(Totals))
    q.of_row.target = &own[0]
    q.min_rows = min_rows
    q.min_weight = min_weight
    t.n = t.weight = len(target)
    t.target = np.sum(target)
    return best_of_orders(&q, &t, &rows[0])
