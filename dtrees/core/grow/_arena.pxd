"""Declarations of the pool; see _arena.pyx."""
from dtrees.core.grow._depth_first cimport Growth


cdef class Memory:
    cdef Growth* growth


cdef class Pool:
    cdef list unused

    cdef Memory take(self)
    cdef give_back(self, Memory memory)


cdef class Lease:
    cdef Pool pool
    cdef Memory memory
