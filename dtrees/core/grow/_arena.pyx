"""Memory of growths, which serves one tree after the other."""
cimport cython

from libc.string cimport memset

from dtrees.core.grow._depth_first cimport free_growth, new_growth
from dtrees.core.grow._node_buffer cimport free_node_buffer


cdef class GrowthMemory:
    """What a thread needs to grow subtrees, one after the other."""

    def __cinit__(self):
        self.growth = new_growth()
        if self.growth == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_growth(self.growth)


cdef class RecordMemory:
    """Records of a tree."""

    def __dealloc__(self):
        free_node_buffer(&self.records)


cdef class Arena:
    """Memory of trees that were grown, for the next trees.

    Without it every tree of a forest would have its memory mapped, and filled with zeros, anew. It
    holds as much as threads grow trees at the same time. Copies and pickles of it are empty.

    Parameters
    ----------
    lends_records : bool, default=True
        False: records of training sets that grow together are freed as soon as their trees are
        made. No other trees come that would use them, and so many at once take a lot.
    """

    def __init__(self, bint lends_records=True):
        self.unused = []
        self.unused_records = []
        self.lends_records = lends_records

    def __reduce__(self):
        return Arena, (self.lends_records,)

    cdef GrowthMemory take(self):
        try:
            return self.unused.pop()
        except IndexError:
            return GrowthMemory()

    cdef give_back(self, memory):
        """Keep a `GrowthMemory`, or a `RecordMemory` if it is lent again, for the next tree."""
        if isinstance(memory, GrowthMemory):
            self.unused.append(memory)
        elif self.lends_records:
            self.unused_records.append(memory)

    cdef NodeBuffer take_records(self):
        """Room for the records of a tree, which may be empty."""
        cdef NodeBuffer found
        cdef RecordMemory memory
        memset(&found, 0, sizeof(NodeBuffer))
        if self.unused_records:
            memory = self.unused_records.pop()
            found = memory.records
            found.count = found.n_words = 0
            found.out_of_memory = False
            memset(&memory.records, 0, sizeof(NodeBuffer))
        return found

    cdef ArenaLease lease_records(self, NodeBuffer* records):
        """A lease of the records of a tree, which are not the caller's any longer."""
        cdef RecordMemory memory = RecordMemory()
        memory.records = records[0]
        memset(records, 0, sizeof(NodeBuffer))
        return ArenaLease(self, memory)


@cython.final
@cython.no_gc_clear
cdef class ArenaLease:
    """What a tree has grown into, for those who read it where it is.

    While somebody does, the memory serves no other tree; then it goes back to its arena.
    """

    def __cinit__(self, Arena arena, memory):
        self.arena = arena
        self.memory = memory

    def __dealloc__(self):
        self.arena.give_back(self.memory)
