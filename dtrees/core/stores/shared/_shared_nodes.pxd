"""Nodes of several sets, and the store that a thread has for them; see _shared_nodes.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport MOST_INTERVALS, Column, Intervals
from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, Totals
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._intervals cimport Bounds
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Bins, Boundaries, Search
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores._store cimport Member, Store

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

cdef struct AliveRows:
    # Rows of a node in the intervals of a column that are alive; see _shared_store.pyx.
    uint64_t of_interval[MOST_INTERVALS + 1]    # members for which an interval is alive, a bit each
    uint64_t members        # for which any is
    uint64_t* entries       # code | row, ascending
    uint64_t* who           # by entry: the members that have it, in an interval alive for them
    uint32_t* row
    uint64_t* scratch
    int64_t n
    int64_t room
    uint64_t* own           # entries of one member
    int64_t n_own


cdef struct SharedStore:
    # Of one thread: searches of all sets, and scratch for one node at a time.
    Store store             # its parameters are those of all sets, but for limits
    int n_sets
    TrainParameters* params_of             # of the sets
    Search** searches
    Bins bins               # scratch of the searches, which take turns
    Boundaries* boundaries
    const RowStatistics* of_row
    const int64_t* of_class     # (n_sets, n_classes): class weights of the sets; NULL: none
    SharedNode* node        # that is searched and split
    Member members[MOST_SETS]   # of it
    SharedNode* top         # nodes that wait, children of the last one first
    int32_t* order          # permutation of the columns, and how to undo a node's draws
    int32_t* swapped
    int64_t* histograms     # histograms of one column
    int64_t n_scratch
    const int64_t* lacking[MOST_SETS]  # of them: of what a member lacks
    const int64_t* all      # and of all rows that all have
    int64_t* own            # of one member
    int64_t* more           # and, by code and member, of what only some have; NULL: nothing
    Layout layout           # of histograms
    const uint32_t* rank_of     # by code: its number in those of a column; NULL: the code
    int64_t size            # numbers of a histogram
    uint32_t* code          # codes that occur in the node
    uint32_t* rank          # and their numbers; by code
    uint64_t* hit
    uint64_t* left_of       # by code: the members that send it left
    Totals* totals          # by cell
    int64_t* class_totals
    const Intervals* intervals  # by column; NULL: none has any
    int64_t interval_rows   # of a node, at least,
    int64_t interval_codes  # and of a column, that is searched by them
    Bounds bounds           # of a column and a member
    double* highest         # by column and set: no boundary of the node has a higher score;
    double* own_highest     # of this thread, or of one that searches the node with others
    double best[MOST_SETS]  # by member: of the boundaries that were looked at
    AliveRows alive         # of a column
    int64_t n_bounded       # columns of nodes that were searched by intervals,
    int64_t n_alive         # and of these, in which some were alive
    const int32_t* dense    # columns that are, ascending,
    int64_t n_dense
    const int32_t* slot     # and by column its number among them
    int64_t n_rows          # of the table,
    int64_t n_stored        # and entries of its sparse columns
    uint64_t* who_of        # by row, where columns are sparse: members of the node that have it,
    uint32_t* code_of       # its code of the chosen column,
    uint8_t* side           # and, while entries are gathered, for whom, a bit each; else 0
    uint64_t* own_entries   # of a column and a member, or of rows that only some have
    int64_t n_own_entries   # room
    RowStatistics own_statistics    # by entry of a member, where sets have their own class weights
    int64_t n_own_statistics    # room

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
cdef bint partition_shared(const SharedNode* node, const Column* column, const uint64_t* who,
                           const Partitioning* p, SharedNode* left,
                           SharedNode* right) noexcept nogil


cdef inline int64_t rows_of(const SharedNode* node) noexcept nogil:
    """Rows that somebody has, each once."""
    return node.n + node.n_some


cdef inline int64_t work_of(const SharedNode* node) noexcept nogil:
    """What the subtrees below a node cost, about."""
    return node.n * node.n_members


cdef inline int64_t cells_of(const SharedStore* s, const SharedNode* node) noexcept nogil:
    """Cells of the dense columns of a node, and entries of the others."""
    return node.n * s.n_dense + node.n_entries


cdef inline const int64_t* class_weights(const SharedStore* s, const SharedNode* node,
                                         int member) noexcept nogil:
    """Of a member, where sets have their own."""
    return s.of_class + <int64_t>node.set_of[member] * s.store.params.criterion.n_classes
