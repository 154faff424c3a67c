"""Memory of growths, which serves one tree after the other."""
cimport cython

from dtrees.core.grow._depth_first cimport free_growth, new_growth


cdef class GrowthMemory:
    """What a thread needs to grow subtrees, one after the other."""

    def __cinit__(self):
        self.growth = new_growth()
        if self.growth == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_growth(self.growth)


cdef class Arena:
    """Memory of trees that were grown, for the next trees.

    Without it every tree of a forest would have its memory mapped, and filled with zeros, anew. It
    holds as much as threads grow trees at the same time. Copies and pickles of it are empty.
    """

    def __init__(self):
        self.unused = []

    def __reduce__(self):
        return Arena, ()

    cdef GrowthMemory take(self):
        try:
            return self.unused.pop()
        except IndexError:
            return GrowthMemory()

    cdef give_back(self, GrowthMemory memory):
        self.unused.append(memory)


@cython.final
@cython.no_gc_clear
cdef class ArenaLease:
    """What a tree has grown into, for those who read it where it is.

    While somebody does, the memory serves no other tree; then it goes back to its arena.
    """

    def __cinit__(self, Arena arena, GrowthMemory memory):
        self.arena = arena
        self.memory = memory

    def __dealloc__(self):
        self.arena.give_back(self.memory)
