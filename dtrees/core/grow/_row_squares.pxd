"""Squares of gradients; see _row_squares.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport int128_t
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode

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
