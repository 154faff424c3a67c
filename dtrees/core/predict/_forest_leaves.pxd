"""Declarations of the values of leaves; see _forest_leaves.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.predict._forest_nodes cimport Grown

cdef struct Entry:
    double value
    int64_t output              # of the value in the row that it is added to

cdef struct TreeValues:
    # Of the leaves of a tree.
    double* dense               # (n_leaves, width); NULL: entries
    Entry* entries
    int64_t* first              # of each leaf, and their end

cdef struct Totals:
    # Sums of the values of leaves; steps count numbers.
    double* cells
    int64_t row_step
    int64_t output_step
    int64_t n_outputs           # that trees of one value have in turn
    int64_t output              # of the first tree


cdef class LeafValues:
    cdef TreeValues* of_tree
    cdef readonly int64_t n_trees
    cdef readonly int64_t width

    cdef bint fill(self, const Grown* tree, int64_t t, const int32_t* node_of_leaf,
                   int64_t n_leaves, bint is_dense) noexcept nogil
    cdef Totals as_totals(self, double[:, :] total, int64_t first_tree) except *


cdef void add_values(LeafValues values, int64_t tree, const int32_t* leaves, int64_t n,
                     const Totals* to) noexcept nogil
cdef void add_row(LeafValues values, const int32_t* leaves, int64_t row,
                  const Totals* to) noexcept nogil
