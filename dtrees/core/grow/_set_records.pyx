"""What a thread records of several sets: one subtree behind the other, where they stay.

A thread grows the subtrees of several nodes, each of which some sets have::

    set 0    | subtree of node A | subtree of node C | ...
    set 1    | subtree of node A | subtree of node B | subtree of node C | ...

Nothing is copied until a tree is put together. Then the records are lent, set by set: the trees are
made one after the other, and what a set has had is given back when its tree is made.
"""
cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from dtrees.core.grow._arena cimport Arena, RecordMemory
from dtrees.core.grow._node_buffer cimport (
    SUBTREE, NodeBuffer, Record, Stretch, free_node_buffer, lent_tree_of
)


cdef class SetRecords:
    """Records of a thread, by set.

    Parameters
    ----------
    n_sets, n_statistics : int
    arena : Arena
        Has the memory of trees that were grown before.
    """

    def __cinit__(self, int n_sets, int n_statistics, Arena arena):
        self.of_set = <NodeBuffer*>calloc(n_sets, sizeof(NodeBuffer))
        self.begun = <Stretch*>calloc(n_sets, sizeof(Stretch))
        self.n_sets, self.n_statistics, self.arena = n_sets, n_statistics, arena
        if self.of_set == NULL or self.begun == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int s
        for s in range(self.n_sets if self.of_set != NULL else 0):
            free_node_buffer(&self.of_set[s])
        free(self.of_set)
        free(self.begun)

    cdef use_pages(self):
        """Let records have pages of their own, where nobody uses their memory again: what was freed
        in the heap of a thread, only this thread can use."""
        self.in_pages = not self.arena.lends_records

    cdef begin(self):
        """Begin a subtree of each set."""
        cdef NodeBuffer* out
        cdef int s
        for s in range(self.n_sets):
            out = &self.of_set[s]
            if out.capacity == 0:
                out[0] = self.arena.take_records()
                out.in_pages = self.in_pages
            self.begun[s].first, self.begun[s].first_word = out.count, out.n_words

    cdef Subtree end(self, int s):
        """The subtree that a set has got since; MemoryError where there was none for it."""
        cdef NodeBuffer* out = &self.of_set[s]
        cdef Subtree found = Subtree()
        if out.out_of_memory:
            raise MemoryError
        found.records, found.s, found.stretch = self, s, self.begun[s]
        found.n_statistics = self.n_statistics
        found.stretch.end, found.stretch.end_word = out.count, out.n_words
        with nogil:
            count_from(out.nodes, &found.stretch)
        return found

    cdef lend(self):
        """Lend the records of all subtrees that have ended; no others begin."""
        cdef int s
        self.leases = [self.arena.lease_records(&self.of_set[s]) for s in range(self.n_sets)]


@cython.final
cdef class Subtree:
    """Of a set, in its records, which are given back when no subtree and no piece is left."""

    cdef take_lease(self):
        """When the records are lent: those of other sets are given back without these."""
        self.lease = self.records.leases[self.s]
        self.records = None

    def piece(self):
        """The subtree as a `PartialTree`."""
        return lent_tree_of(&(<RecordMemory>self.lease.memory).records, &self.stretch,
                            self.n_statistics, self.lease)


cdef void count_from(Record* nodes, const Stretch* some) noexcept nogil:
    """Let the numbers in the records of a subtree count from its first record, and word."""
    cdef int32_t first = <int32_t>some.first
    cdef int32_t first_word = <int32_t>some.first_word
    cdef int64_t i
    if first == 0 and first_word == 0:
        return
    for i in range(some.first, some.end):
        if nodes[i].column != SUBTREE and nodes[i].left >= 0:
            nodes[i].left -= first
            nodes[i].right -= first
        if nodes[i].subset >= 0:
            nodes[i].subset -= first_word
