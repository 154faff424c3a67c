"""The open leaves of a tree, in the order in which they are split.

Which of two comes first does not depend on when they were pushed: the one that gains more, of equal
ones the one that was recorded first. Where a tree may have any number of leaves, the last one is
split first, so that few histograms wait.
"""
import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from dtrees.core.data._memory cimport resize


cdef bint reserve_heap(LeafHeap* heap, int64_t capacity) noexcept nogil:
    """Room for so many leaves; False without memory."""
    return resize(<void**>&heap.leaves, capacity * sizeof(int64_t))


cdef bint comes_before(const LeafHeap* heap, const Leaf* leaves, int64_t first,
                       int64_t second) noexcept nogil:
    """Whether an open leaf is split before another one."""
    cdef const Leaf* a = leaves + first
    cdef const Leaf* b = leaves + second
    if not heap.by_gain:
        return first > second
    if a.split.gain != b.split.gain:
        return a.split.gain > b.split.gain
    return a.node.record < b.node.record


cdef void push_leaf(LeafHeap* heap, const Leaf* leaves, int64_t leaf) noexcept nogil:
    """Put an open leaf into the heap, which has room. O(log open leaves)."""
    cdef int64_t at = heap.n
    cdef int64_t above
    heap.n += 1
    while at > 0:
        above = (at - 1) // 2
        if not comes_before(heap, leaves, leaf, heap.leaves[above]):
            break
        heap.leaves[at] = heap.leaves[above]
        at = above
    heap.leaves[at] = leaf


cdef int64_t pop_leaf(LeafHeap* heap, const Leaf* leaves) noexcept nogil:
    """Take the leaf that is split next from the heap. O(log open leaves)."""
    cdef int64_t first = heap.leaves[0]
    cdef int64_t at = 0
    cdef int64_t below = 1
    cdef int64_t leaf
    heap.n -= 1
    leaf = heap.leaves[heap.n]
    while below < heap.n:
        if (below + 1 < heap.n
                and comes_before(heap, leaves, heap.leaves[below + 1], heap.leaves[below])):
            below += 1
        if not comes_before(heap, leaves, heap.leaves[below], leaf):
            break
        heap.leaves[at] = heap.leaves[below]
        at = below
        below = 2 * at + 1
    heap.leaves[at] = leaf
    return first


def order_of(gains, bint by_gain=True):
    """The order in which leaves of some gains are split, int64 (n,); for tests."""
    cdef int64_t n = len(gains)
    cdef int64_t i
    cdef LeafHeap heap = LeafHeap(NULL, 0, by_gain)
    cdef Leaf* leaves = <Leaf*>calloc(n + 1, sizeof(Leaf))
    found = np.empty(n, dtype=np.int64)
    if leaves == NULL or not reserve_heap(&heap, n + 1):
        free(leaves)
        raise MemoryError
    for i in range(n):
        leaves[i].split.gain = gains[i]
        leaves[i].node.record = i
        push_leaf(&heap, leaves, i)
    for i in range(n):
        found[i] = pop_leaf(&heap, leaves)
    free(leaves)
    free(heap.leaves)
    return found
