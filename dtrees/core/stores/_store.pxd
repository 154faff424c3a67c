"""What the node step asks of a store of rows, whichever it is."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column, code_at, prefetch_code
from dtrees.core.data._structs cimport Split
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, begin_node
from dtrees.core.stores._partition cimport Route


cdef struct CodesOfRanks:
    # How the ranks of the chosen column become codes.
    bint same               # they are codes
    uint32_t fill_code      # of the rank without a row
    const uint32_t* row_id  # by row: its row of the coded table; NULL: the same

cdef struct Member:
    # A node as one training set has it. Most stores hold the rows of one set: a node has one member
    OpenNode* node
    const TrainParameters* params
    Search* search
    int number              # of the set
    Route route             # of its split
    OpenNode* left          # its children, once the rows are partitioned
    OpenNode* right

cdef struct Store:
    # The first member of every store. A store is asked about one node at a time.
    const TrainParameters* params
    Search* search          # of stores of one set
    int64_t work            # entries that were looked at
    bint out_of_memory      # the trees are lost; a store of one set notes it in its search
    uint32_t last_ordered   # of the chosen column, in ranks
    CodesOfRanks codes
    # find the best split of each member of a node, into its search
    void (*search_node)(Store* store, Member* members) noexcept nogil
    # of members, a bit each, with tests on one column: fill `last_ordered` and `codes`; where a
    # split is a subset, the bins of its column, too
    void (*choose)(Store* store, Member* members, uint64_t together) noexcept nogil
    # partition the rows of the node by the routes of these members, open their children, sum these
    # up
    void (*partition)(Store* store, Member* members, uint64_t together) noexcept nogil


cdef inline Member only_member(OpenNode* node, const TrainParameters* params, Search* search,
                               OpenNode* left, OpenNode* right) noexcept nogil:
    """The member of a node that one set has."""
    cdef Member member
    member.node = node
    member.params = params
    member.search = search
    member.number = 0
    member.route = Route(NULL, 0, 0, 0, 0)
    member.left = left
    member.right = right
    return member


cdef inline void begin_members(Member* members, int n) noexcept nogil:
    """Prepare the searches of a node."""
    cdef int m
    for m in range(n):
        begin_node(members[m].search, &members[m].node.totals, members[m].node.class_totals,
                   members[m].node.path, &members[m].node.above)


cdef inline uint32_t code_of(const Column* column, const CodesOfRanks* codes, uint32_t rank,
                             int64_t row) noexcept nogil:
    """The code behind a rank. row : one that holds it; -1: that of the fill code."""
    if rank == 0 or codes.same:
        return rank
    if row < 0:
        return codes.fill_code
    return code_at(column, row if codes.row_id == NULL else codes.row_id[row])


cdef inline void prefetch_codes(const Store* store) noexcept nogil:
    """Load what `code_of` will read for the test of a split by rank, whose record is written when
    the rows are partitioned."""
    cdef const Split* split = &store.search.split
    cdef const Column* column = store.params.columns + split.column
    prefetch_code_of(column, &store.codes, split.boundary, split.boundary_row)
    prefetch_code_of(column, &store.codes, split.beyond, split.beyond_row)


cdef inline void prefetch_code_of(const Column* column, const CodesOfRanks* codes, uint32_t rank,
                                  int64_t row) noexcept nogil:
    if rank != 0 and row >= 0 and not codes.same:
        prefetch_code(column, row if codes.row_id == NULL else codes.row_id[row])
