"""Scans of one number per row; see _number_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._structs cimport entry_t
from dtrees.core.search._search cimport Search

cdef void scan_numbers(Search* q, const entry_t* entries, int64_t begin, int64_t end, bint down,
                       bint distinct) noexcept nogil
cdef double least_reaching(const Search* q) noexcept nogil
cdef bint look_at(Search* q, const entry_t* entries, int64_t at, int64_t w, int64_t s, bint down,
                  bint by_label) noexcept nogil
cdef void scan_squared(Search* q, const uint32_t* entries, int64_t begin,
                       int64_t end) noexcept nogil
