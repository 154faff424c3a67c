"""Scans of rows that add to the fields of several outputs; see _output_scan.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport entry_t
from dtrees.core.search._search cimport Search

cdef extern from "search/outputs.h" nogil:
    int MOST_LANES

cdef void scan_outputs(Search* q, const entry_t* entries, int64_t begin, int64_t end, bint down,
                       bint is_closed) noexcept nogil
cdef void scan_bins_of_outputs(Search* q, int64_t first, int64_t end) noexcept nogil
