"""Declarations of shared growth; see _shared_growth.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._store cimport Member
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.grow._arena cimport GrowthMemory, Arena
from dtrees.core.grow._node_buffer cimport NodeBuffer
from dtrees.core.grow._set_records cimport SetRecords
from dtrees.core.grow._training_sets cimport TrainingSets


cdef class SharedTask:
    cdef SharedNode* node
    cdef int64_t work


cdef class SharedGrowth:
    cdef TrainingSets sets
    cdef Dataset dataset
    cdef Arena arena
    cdef GrowthMemory memory
    cdef SetRecords written
    cdef NodeBuffer* records    # by set: those of `written`
    cdef SharedStore store
    cdef SharedNode* offloaded     # to other threads, the last one first
    cdef int64_t* n_offloaded  # by set
    cdef int64_t most_offloaded    # work of a node that is
    cdef int64_t least_divided  # rows times columns of a node that several threads search
    cdef SharedNode* large  # such a node, which waits for them
    cdef const SharedNode* searched     # of which some columns were searched
    cdef int alone          # the set whose subtree grows; -1: none
    cdef Buffers view     # rows of a set that goes on alone
    cdef int64_t n_shared_nodes     # nodes that were searched for two sets or more,
    cdef int64_t n_shared_rows      # and their rows, each once

    cdef list grow(self, sets, cancelled, team=*)
    cdef split_large(self, list searchers)
    cdef void look_at(self, SharedGrowth top) noexcept nogil
    cdef void search_block(self, SharedGrowth top, int64_t first, int64_t step) noexcept nogil
    cdef void search_block_inside(self, SharedGrowth top, const double* best, int64_t first,
                                  int64_t step) noexcept nogil
    cdef list grow_task(self, SharedTask task, cancelled)
    cdef list take_offloaded(self)
    cdef open_root(self, int64_t depth, uint64_t path)
    cdef bint go_on(self, int64_t work) noexcept nogil
    cdef bint process_node(self, SharedNode* node) noexcept nogil
    cdef bint split_node(self, SharedNode* node, Member* members) noexcept nogil
    cdef void note_lost(self, const SharedNode* node) noexcept nogil
    cdef void offload(self, SharedNode* node) noexcept nogil
    cdef bint pays(self, const SharedNode* node) noexcept nogil
    cdef void begin_alone(self, SharedNode* node, int member) noexcept nogil
    cdef void end_alone(self) noexcept nogil
