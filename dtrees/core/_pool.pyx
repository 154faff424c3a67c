"""Memory of growths, which serves one tree after the other."""
from dtrees.core._finish cimport free_growth, new_growth


cdef class Memory:
    """What a thread needs to grow subtrees, one after the other."""

    def __cinit__(self):
        self.growth = new_growth()
        if self.growth == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_growth(self.growth)


cdef class Pool:
    """Memory of trees that were grown, for the next trees of the same table.

    Without it every tree of a forest would have its memory mapped, and filled with zeros, anew. It
    holds as much as threads grow trees at the same time. Copies and pickles of it are empty.
    """

    def __init__(self):
        self.unused = []

    def __reduce__(self):
        return Pool, ()

    cdef Memory take(self):
        try:
            return self.unused.pop()
        except IndexError:
            return Memory()

    cdef give_back(self, Memory memory):
        self.unused.append(memory)
