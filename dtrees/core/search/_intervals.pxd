"""Declarations of the bounds of intervals; see _intervals.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._search cimport Search

cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil
cdef void bound_intervals(const Search* q, const uint32_t* last, int64_t count,
                          Bounds* bounds) noexcept nogil
cdef double lowest_best(double best) noexcept nogil
cdef double least_at_end(const Search* q, const Bounds* bounds, double at_end) noexcept nogil
