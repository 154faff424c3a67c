"""What a thread knows of shared nodes: the store of rows with cell and mask."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport MOST_INTERVALS, Column, Intervals
from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._layout cimport PACKED, Layout, encode
from dtrees.core.search._bounds cimport Bounds
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Bins, Boundaries, Search
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.shared._shared_nodes cimport MOST_SETS, SharedNode

cdef enum:
    NO_CELL = 255           # of a row that only some of the members have,
    ABSENT = 254            # and of one that nobody has


cdef struct AliveRows:
    # Rows of a node in the intervals of a column that are alive; see _shared_intervals.pyx.
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
    bint is_packed          # two classes, and what rows add goes into one number
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
    int64_t* added          # what the rows of a node add, packed, or distances of their targets
    int64_t n_added         # room
    const uint32_t* gathered    # the rows whose packed numbers these are; NULL: none
    uint32_t* code          # codes that occur in the node
    uint32_t* rank          # and their numbers; by code
    uint64_t* hit
    uint64_t* left_of       # by code: the members that send it left
    Totals* totals          # by cell
    int64_t* class_totals
    int64_t* sums           # where rows are packed
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
    uint8_t* cell_of        # its cell, NO_CELL or ABSENT,
    uint8_t* side           # and, while entries are gathered, for whom, a bit each; else 0
    int64_t block_cost      # histograms of cells that those of all members are made of
    SharedNode listed       # rows of the entries of a column, as if they were all of the node
    int64_t n_listed        # room
    uint64_t* own_entries   # of a column and a member, or of rows that only some have
    int64_t n_own_entries   # room
    RowStatistics own_statistics    # by entry of a member, where sets have their own class weights
    int64_t n_own_statistics    # room

cdef inline int64_t cells_of(const SharedStore* s, const SharedNode* node) noexcept nogil:
    """Cells of the dense columns of a node, and entries of the others."""
    return node.n * s.n_dense + node.n_entries


cdef inline const int64_t* class_weights(const SharedStore* s, const SharedNode* node,
                                         int member) noexcept nogil:
    """Of a member, where sets have their own."""
    return s.of_class + <int64_t>node.set_of[member] * s.store.params.criterion.n_classes


cdef inline int64_t packed(const RowStatistics* of_row, uint32_t row) noexcept nogil:
    """Two classes: row, weight and weight of class 1 of a row that counts, in one number."""
    return encode(PACKED, 1 if of_row.weight == NULL else of_row.weight[row], of_row.label[row])
