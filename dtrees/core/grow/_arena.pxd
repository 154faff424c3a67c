"""Declarations of the arena; see _arena.pyx."""
from dtrees.core.grow._depth_first cimport Growth


cdef class GrowthMemory:
    cdef Growth* growth


cdef class Arena:
    cdef list unused

    cdef GrowthMemory take(self)
    cdef give_back(self, GrowthMemory memory)


cdef class ArenaLease:
    cdef Arena arena
    cdef GrowthMemory memory
