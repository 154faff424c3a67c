"""Boundaries that are scored by absolute errors; see _absolute_scan.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, entry_t
from dtrees.core.histogram._totals cimport Median
from dtrees.core.search._absolute_errors cimport AbsoluteErrors
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search

cdef void place_rows(Search* q, const RowStatistics* of_row, const uint32_t* rows,
                     const OpenNode* node, int64_t n_rows) noexcept nogil
cdef void place_bins(Search* q, const entry_t* entries,
                     const PresortedFeature* feature) noexcept nogil
cdef void median_of_bin(const Search* q, const AbsoluteErrors* e, int64_t g,
                        Median* m) noexcept nogil
cdef void scan_absolute(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                        bint down) noexcept nogil
