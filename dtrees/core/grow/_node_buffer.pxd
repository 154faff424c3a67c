"""Declarations of the records of grown nodes; see _node_buffer.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport LEAF, Totals
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport CodesOfRanks

cdef enum:
    SUBTREE = -3            # column of a record that stands for a later piece (`grow.assembly`)

cdef struct Record:
    # A grown node, as the kernels write it.
    double impurity
    double gain
    uint32_t n
    int32_t subset          # offset of its words, -1: none
    int32_t left            # record numbers; -1 in leaves
    int32_t right
    int32_t column
    uint32_t boundary       # codes of the two neighbours of the test's boundary
    uint32_t beyond
    uint8_t test
    uint8_t missing_left

cdef struct NodeBuffer:
    Record* nodes
    int64_t* statistics     # (count, n_statistics)
    int64_t count
    int64_t capacity
    uint64_t* words
    int64_t n_words
    int64_t words_capacity
    bint in_pages           # many nodes have pages of their own: for trees that wait for others
    size_t paged_nodes      # bytes of these, as `resize_in_pages` takes them
    size_t paged_statistics
    bint out_of_memory      # once: the tree is lost, and reading it raises

cdef struct RecordRange:
    # Of the records and words of a buffer: a subtree.
    int64_t first
    int64_t end
    int64_t first_word
    int64_t end_word


cdef void free_node_buffer(NodeBuffer* out) noexcept nogil
cdef bint reserve_records(NodeBuffer* out, int64_t n, int64_t n_statistics) noexcept nogil
cdef int64_t append_record(NodeBuffer* out, int64_t n_statistics) noexcept nogil
cdef int64_t copy_words(NodeBuffer* out, const uint64_t* words, int64_t count) noexcept nogil
cdef int64_t write_record(NodeBuffer* out, const TrainParameters* params,
                          OpenNode* node) noexcept nogil
cdef void write_test(NodeBuffer* out, int64_t index, const TrainParameters* params, const Search* q,
                     const CodesOfRanks* codes, const Totals* left,
                     const Totals* right) noexcept nogil


cdef inline void make_leaf(Record* record) noexcept nogil:
    """A record without a test; what its rows add up to stays."""
    record.subset = -1
    record.gain = 0
    record.left = -1
    record.right = -1
    record.column = -2
    record.boundary = 0
    record.beyond = 0
    record.test = LEAF
    record.missing_left = 0


cdef inline void stand_for(NodeBuffer* out, int64_t record, int64_t piece) noexcept nogil:
    """Let a record stand for the subtree of its node, which is a piece of its own."""
    out.nodes[record].column = SUBTREE
    out.nodes[record].left = piece


cdef object partial_tree_of(const NodeBuffer* out, int64_t n_statistics)
cdef object piece_of(const NodeBuffer* out, const RecordRange* some, int64_t n_statistics)
