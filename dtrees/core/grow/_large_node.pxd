"""Declarations of large nodes; see _large_node.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport Plan
from dtrees.core.search._search cimport Search
from dtrees.core.stores.presorted._buffers cimport Counted, Workspace


cdef class LargeNode:
    cdef OpenNode node
    cdef PresortedFeature** features  # (n_blocks,)
    cdef int64_t* n_features
    cdef int64_t** histogram    # (n_blocks,) of the counted columns; NULL: not counted yet
    cdef int n_blocks
    cdef LargeNode left
    cdef LargeNode right
    cdef bint is_large      # its level is still to come: not a leaf, not a task
    cdef object drawn       # sorted drawn columns, or None

    cdef void forget(self) noexcept
    cdef void concatenate(self) noexcept


cdef class SearchOfBlock:
    cdef Search* q


cdef int64_t entries_of(LargeNode node)
cdef double expected_entries(LargeNode node, LargeNode child)
cdef SearchOfBlock better(SearchOfBlock a, SearchOfBlock b)
cdef SearchOfBlock search_block(const Plan* plan, Workspace* w, const Counted* counted,
                                LargeNode node, int block)
cdef void part_block(const Plan* plan, Workspace* w, const Counted* counted, LargeNode node,
                     int block, void* scratch) noexcept nogil
