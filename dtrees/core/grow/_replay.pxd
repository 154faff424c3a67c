"""Branches of a set that goes on alone in a tree that is known; see _replay.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.grow._depth_first cimport Growth
from dtrees.core.grow._known_tree cimport Known
from dtrees.core.grow._node_buffer cimport NodeBuffer
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef struct Branch:
    int64_t node            # of the known tree
    int64_t start           # view.rows[start .. start + its rows)
    int64_t parent          # record
    int64_t depth
    int64_t smallest        # as in `SharedNode`
    uint64_t path
    bint is_left

cdef struct Replay:
    # Of one set at a time, in the memory of the one before.
    int set                 # its number
    const Known* tree
    const TrainParameters* params
    Branch* open            # branches that wait, the next one last
    int64_t n_open
    int64_t capacity
    uint8_t* side           # by row of the table: 1 goes left
    uint32_t* scratch       # (rows of the set,)
    uint8_t* constant       # by dense column: 1 where it is known to be
    int64_t smallest        # of the branch that has begun to grow
    int64_t n_known         # nodes that were taken over
    int64_t work            # rows that were moved

cdef void free_replay(Replay* r) noexcept nogil
cdef bint begin_replay(Replay* r, Buffers* view, const SharedStore* s, const Known* tree,
                       const SharedNode* node, int member) noexcept nogil
cdef bint replay_branches(Replay* r, Buffers* view, const SharedStore* s, NodeBuffer* out,
                          Growth* growth) noexcept nogil
