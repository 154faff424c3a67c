"""Declarations of the scan of two classes; see _two_class_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ENTROPY
from dtrees.core.search._search cimport SMALL_WEIGHT, Keyed, Search, by_class, is_bound

cdef void scan_entropy(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                       uint32_t ones, bint close) noexcept nogil
cdef int64_t scan_entropy_of_bins(Search* q, const Keyed* order, int64_t begin,
                                  int64_t end) noexcept nogil
cdef void scan_two_classes(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                           uint32_t ones, bint distinct) noexcept nogil
cdef double lost_of_entropy(const Search* q) noexcept nogil


cdef inline bint has_small_entropy(const Search* q) noexcept nogil:
    """Whether a node has the entropy of two classes, products of whose weights fit 64 bits, and
    no constraints."""
    return (by_class(q) and q.criterion.n_classes == 2 and q.criterion.impurity == ENTROPY
            and q.totals.weight < SMALL_WEIGHT and not is_bound(q)
            and PATH_IS_ON("entropy_of_two_classes"))
