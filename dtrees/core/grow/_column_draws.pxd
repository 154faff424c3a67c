"""A share of the columns, drawn at each node; see _column_draws.pyx."""
from libc.stdint cimport int32_t, uint8_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters


cdef class ColumnDraws:
    cdef double share
    cdef int32_t[::1] order         # of the draws of a node
    cdef uint8_t[:, ::1] drawn      # by child and column

    cdef const uint8_t* draw(self, const TrainParameters* params, const OpenNode* node,
                             int which) noexcept nogil
