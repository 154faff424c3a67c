"""Declarations of the arrays of trees; see _grown_trees.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef struct Grown:
    # The arrays of a tree.
    const int32_t* feature
    const int32_t* left
    const int32_t* right
    const uint8_t* test
    const uint32_t* code
    const double* threshold
    const uint8_t* missing_left
    const int64_t* subset
    const uint64_t* words
    const int32_t* narrow       # statistics; NULL: they are wide
    const int64_t* wide
    int64_t n_nodes
    int64_t n_words
    int64_t n_statistics
    bint is_regression
    double weight_unit
    double unit
    double offset


cdef class GrownTrees:
    cdef tuple arrays           # what the pointers lead into
    cdef Grown* trees
    cdef readonly int64_t n_trees
    cdef readonly int64_t n_statistics
    cdef readonly bint is_regression
    cdef readonly object start          # int64 (n_trees + 1,): inner nodes of the trees
    cdef readonly object first_leaf     # int64 (n_trees + 1,)
    cdef readonly object n_compared     # int64 (n_columns,): nodes that compare
    cdef readonly object n_subsets      # int64 (n_columns,)
    cdef readonly bint with_above

    cdef _look_at(self, int64_t t, tree)
    cdef _count(self, int64_t t, int64_t[::1] n_compared, int64_t[::1] n_subsets,
                int64_t* n_inner)


cdef inline int64_t statistic(const Grown* tree, int64_t at) noexcept nogil:
    """One of the statistics, which are (n_nodes, n_statistics)."""
    return tree.wide[at] if tree.narrow == NULL else tree.narrow[at]


cdef int64_t total_of(const Grown* tree, int64_t node) noexcept nogil


cdef inline int64_t n_values_of(const Grown* tree) noexcept nogil:
    return 1 if tree.is_regression else tree.n_statistics


cdef inline double value_of(const Grown* tree, int64_t node, int64_t k,
                            int64_t total) noexcept nogil:
    """Share of class k, or the mean, as `Tree.value` has it; `total` is `total_of` the node."""
    cdef int64_t at = node * tree.n_statistics + k
    if tree.is_regression:
        return (<double>statistic(tree, at + 1) * tree.unit) / (
            <double>total * tree.weight_unit) + tree.offset
    return <double>statistic(tree, at) / <double>total


cdef bint is_heavier_left(const Grown* tree, int64_t node) noexcept nogil
cdef void number_nodes(const Grown* tree, int32_t* number, int32_t* inner,
                       int32_t* node_of_leaf) noexcept nogil
