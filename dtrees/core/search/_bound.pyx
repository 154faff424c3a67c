"""When the search of a node may end: at a split that no other can beat."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport ENTROPY, GINI, SQUARED, Totals
from dtrees.core.histogram._layout cimport CLASSES, COUNT, SUM, has_classes
from dtrees.core.search._criterion cimport squared_score, xlogx
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search

cdef enum:
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below


cdef double perfect_score(const Search* q, const TrainParameters* params,
                          const OpenNode* node) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure: columns that do not come before one that reaches it are passed
    over. A side adds f(l) of its classes less f of their sum to an entropy, at most 0: roundings of
    f(x) = x log x keep f(a) + f(b) <= f(a + b), as f(1) is 0 and f(a + b) is greater by 1.38.
    """
    cdef const Totals* t = &node.totals
    if params.layout.kind == COUNT and t.weight < EXACT_WEIGHT:
        return squared_score(t.weight, t.target, t.target, t.target)
    if (params.layout.kind == CLASSES and params.criterion.impurity == GINI
            and t.weight < EXACT_WEIGHT):
        return <double>t.weight
    if (has_classes(params.layout.kind) and params.criterion.impurity == ENTROPY
            and t.weight < EXACT_WEIGHT):
        return <double>(xlogx(q.criterion, t.weight) - q.entropy)
    if params.layout.kind == SUM and params.criterion.impurity == SQUARED and t.n == 2:
        return -1.0
    return 1e300


cdef int64_t work_of_bins(const Search* q) noexcept nogil:
    """What the search of a column with categories costs, in entries, about."""
    cdef int64_t K = q.criterion.n_classes if q.criterion.n_classes > 2 else 1
    cdef int64_t work = q.bins.count * K
    if K == 1:
        return work + 64
    if q.bins.count <= 11:
        return work * (1024 // 11)
    return work * 4 + 64 * (K + (work if work < q.totals.n else q.totals.n))
