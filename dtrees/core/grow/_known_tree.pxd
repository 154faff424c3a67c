"""Trees that are known; see _known_tree.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport KnownTest
from dtrees.core.grow._node_buffer cimport NodeBuffer, Record
from dtrees.core.grow._variants cimport NUMBER_BITS, Variants
from dtrees.core.search._parameters cimport TrainParameters

cdef enum Fate:             # of a known node, under the limits of the tree that grows
    ENDS                    # it is a leaf there
    MOVED                   # its test is not allowed; a variant of it is its subtree
    STANDS                  # its test is the one, and whatever stands below it is known
    TORN                    # its test is the one; something below it has to be searched
    OPEN                    # its test is not allowed: it has to be searched

cdef struct Known:
    # A tree in preorder, of the same rows.
    const Record* nodes
    const int64_t* statistics   # (n_nodes, n_statistics)
    const uint64_t* words
    const Column* columns
    int64_t n_statistics
    bint by_class           # statistics are weights of classes
    uint8_t* fate           # by node that was looked at
    int32_t* depth          # by the same
    int32_t* place          # scratch of `judge`; then by right child the record of its parent
    const int64_t* variant  # by node, as in `PartialTree`
    int64_t n_noted         # nodes that have one stored: the first ones
    Variants** variants         # by number, from `first_number` on, those that have the limits of
    int64_t first_number        # the tree that grows; else NULL
    int64_t n_numbers


cdef class KnownTree:
    cdef Known tree
    cdef int64_t n_nodes
    cdef const uint8_t[::1] nodes       # what the tree's pointers point to
    cdef const int64_t[:, ::1] statistics
    cdef const uint64_t[::1] words
    cdef const int64_t[::1] variant
    cdef int64_t max_depth, min_samples_split   # that it has grown with,
    cdef double min_decrease

    cdef judge(self, const TrainParameters* params, int64_t depth)

cdef void test_of(const Known* tree, int64_t node, KnownTest* test) noexcept nogil
cdef int64_t copy_node(NodeBuffer* out, const Known* tree, int64_t node) noexcept nogil
cdef int64_t copy_subtree(NodeBuffer* out, const Known* tree, int64_t top, int64_t parent,
                          bint is_left) noexcept nogil


cdef inline int64_t variant_of(const Known* tree, int64_t node) noexcept nogil:
    """What a node is under narrower limits, as in `PartialTree`."""
    return tree.variant[node] if node < tree.n_noted else -1


cdef inline const Variants* variants_with(const Known* tree, int64_t variant) noexcept nogil:
    """Those that have a variant, if it is of the tree that grows; else NULL."""
    cdef int64_t i = (variant >> NUMBER_BITS) - tree.first_number
    return NULL if variant < 0 or i < 0 or i >= tree.n_numbers else tree.variants[i]


cdef inline void link(NodeBuffer* out, int64_t record, int64_t parent, bint is_left) noexcept nogil:
    """Make a record the child of another one; -1: it is a root."""
    if parent < 0 or record < 0:
        return
    if is_left:
        out.nodes[parent].left = record
    else:
        out.nodes[parent].right = record
