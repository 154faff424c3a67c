"""Whole subtrees in one call; see _finish.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core._plan cimport Plan
from dtrees.core._reader cimport Reader
from dtrees.core._records cimport Records
from dtrees.core._search cimport Search
from dtrees.core._structs cimport Payload, Run
from dtrees.core._workspace cimport OpenNode, Workspace

cdef struct Frame:
    Workspace* workspace
    OpenNode* open
    int64_t n_open
    int64_t capacity

cdef enum:
    MAX_FRAMES = 12

cdef struct Growth:
    # A subtree that grows; can stop between any two nodes and go on. Its memory serves the next.
    const Plan* plan
    Search* search
    Records out
    Frame frames[MAX_FRAMES]
    int n_frames
    int64_t n_columns       # of the permutation
    int32_t* drawn          # permutation of the columns, and how to undo a node's draws
    int32_t* swapped
    int32_t* ascending
    Reader* reader          # of drawn columns
    Run no_run              # what drawn columns have
    int64_t work            # entries looked at since the start

cdef Growth* new_growth() noexcept nogil
cdef bint ready_reader(Growth* g, const Plan* plan, const Payload* payload, int64_t n,
                       int64_t n_places) noexcept nogil
cdef bint begin_growth(Growth* g, const Plan* plan, Workspace* w, OpenNode* root) noexcept nogil
cdef void end_growth(Growth* g) noexcept nogil
cdef bint grow_for(Growth* g, int64_t work) noexcept nogil
cdef void free_growth(Growth* g) noexcept nogil
