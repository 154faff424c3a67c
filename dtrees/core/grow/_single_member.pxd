"""Declarations of sets that leave a shared node; see _single_member.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.grow._depth_first cimport Growth

cdef bint begin_member(Growth* growth, Buffers* view, SharedStore* s, const SharedNode* node,
                       int member) noexcept nogil
cdef bint reserve_weights(Buffers* view, const RowStatistics* of_row, bint by_class) noexcept nogil
cdef void free_view(Buffers* view, bint owns_weights) noexcept nogil
cdef void weigh_rows(Buffers* view, int64_t n, const RowStatistics* of_row,
                     const int64_t* of_class) noexcept nogil
cdef void list_rows(Buffers* view, const SharedNode* node, int member) noexcept nogil
