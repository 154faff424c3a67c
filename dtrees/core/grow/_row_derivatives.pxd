"""Raw predictions and derivatives of the rows of a fit; see _row_derivatives.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport int128_t
from dtrees.core.grow._team cimport Team
from dtrees.core.losses._derivatives cimport LossRows
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode


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

    cdef int128_t sum_of(self, const uint64_t* derivatives, const uint32_t* rows,
                         int64_t n) noexcept nogil
    cdef void part(self, const uint64_t* derivatives, const uint32_t* rows, OpenNode* lesser,
                   OpenNode* other) noexcept nogil

cdef void bind_categories(Criterion* criterion, RowSquares squares, rules,
                          double row_hessian) noexcept
