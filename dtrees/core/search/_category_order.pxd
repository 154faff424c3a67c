"""Declarations of the order of categories; see _category_order.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.search._search cimport Search

cdef bint order_by_component(Search* q, int64_t first, int64_t count) noexcept nogil
