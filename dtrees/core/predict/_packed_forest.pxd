"""Declarations of the arrays of trees and of a packed forest; see _packed_forest.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cpdef enum:
    MISSING_LEFT = 1 << 15      # bit of a node's slot
    MOST_SLOTS = 1 << 15
    MOST_CODES = 1 << 16        # in a slot of categories
    CATEGORY = 65533            # instead of a number
    UNSEEN = 65534              # a category that was not there at fit, where it has a side
    MISSING = 65535

cdef struct Node:
    uint16_t slot               # of the code in a row, and MISSING_LEFT
    uint16_t limit              # so many codes go left
    int32_t[2] child            # right, left: an inner node, or the complement of a leaf

cdef struct Rule:
    # The same where tests are of several kinds.
    uint64_t bits               # codes that go left, none of numbers; of wide ones: first word
    int32_t[2] child            # right, left
    uint16_t slot
    uint16_t low                # the first code that goes left
    uint16_t limit              # so many codes do, none of categories
    uint16_t kind

cdef enum Kind:
    IS_SUBSET = 1
    IS_OTHER = 2                # a wide subset, or a comparison whose codes are no stretch
    GONE_LEFT = 4               # where a comparison leads what is missing
    UNSEEN_LEFT = 8
    IS_ABOVE = 16               # a comparison with `>`

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
    int64_t n_outputs
    double unit
    double offset
    const double* units         # of several outputs of numbers; NULL: there is one
    const double* offsets


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


cdef void number_nodes(const Grown* tree, int32_t* number, int32_t* inner,
                       int32_t* node_of_leaf) noexcept nogil

cdef struct Entry:
    double value
    int64_t output              # of the value in the row that it is added to

cdef struct TreeValues:
    # Of the leaves of a tree.
    double* dense               # (n_leaves, width); NULL: entries
    Entry* entries
    int64_t* first              # of each leaf, and their end

cdef struct LeafSums:
    # Sums of the values of leaves; steps count numbers.
    double* cells
    int64_t row_step
    int64_t output_step
    int64_t n_outputs           # that trees of one value have in turn
    int64_t output              # of the first tree


cdef class PackedTrees:
    cdef Node* nodes
    cdef Rule* rules                # NULL: every test is `<=` on numbers; otherwise nodes are
    cdef bint with_other            # whether a rule may be `IS_OTHER`
    cdef uint64_t* words
    cdef int64_t n_words
    cdef int64_t* start             # of a tree's inner nodes
    cdef int64_t* first_leaf        # of a tree
    cdef int32_t* root
    cdef int32_t* node_of_leaf
    cdef TreeValues* values         # of each tree
    cdef readonly int64_t n_trees
    cdef readonly int64_t n_slots
    cdef readonly int64_t width     # values of a leaf
    cdef int64_t n_columns          # of a table
    cdef const int64_t[::1] columns         # of slots of numbers
    cdef const double[::1] thresholds
    cdef const int64_t[::1] first           # threshold of each of these slots

    cdef LeafSums as_totals(self, double[:, :] total, int64_t first_tree) except *


cdef void add_values(PackedTrees forest, int64_t tree, const int32_t* leaves, int64_t n,
                     const LeafSums* to) noexcept nogil
cdef void add_row(PackedTrees forest, const int32_t* leaves, int64_t row,
                  const LeafSums* to) noexcept nogil
