"""What the node step asks of a store of rows, whichever it is."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._columns cimport Column, code_at
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._partition cimport Route


cdef struct CodesOfRanks:
    # How the ranks of the chosen column become codes.
    bint same               # they are codes
    uint32_t fill_code      # of the rank without a row
    const uint32_t* row_id  # by row: its row of the coded table; NULL: the same

cdef struct Store:
    # The first member of every store. A store is asked about one node at a time.
    const TrainParameters* params
    Search* search
    int64_t work            # entries that were looked at
    uint32_t last_ordered   # of the chosen column, in ranks
    CodesOfRanks codes
    # find the best split of a node, into `search`
    void (*search_node)(Store* store, OpenNode* node) noexcept nogil
    # fill `last_ordered` and `codes`; where the split is a subset, the bins of its column, too
    void (*choose)(Store* store, OpenNode* node) noexcept nogil
    # partition the rows of the node, open its children, and sum them up
    void (*partition)(Store* store, OpenNode* node, const Route* route, OpenNode* left,
                      OpenNode* right) noexcept nogil


cdef inline uint32_t code_of(const Column* column, const CodesOfRanks* codes, uint32_t rank,
                             int64_t row) noexcept nogil:
    """The code behind a rank. row : one that holds it; -1: that of the fill code."""
    if rank == 0 or codes.same:
        return rank
    if row < 0:
        return codes.fill_code
    return code_at(column, row if codes.row_id == NULL else codes.row_id[row])
