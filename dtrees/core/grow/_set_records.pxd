"""Declarations of the records of several sets; see _set_records.pyx."""
from dtrees.core.grow._arena cimport Arena, ArenaLease
from dtrees.core.grow._node_buffer cimport NodeBuffer, Stretch


cdef class SetRecords:
    cdef Arena arena
    cdef NodeBuffer* of_set
    cdef Stretch* begun     # by set: where the subtree that grows begins
    cdef int n_sets
    cdef int n_statistics
    cdef bint in_pages
    cdef list leases        # by set, when they are lent

    cdef use_pages(self)
    cdef begin(self)
    cdef Subtree end(self, int s)
    cdef lend(self)


cdef class Subtree:
    cdef SetRecords records
    cdef ArenaLease lease   # of those of the set, instead
    cdef int n_statistics
    cdef int s
    cdef Stretch stretch

    cdef take_lease(self)
