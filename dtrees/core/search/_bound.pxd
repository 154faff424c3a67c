"""When the search of a node may end; see _bound.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, comes_first


cdef double perfect_score(const Search* q, const TrainParameters* params,
                          const OpenNode* node) noexcept nogil
cdef int64_t work_of_bins(const Search* q) noexcept nogil


cdef inline bint cannot_win(const Search* q, double perfect, int32_t column) noexcept nogil:
    """Whether a column that was not searched yet is at best as good as the split that there is, and
    comes after it."""
    return (q.split.test != LEAF and q.split.score >= perfect
            and not comes_first(q, column, q.split.column))
