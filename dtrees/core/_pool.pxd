"""Declarations of the pool; see _pool.pyx."""
from dtrees.core._finish cimport Growth


cdef class Memory:
    cdef Growth* growth


cdef class Pool:
    cdef list unused

    cdef Memory take(self)
    cdef give_back(self, Memory memory)


cdef class Lease:
    cdef Pool pool
    cdef Memory memory
