"""Declarations of the search by groups; see _groups.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from dtrees.core._search cimport Search
from dtrees.core._structs cimport Run, entry_t

cdef void reserve_groups(Search* q, int64_t count) noexcept nogil
cdef int64_t append_group(Search* q, uint32_t rank, int64_t row) noexcept nogil
cdef void collect_groups(Search* q, const entry_t* entries, const Run* run) noexcept nogil
cdef void rest_to_group(Search* q, int64_t rest) noexcept nogil
cdef void drop_group(Search* q, int64_t gone) noexcept nogil
cdef void search_groups(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil
cdef void search_random(Search* q, int32_t column, uint32_t last_ordered,
                        const double* value) noexcept nogil
cdef bint toss_missing(const Search* q, int32_t column, bint tossed) noexcept nogil
cdef uint32_t cut_at(const Search* q, int32_t column, uint32_t low, uint32_t high,
                     const double* value) noexcept nogil
