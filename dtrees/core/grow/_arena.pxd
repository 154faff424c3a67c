"""Declarations of the arena; see _arena.pyx."""
from dtrees.core.grow._depth_first cimport Growth
from dtrees.core.grow._node_buffer cimport NodeBuffer


cdef class GrowthMemory:
    cdef Growth* growth


cdef class RecordMemory:
    cdef NodeBuffer records


cdef class Arena:
    cdef list unused
    cdef list unused_records
    cdef readonly bint lends_records

    cdef GrowthMemory take(self)
    cdef give_back(self, memory)
    cdef NodeBuffer take_records(self)
    cdef ArenaLease lease_records(self, NodeBuffer* records)


cdef class ArenaLease:
    cdef Arena arena
    cdef object memory      # a GrowthMemory or a RecordMemory
