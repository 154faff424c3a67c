"""Nodes of several sets; see _shared_nodes.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._partition cimport Route

cpdef enum:
    MOST_SETS = 64          # a bit each
    MOST_CELLS = 64

cdef struct EntryReaders:
    # Who reads the entries of a node.
    int64_t n_nodes
    int64_t n_rows          # that all of the entries are of, about

cdef struct SharedNode:
    # A node of several sets, with the rows that belong here in all of their trees.
    int n_members
    int* set_of             # number of the set, by member
    OpenNode* open          # of each member: its sums and its record
    uint32_t* rows          # ascending,
    uint8_t* cell           # and the cell of each
    int64_t n
    int n_cells
    uint64_t* without       # by cell: the members whose sets lack it
    uint32_t* some          # rows that only some of the members have here,
    uint64_t* who           # a bit for each of them
    int64_t n_some
    int64_t room
    # by dense column: 1 where it is known to be, for all active members, or may not be used
    uint8_t* constant
    PresortedFeature* features  # sparse columns that have entries here, ascending
    int64_t n_features
    uint64_t* entries       # (code | row) of these, of rows that somebody has
    int64_t n_entries
    EntryReaders* readers   # of these; NULL: this node alone
    bint is_unparted        # they are those of the parent, of which the node's rows have some
    bint is_left            # its sibling is below it on the stack
    bint was_drawn          # these are columns that were drawn, as they came
    uint64_t active         # members that are not leaves here
    uint64_t waiting        # members that go on alone, and have not begun
    SharedNode* below       # on the stack

cdef struct Partitioning:
    # Tests of some members, all on one column, and what becomes of the rows of their node.
    int n
    Route route[MOST_SETS]
    const uint64_t* left_of     # by code: the members that send it left; NULL: by their routes
    uint64_t full[MOST_CELLS]   # by cell: the members that have its rows; 0: it is left behind
    uint8_t new_cell[MOST_CELLS]  # by cell: its number in the children
    int64_t left_sums[MOST_CELLS]   # what the rows of the children add up to, where rows are
    int64_t right_sums[MOST_CELLS]  # packed; by cell of the children

cdef SharedNode* new_shared(int n_members, int n_cells, const TrainParameters* params,
                            int64_t n_dense) noexcept nogil
cdef void release_entries(SharedNode* node) noexcept nogil
cdef void free_shared(SharedNode* node) noexcept nogil
cdef void free_shared_list(SharedNode* node) noexcept nogil
cdef bint reserve_rows(SharedNode* node, int64_t n) noexcept nogil
cdef bint reserve_some(SharedNode* node, int64_t n) noexcept nogil
cdef void mark_codes_left(const Route* route, int n, int64_t width,
                          uint64_t* left_of) noexcept nogil
cdef void take_rows(const SharedNode* node, const uint8_t* side, uint8_t wanted,
                    const Partitioning* p, SharedNode* child) noexcept nogil
cdef bint partition_shared(const SharedNode* node, const Column* column, const int64_t* added,
                           const uint64_t* who, Partitioning* p, SharedNode* left,
                           SharedNode* right) noexcept nogil


cdef inline int64_t rows_of(const SharedNode* node) noexcept nogil:
    """Rows that somebody has, each once."""
    return node.n + node.n_some


cdef inline int64_t work_of(const SharedNode* node) noexcept nogil:
    """What the subtrees below a node cost, about."""
    return node.n * node.n_members
