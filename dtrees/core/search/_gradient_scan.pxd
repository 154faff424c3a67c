"""The search of ordered columns in cells of gradients; see _gradient_scan.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._search cimport Search

cdef void scan_gradients(Search* q, const Layout* layout, const int64_t* cells, int64_t n_codes,
                         int32_t column) noexcept nogil
cdef void scan_outputs(Search* q, const Layout* layout, const int64_t* cells, int64_t n_codes,
                       int32_t column) noexcept nogil
