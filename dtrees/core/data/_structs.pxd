"""The records that the kernels share. No code, no Python objects.

An *entry* is one stored cell of one column in one open node: the rank of its code in the high half
of the integer, the number of its row in the low half. Entries of a column are kept in ascending
order of rank, so equal codes are neighbours and a prefix of the entries is a candidate split.

    uint64 entry   code  (32 bits) | row (32 bits)      any table
    uint32 entry   rank  (16 bits) | row (16 bits)      at most 65,535 rows, renumbered

Rank 0 is missing in both. A *presorted feature* is the contiguous stretch of entries of one column
in one open node. A dense column stores every row of the node; a sparse one leaves out the rows that
hold its fill code.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused entry_t:
    uint32_t
    uint64_t

cdef extern from *:
    """
    typedef __int128 dtrees_int128;
    """
    ctypedef long long int128_t "dtrees_int128"

cdef enum:
    NO_RANK = 0xFFFFFFFF    # a feature without rows that hold the fill code
    ALL_ORDERED = 0x7FFFFFFF    # last_ordered of a column without categories

cdef enum Impurity:
    GINI                    # of three classes or more
    ENTROPY
    SQUARED                 # squared error; gini of two classes is twice the same
    SQUARED_OUTPUTS         # of several outputs: the sum of their squared errors
    POISSON
    ABSOLUTE                # absolute errors about medians (`search._absolute_scan`)
    GRADIENT                # of a loss: weights are second derivatives, targets are first ones
    BY_FUNCTION             # of the class weights of both sides (`search._criterion`)

# A node's test, as in dtrees.core.model.tree.
cdef enum Test:
    LEAF
    AT_MOST
    ABOVE
    IN_SUBSET

cdef struct RowStatistics:
    # Of each row, what it adds to sums; the kind of cells decides which are given. Of several
    # outputs label, target and value are (n_rows, n_outputs), and a label is the field of a class.
    uint16_t* label         # class of the row
    int64_t* weight
    uint16_t* times         # how often the row is in the bag: the weight, where nothing else weighs
    int64_t* target         # weight * y, or weight * class for two classes
    int64_t* value          # y alone: purity and the second moment
    int n_outputs           # 0: y is one column
    bint zero_one           # a label is a number, 0 or 1
    const int64_t* shift    # by output: bits by which a weighted square is finer than a moment
    int n_lanes             # outputs, and zeros up to a multiple of four:
    double* numbers         # targets (n_rows, n_lanes) in the unit of the coarsest output; NULL
    double largest          # of these numbers, by size

cdef struct PresortedFeature:
    int64_t offset          # of the first entry; of a counted column: of its cells, -1: not kept
    uint32_t length         # entries; other rows hold the fill code. 0: the column is counted
    int32_t column
    uint32_t fill           # rank of the fill code; NO_RANK in dense columns
    uint32_t fill_code
    uint32_t last_ordered   # ranks above it are categories
    bint distinct           # no two entries have the same rank

cdef struct Totals:
    # Sums over the rows of a node.
    int64_t n
    int64_t weight
    int64_t target          # two classes: weight of class 1; absolute errors: weight * median
    int128_t moment         # regression: weight * y * y; absolute errors: their sum
    int64_t lowest          # regression: least and greatest y, to see purity; of several outputs
    int64_t highest         # they are equal where all rows have one y

cdef struct Inherited:
    # What a node has from its ancestors: zeros allow everything.
    bint has_lower          # bounds of the values of its leaves, as `Search.lower`
    bint has_upper
    double lower
    double upper
    double value            # of the node, before its bounds: its children are smoothed towards it
    # sets of columns that hold all columns of the tests above, a bit each; NULL: all. Its own
    uint64_t* sets

cdef struct Split:
    double score            # order of preference among the splits of a node
    double unpenalized      # of a subset: its score before what its categories pay
    double gain             # weighted impurity decrease in the user's units
    int32_t column
    uint8_t test            # LEAF: no split was found
    uint8_t missing_left
    uint8_t saw_missing     # missing_left was learned from rows of the node
    uint32_t boundary       # tests 1 and 2: the last rank at or below the boundary,
    uint32_t beyond         # and the first ordered rank above it, 0 when there is none
    int64_t boundary_row    # a row of the buffers that holds them; -1: the rows of the fill code
    int64_t beyond_row
