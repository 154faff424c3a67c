"""Declarations of a packed forest; see _forest_nodes.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t

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

cdef struct ColumnSlots:
    # Of a column, as `fill_nodes` gets them.
    int64_t number
    int64_t code
    int64_t n_codes
    int64_t n_ordered

cdef struct Entry:
    double value
    int64_t output              # of the value in the row that it is added to


cdef class ForestNodes:
    cdef Node* nodes
    cdef Rule* rules                # NULL: every test is `<=` on numbers; otherwise nodes are
    cdef bint with_other            # whether a rule may be `IS_OTHER`
    cdef uint64_t* words
    cdef int64_t n_words
    cdef int64_t* start             # of a tree's inner nodes
    cdef int64_t* first_leaf        # of a tree
    cdef int32_t* root
    cdef int32_t* node_of_leaf
    cdef double* value              # (n_leaves, width); NULL: entries
    cdef Entry** entries            # of each tree
    cdef int64_t* first_entry       # of each leaf in its tree's, and their end behind each tree
    cdef readonly int64_t n_trees
    cdef readonly int64_t n_slots
    cdef readonly int64_t width
