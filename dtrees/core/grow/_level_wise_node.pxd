"""Declarations of large nodes; see _level_wise_node.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.presorted._buffers cimport Counted, Buffers


cdef class LevelWiseNode:
    cdef OpenNode node
    cdef PresortedFeature** features  # (n_blocks,)
    cdef int64_t* n_features
    cdef int64_t** histogram    # (n_blocks,) of the counted columns; NULL: not counted yet
    cdef int n_blocks
    cdef LevelWiseNode left
    cdef LevelWiseNode right
    cdef bint is_large      # its level is still to come: not a leaf, not a task
    cdef object drawn       # sorted drawn columns, or None
    cdef int64_t n_drawn    # how many were drawn at first

    cdef concatenate(self)


cdef class SearchOfBlock:
    cdef Search* q


cdef allow(OpenNode* node, above)
cdef sets_of(const OpenNode* node, const TrainParameters* params)
cdef int64_t entries_of(LevelWiseNode node)
cdef SearchOfBlock search_block(const TrainParameters* params, Buffers* w, const Counted* counted,
                                LevelWiseNode node, int block)
cdef bint partition_block(const TrainParameters* params, Buffers* w, const Counted* counted,
                          LevelWiseNode node, int block, void* scratch) noexcept nogil
