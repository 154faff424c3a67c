"""Declarations of the leaves of a packed forest; see _forest_leaves.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.predict._forest_nodes cimport Entry, ForestNodes
from dtrees.core.predict._grown_trees cimport Grown

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
cdef Entry* entries_of(const Grown* tree, const int32_t* node_of_leaf, int64_t n_leaves,
                       int64_t* first) noexcept nogil


cdef inline void add_entries(const Entry* entries, int64_t begin, int64_t end,
                             double* total) noexcept nogil:
    """Add the values of one leaf to those of one row."""
    cdef int64_t k
    for k in range(begin, end):
        total[entries[k].output] += entries[k].value
