"""Declarations of the scan by squared error; see _squared_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._search cimport Search

cdef void scan_squared(Search* q, const uint32_t* entries, int64_t begin,
                       int64_t end) noexcept nogil
