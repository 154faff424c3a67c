"""Declarations of the search by groups; see _groups.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core._search cimport Search
from dtrees.core._structs cimport Run, entry_t

cdef bint reserve_groups(Search* q, int64_t count) noexcept nogil
cdef int64_t append_group(Search* q, uint32_t rank, int64_t row) noexcept nogil
cdef void collect_groups(Search* q, const entry_t* entries, const Run* run) noexcept nogil
cdef void rest_to_group(Search* q, int64_t rest) noexcept nogil
cdef void drop_group(Search* q, int64_t gone) noexcept nogil
cdef void search_groups(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil
cdef void clear_subset(Search* q) noexcept nogil
cdef void keep_best(Search* q, int32_t column, int64_t first, int64_t last) noexcept nogil


cdef inline void add_to_subset(Search* q, uint32_t rank) noexcept nogil:
    q.subset[rank >> 6] |= <uint64_t>1 << (rank & 63)
