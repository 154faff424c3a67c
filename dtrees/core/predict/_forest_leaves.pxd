"""Declarations of the leaves of a packed forest; see _forest_leaves.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.predict._forest_nodes cimport ForestNodes

cdef struct Totals:
    # Sums of the values of leaves; steps count numbers.
    double* cells
    int64_t row_step
    int64_t output_step
    int64_t n_outputs           # that trees of one value have in turn
    int64_t output              # of the first tree

cdef Totals as_totals(ForestNodes forest, double[:, :] total, int64_t first_tree) except *
cdef void add_values(ForestNodes forest, int64_t tree, const int32_t* leaves, int64_t n,
                     const Totals* to) noexcept nogil
cdef void add_row(ForestNodes forest, const int32_t* leaves, int64_t row,
                  const Totals* to) noexcept nogil
