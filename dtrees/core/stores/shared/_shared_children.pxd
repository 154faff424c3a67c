"""The children of a shared node; see _shared_children.pyx."""
from libc.stdint cimport uint64_t

from dtrees.core.stores._store cimport Member, Store


cdef void partition_members(Store* store, Member* members, uint64_t together) noexcept nogil
