"""Rows and columns that boosted trees draw; see _boosted_draws.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals
from dtrees.core.grow._node_buffer cimport Record
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._partition cimport Route


cdef class RowDraws:
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_drawn
    cdef uint32_t[::1] rows         # those that are drawn, then the others, both ascending
    cdef uint32_t[::1] scratch
    cdef const uint32_t[::1] chosen


cdef class ColumnDraws:
    cdef double share
    cdef int32_t[::1] order         # of the draws of a node
    cdef uint8_t[:, ::1] drawn      # by child and column

    cdef const uint8_t* draw(self, const TrainParameters* params, const OpenNode* node,
                             int which) noexcept nogil


cdef void add_drawn(RowDraws draws, const uint64_t* derivatives, Totals* totals) noexcept nogil
cdef Route route_of_others(Record* record, const Column* column,
                           const uint64_t* words) noexcept nogil
