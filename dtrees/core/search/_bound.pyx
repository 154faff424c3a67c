"""When the search of a node may end: at a split that no other can beat."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport GINI, SQUARED, Totals
from dtrees.core.histogram._layout cimport CLASSES, COUNT, SUM
from dtrees.core.search._criterion cimport squared_score
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search

cdef enum:
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below


cdef double perfect_score(const TrainParameters* params, const OpenNode* node) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure, or two rows: columns that do not come before one that reaches it are passed
    over.
    """
    cdef const Totals* t = &node.totals
    if params.layout.kind == COUNT and t.weight < EXACT_WEIGHT:
        return squared_score(<double>t.weight, <double>t.target, <double>t.target,
                             <double>(t.weight - t.target), <double>t.target)
    if (params.layout.kind == CLASSES and params.criterion.impurity == GINI
            and t.weight < EXACT_WEIGHT):
        return <double>t.weight
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
