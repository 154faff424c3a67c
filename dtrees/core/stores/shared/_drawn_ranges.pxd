"""Splits drawn from ranges of shared nodes; see _drawn_ranges.pyx."""
from libc.stdint cimport int32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.stores._store cimport Member
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cpdef enum:
    MOST_COUNTED = 65_536   # codes of a column that may be counted one by one


cdef bint is_drawn_by_range(const SharedStore* s, const SharedNode* node,
                            const Column* column) noexcept nogil
cdef bint search_ranges(SharedStore* s, const SharedNode* node, int32_t number,
                        uint64_t members) noexcept nogil
cdef void find_neighbours(const SharedNode* node, const Column* column, Member* members,
                          uint64_t together) noexcept nogil
