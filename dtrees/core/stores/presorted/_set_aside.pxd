"""Nodes that go on under narrower limits, too; see _set_aside.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef struct SetAside:
    # Of one node at a time.
    const int64_t* least_rows   # of leaves, by narrower limits, ascending
    int n_limits
    int level               # which of them is the first that does not allow the test
    OpenNode node           # a copy, as it was before its test; without a record
    Buffers* rows           # those of the copy; NULL: all limits allow the test

cdef bint set_aside(SetAside* aside, Buffers* w, const TrainParameters* params,
                    const OpenNode* node) noexcept nogil
