"""Leaves of a tree that grows, and a heap of the open ones; see _leaf_heap.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport Split
from dtrees.core.search._open_node cimport OpenNode

cdef struct Leaf:
    OpenNode node
    Split split             # the best one, as its search left it
    bint is_open            # it has a split, which gains something
    int64_t rest_start      # rows[rest_start .. rest_start + rest_n) are there, and not grown from
    int64_t rest_n

cdef struct LeafHeap:
    int64_t* leaves         # numbers; the one that is split next comes first
    int64_t n
    bint by_gain            # otherwise the last leaf is split first


cdef bint reserve_heap(LeafHeap* heap, int64_t capacity) noexcept nogil
cdef void push_leaf(LeafHeap* heap, const Leaf* leaves, int64_t leaf) noexcept nogil
cdef int64_t pop_leaf(LeafHeap* heap, const Leaf* leaves) noexcept nogil
