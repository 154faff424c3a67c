"""Records of the trees of a model; see _grown_records.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.grow._node_buffer cimport NodeBuffer

cdef struct Place:
    # Of a tree among the others.
    int64_t n_nodes
    double unit

cdef class GrownRecords:
    cdef int n_statistics
    cdef NodeBuffer out
    cdef Place* trees
    cdef readonly int64_t n_trees
    cdef int64_t capacity
    cdef int64_t* stack
    cdef int64_t* position      # of the records of a tree
    cdef int64_t room           # of both

    cdef bint add(self, const NodeBuffer* tree, double unit) noexcept nogil
    cdef bint _has_room(self, const NodeBuffer* tree) noexcept nogil
