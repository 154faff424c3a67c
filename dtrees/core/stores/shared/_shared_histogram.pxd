"""Histograms and sums of the rows of a shared node; see _shared_histogram.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.search._search cimport Search
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef int64_t number_codes(SharedStore* s, const SharedNode* node,
                          const Column* column) noexcept nogil
cdef bint count_by_cell(SharedStore* s, const SharedNode* node, const Column* column,
                        int64_t width) noexcept nogil
cdef void bins_of_member(SharedStore* s, Search* q, const SharedNode* node, int member,
                         int64_t width) noexcept nogil
cdef bint search_counted(SharedStore* s, const SharedNode* node, int32_t number,
                         uint32_t last_number, int64_t width, uint64_t members,
                         const uint32_t* fill) noexcept nogil
cdef void sum_cells(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void sum_members(SharedStore* s, SharedNode* node) noexcept nogil
