"""Rows of a boosted fit: their derivatives, and draws; see _boosted_rows.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals, int128_t
from dtrees.core.grow._node_buffer cimport Record
from dtrees.core.grow._team cimport Team
from dtrees.core.losses._derivatives cimport LossRows
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._partition cimport Route

cdef class RowDerivatives:
    cdef LossRows rows
    cdef Team team
    cdef readonly object raw        # float64 (n_values, n_rows)
    cdef readonly object packed     # uint64 (n_values, n_rows)
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_values
    cdef object y
    cdef object given               # derivatives that were given
    cdef object weight
    cdef object chosen
    cdef int64_t[:, ::1] sums       # by stretch of rows
    cdef double[:, ::1] of_stretch  # largest ones
    cdef readonly tuple largest
    cdef double[:, ::1] scratch


cdef class RowSquares:
    cdef object weight
    cdef const double* of_row           # weights, or NULL
    cdef bint are_counts
    cdef double heaviest

    cdef int128_t sum_of(self, const uint64_t* derivatives, const uint32_t* rows, int64_t n,
                         int shift) noexcept nogil

cdef void bind_categories(Criterion* criterion, RowSquares squares, rules,
                          double row_hessian) noexcept

cdef class RowDraws:
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_drawn
    cdef uint32_t[::1] rows         # those that are drawn, then the others, both ascending
    cdef uint32_t[::1] scratch
    cdef const uint32_t[::1] chosen
    cdef const uint64_t[::1] numbers    # of the rows, or None


cdef class ColumnDraws:
    cdef double share
    cdef double share_of_tree
    cdef int32_t[::1] order         # of the draws of a node
    cdef uint8_t[:, ::1] drawn      # by child and column
    cdef uint8_t[::1] of_tree       # by column

    cdef void begin_tree(self, const TrainParameters* params) noexcept nogil
    cdef void keep_share(self, const TrainParameters* params, uint64_t path, double share,
                         uint8_t* allowed) noexcept nogil
    cdef const uint8_t* draw(self, const TrainParameters* params, const OpenNode* node,
                             int which) noexcept nogil


cdef void add_drawn(RowDraws draws, const uint64_t* derivatives, Totals* totals) noexcept nogil
cdef Route route_of_others(Record* record, const Column* column,
                           const uint64_t* words) noexcept nogil
