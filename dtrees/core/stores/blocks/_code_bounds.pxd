"""Which intervals of a column may hold the best boundary; see _code_bounds.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._search cimport Search

cdef struct IntervalCells:
    # The histogram of the intervals of a column.
    const int64_t* cells
    int64_t count           # of cells, with that of missing values
    uint32_t n_codes
    uint8_t way             # `_code_ways`
    const int64_t* of_class     # class weights, not in the cells; NULL: none

cdef double bound_cells(Search* q, const Layout* layout, const IntervalCells* column,
                        int64_t* scratch, Bounds* bounds, double* best) noexcept nogil
cdef void mark_cells(Search* q, const Layout* layout, const IntervalCells* column,
                     int64_t* scratch, Bounds* bounds, double best, uint64_t* alive) noexcept nogil
