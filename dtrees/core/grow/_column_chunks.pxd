"""Large nodes, whose columns the threads of a team share; see _column_chunks.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.grow._node_buffer cimport NodeBuffer
from dtrees.core.grow._team cimport Jobs
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport CountRule
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.presorted._presorted_store cimport PresortedStore

cdef struct Sharing:
    # How threads share the columns of a node; one thread has one chunk.
    Jobs* jobs
    int64_t n_chunks

cdef struct Chunk:
    # Features first .. last of a node.
    int64_t first
    int64_t last

cdef void divide(Chunk* chunks, int64_t n_chunks, const OpenNode* node) noexcept nogil
cdef bint grow_in_chunks(const Sharing* sharing, PresortedStore* s, NodeBuffer* out,
                         OpenNode* node, OpenNode* left, OpenNode* right) noexcept nogil
cdef Buffers* relocate_in_chunks(const Sharing* sharing, Buffers* old, OpenNode* node,
                                 const Column* columns, const CountRule* rule) noexcept nogil
