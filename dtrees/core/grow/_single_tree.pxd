"""Whole trees and subtrees in one call; see _single_tree.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.grow._node_buffer cimport NodeBuffer
from dtrees.core.grow._team cimport Jobs
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.presorted._buffers cimport Buffers, entries_of_features
from dtrees.core.stores.presorted._few_rows cimport FewRowsStore
from dtrees.core.stores.presorted._presorted_store cimport PresortedStore
from dtrees.core.stores.sampled._sampled_store cimport SampledStore

cdef struct Sharing:
    # How threads share the columns of a node; one thread has one chunk.
    Jobs* jobs
    int64_t n_chunks

cdef struct Frame:
    Buffers* buffers
    bint has_own            # else they are the caller's
    OpenNode* open          # has room for `capacity` nodes; serves the next frame in this place
    int64_t n_open
    int64_t capacity

cdef enum:
    MAX_FRAMES = 64

cdef struct Growth:
    # A subtree that grows; can stop between any two nodes and go on. Its memory serves the next.
    const TrainParameters* params
    Search* search
    NodeBuffer out
    Frame frames[MAX_FRAMES]
    int n_frames
    Store* store            # the one of the next three that holds the rows
    PresortedStore presorted
    FewRowsStore few        # nodes of few rows, of which presorted ones consist
    SampledStore sampled
    const Sharing* sharing  # of a growth that leads a team; NULL: it is alone
    int64_t least_shared    # entries of a node whose columns threads share
    int64_t least_left      # entries of a node whose subtree is left to any thread,
    int64_t most_left       # and of the largest one
    OpenNode left           # such a node, until it is taken
    bint has_left
    int64_t n_left          # so many were there

cdef Growth* new_growth() noexcept nogil
cdef allow(OpenNode* node, above)
cdef bint begin_growth(Growth* g, const TrainParameters* params, Buffers* w,
                       OpenNode* root) noexcept nogil
cdef void share_growth(Growth* g, const Sharing* sharing, int64_t least_shared, int64_t least_left,
                       int64_t most_left) noexcept nogil
cdef void end_growth(Growth* g) noexcept nogil
cdef bint grow_for(Growth* g, int64_t work) noexcept nogil
cdef void free_growth(Growth* g) noexcept nogil


cdef inline int64_t entries_of(const TrainParameters* params, const OpenNode* node) noexcept nogil:
    """Cells of a node that do not hold a majority value: what its subtree costs, about."""
    if params.draws:
        return node.totals.n * params.limits.max_features
    return entries_of_features(node.features, node.n_features, node.totals.n)


cdef class GrowthMemory:
    cdef Growth* growth


cdef class Arena:
    cdef list unused
    cdef GrowthMemory take(self)
    cdef take_back(self, GrowthMemory memory)
