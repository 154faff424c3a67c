"""Declarations of the scan of two classes; see _two_class_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._search cimport Search

cdef void scan_entropy(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                       uint32_t ones) noexcept nogil
cdef void scan_two_classes(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                           uint32_t ones, bint distinct) noexcept nogil
