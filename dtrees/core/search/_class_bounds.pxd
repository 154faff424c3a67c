"""Declarations of bounds for several classes; see _class_bounds.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._search cimport Search

cdef void bound_classes(const Search* q, const uint32_t* last, int64_t count,
                        Bounds* bounds) noexcept nogil
cdef double lost_of_entropy(const Search* q) noexcept nogil
