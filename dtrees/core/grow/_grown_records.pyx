"""The records of the trees of a model, tree behind tree, until it has grown.

A tree is recorded in the order in which its leaves were split. Here it is put in preorder at once,
behind those before it. The arrays of all trees are made in one go, so that a tree which has grown
costs a copy of its records and no object::

    trees       0                1            2
    nodes       0 1 2 3 4 5 6    0 1 2        0 1 2 3 4      children: numbers in their tree
    words       ──────────────────────▶                      subsets: offsets in all words
"""
import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees.core.data._memory cimport resize
from dtrees.core.grow._leaf_wise cimport LeafWiseGrower
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, copy_words, free_node_buffer, reserve_records
)

from dtrees.core.grow.node_record import RECORD, RecordsOfTrees


cdef class GrownRecords:
    """Trees that were grown leaf by leaf.

    Attributes
    ----------
    n_trees : int
    """

    def __cinit__(self):
        self.n_statistics = 2

    def __dealloc__(self):
        free_node_buffer(&self.out)
        free(self.trees)
        free(self.stack)
        free(self.position)

    def append(self, LeafWiseGrower grower not None, double unit=1.0):
        """The tree that was grown last, as its records are now; `unit` of its second statistic."""
        cdef bint has_memory
        with nogil:
            has_memory = self.add(&grower.out, unit)
        if not has_memory:
            raise MemoryError

    cdef bint add(self, const NodeBuffer* tree, double unit) noexcept nogil:
        """Copy the records of a tree in preorder; False without memory. O(nodes)."""
        cdef int64_t S = self.n_statistics
        cdef int64_t first = self.out.count
        cdef int64_t n_words = self.out.n_words
        cdef int64_t depth = 1
        cdef int64_t n = 0
        cdef int64_t i
        cdef Record* record
        if not self._has_room(tree):
            return False
        if tree.n_words > 0 and copy_words(&self.out, tree.words, tree.n_words) < 0:
            return False
        self.stack[0] = 0
        while depth > 0:
            depth -= 1
            i = self.stack[depth]
            self.position[i] = n
            self.out.nodes[first + n] = tree.nodes[i]
            memcpy(self.out.statistics + S * (first + n), tree.statistics + S * i,
                   S * sizeof(int64_t))
            n += 1
            if tree.nodes[i].left >= 0:
                self.stack[depth] = tree.nodes[i].right
                self.stack[depth + 1] = tree.nodes[i].left
                depth += 2
        for i in range(first, first + n):
            record = self.out.nodes + i
            if record.left >= 0:
                record.left = self.position[record.left]
                record.right = self.position[record.right]
            if record.subset >= 0:
                record.subset += n_words
        self.out.count += n
        self.trees[self.n_trees] = Place(n, unit)
        self.n_trees += 1
        return True

    cdef bint _has_room(self, const NodeBuffer* tree) noexcept nogil:
        """Room for one more tree."""
        cdef int64_t room = 2 * tree.count + 64
        cdef int64_t capacity = 2 * self.n_trees + 64
        if tree.count > self.room:
            if not (resize(<void**>&self.stack, room * sizeof(int64_t))
                    and resize(<void**>&self.position, room * sizeof(int64_t))):
                return False
            self.room = room - 1            # the stack has a place more
        if self.n_trees == self.capacity:
            if not resize(<void**>&self.trees, capacity * sizeof(Place)):
                return False
            self.capacity = capacity
        return reserve_records(&self.out, tree.count, self.n_statistics)

    def take(self):
        """All trees so far, as `RecordsOfTrees`; there are none then."""
        cdef int64_t n = self.out.count
        nodes = np.empty(n, dtype=RECORD)
        statistics = np.empty((n, self.n_statistics), dtype=np.int64)
        words = np.empty(self.out.n_words, dtype=np.uint64)
        cdef uint8_t[::1] raw_nodes = nodes.view(np.uint8)
        cdef int64_t[:, ::1] of_node = statistics
        cdef uint8_t[::1] raw_words = words.view(np.uint8)
        cdef int64_t[::1] n_nodes = np.empty(self.n_trees, dtype=np.int64)
        cdef double[::1] units = np.empty(self.n_trees)
        cdef int64_t i
        for i in range(self.n_trees):
            n_nodes[i], units[i] = self.trees[i].n_nodes, self.trees[i].unit
        if n > 0:
            memcpy(&raw_nodes[0], self.out.nodes, n * sizeof(Record))
            memcpy(&of_node[0, 0], self.out.statistics, statistics.nbytes)
        if self.out.n_words > 0:
            memcpy(&raw_words[0], self.out.words, words.nbytes)
        self.out.count = self.out.n_words = self.n_trees = 0
        return RecordsOfTrees(nodes, statistics, words, np.asarray(n_nodes), np.asarray(units))
