"""Histograms by cell; see _shared_blocks.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.search._search cimport Search
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef bint reserve_blocks(SharedStore* s, const SharedNode* node, int64_t width) noexcept nogil
cdef void combine_cells(SharedStore* s, const SharedNode* node) noexcept nogil
cdef bint count_by_cell(SharedStore* s, const SharedNode* node, const Column* column,
                        int64_t width) noexcept nogil
cdef void bins_of_member(SharedStore* s, Search* q, const SharedNode* node, int member,
                         int64_t width) noexcept nogil
