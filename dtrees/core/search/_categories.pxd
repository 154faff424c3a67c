"""Subsets of the categories of a column; see _categories.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.search._search cimport Search, add_bin, begin_pass

cdef bint clear_subset(Search* q) noexcept nogil
cdef void one_versus_rest(Search* q, int64_t begin, bint missing) noexcept nogil
cdef double search_categories(Search* q, int64_t first) noexcept nogil


cdef inline void begin_bins(Search* q, uint8_t test, bint missing) noexcept nogil:
    """Begin a pass over bins; `missing`: bin 0 holds missing values and is on the side."""
    begin_pass(q, test, missing)
    if missing:
        add_bin(q, 0, 1)


cdef inline void add_to_subset(Search* q, uint32_t rank) noexcept nogil:
    q.subset[rank >> 6] |= <uint64_t>1 << (rank & 63)
