"""Declarations of the search by entries; see _entry_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._structs cimport PresortedFeature, entry_t
from dtrees.core.search._search cimport Search

cdef enum:                  # boundaries without an entry to their right, see _entry_scan.pyx
    BEFORE_FILL = -1
    LAST = -2
    NOTHING = -3

cdef void scan(Search* q, const entry_t* entries, int64_t begin, int64_t end, int64_t close,
               bint down, bint distinct, uint32_t ones) noexcept nogil
cdef bint search_feature(Search* q, const entry_t* entries,
                         const PresortedFeature* feature, uint32_t ones) noexcept nogil
cdef void pass_over_short(Search* q) noexcept nogil


cdef inline int64_t first_above(const entry_t* entries, int64_t begin, int64_t end,
                                uint32_t rank) noexcept nogil:
    """Index of the first entry with a rank above `rank`: binary search."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef int64_t middle
    while begin < end:
        middle = (begin + end) >> 1
        if <uint32_t>(entries[middle] >> shift) > rank:
            end = middle
        else:
            begin = middle + 1
    return begin
