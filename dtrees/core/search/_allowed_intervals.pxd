"""Declarations of what constraints leave of intervals; see _allowed_intervals.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._search cimport Search

cdef void add_up_bins(const Search* q, int64_t count, Bounds* bounds) noexcept nogil
cdef void keep_allowed(const Search* q, Bounds* bounds, bint missing_left,
                       int64_t count) noexcept nogil
cdef void take_allowed(Bounds* bounds, int64_t count) noexcept nogil
