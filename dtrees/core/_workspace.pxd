"""Where the rows of open nodes live; see _workspace.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._structs cimport ALL_ORDERED, Payload, Run, Totals, entry_t

cdef enum:
    MAX_NARROW = 65535      # rows of a workspace of uint32 entries

cdef enum Storage:
    STORED_U8
    STORED_U16
    STORED_U32
    STORED_SPARSE

cdef struct Column:
    # One column of the coded matrix.
    const void* codes       # dense: (n_rows,) of the storage's width; sparse: uint32 (stored,)
    const int32_t* rows     # sparse: ascending rows of the stored codes
    const uint32_t* order   # rows in ascending code order, or NULL
    int64_t stored          # sparse: how many
    uint32_t n_codes
    uint32_t n_ordered
    uint32_t fill
    uint32_t common         # u8, u16: a code that most rows hold, as far as is known; or NO_RANK
    uint8_t storage

cdef struct RowLists:
    # The sparse columns that store a cell of a row, row after row.
    const int64_t* start    # (n_rows + 1,); NULL: the table has none, or nobody asked
    const int32_t* column
    const uint64_t* dense   # bit per column
    int64_t n_words

cdef struct CountRule:
    # Which columns of a workspace are read by histogram.
    int64_t stride          # numbers in a cell; 0: none is
    int64_t least_rows      # nodes of fewer rows are not; 0: whatever they cost (for tests)

cdef struct Counted:
    # The columns of a workspace that are read by histogram; their runs have no entries.
    int64_t n_cells         # numbers in the histograms of a node
    int64_t least_rows      # entries serve nodes of fewer rows better; 0: no column is counted

cdef struct Workspace:
    # Rows of a set of open nodes; every node is a stretch of `rows` and of each column's entries.
    int64_t n_rows
    bint narrow             # uint32 entries, rows numbered 0 .. n_rows-1; else uint64 entries
    void* entries
    void* scratch           # n_rows entries
    uint32_t* rows
    uint32_t* row_scratch
    uint32_t* number        # scratch of a relocation: row -> new number
    uint8_t* side           # by row: 1 goes left
    uint32_t* row_id        # row of the shard, NULL: the same
    Counted counted
    Payload payload
    bint owns_payload
    bint shared             # by several threads: nodes are relocated before they are grown

cdef struct OpenNode:
    int64_t start           # rows[start .. start + n)
    Totals totals
    int64_t* class_totals   # (n_classes,), NULL for one number per row
    Run* runs               # columns that still vary, ascending; length 0: read by histogram
    int64_t n_runs
    int64_t* histogram      # of the runs of length 0, at their offsets; NULL: not counted yet
    int64_t depth
    int64_t parent          # record of the parent, -1 for a root
    bint is_left
    bint is_leaf
    uint64_t path           # key of the node's draws
    double impurity

cdef inline uint32_t last_ordered(const Column* column) noexcept nogil:
    """The largest rank that a comparison can name: all of them in columns without categories."""
    return ALL_ORDERED if column.n_ordered == column.n_codes else column.n_ordered

cdef uint32_t code_at(const Column* column, int64_t row) noexcept nogil
cdef Workspace* new_workspace(int64_t n_rows, int64_t n_entries, bint narrow) noexcept nogil
cdef void free_workspace(Workspace* w) noexcept nogil
cdef Workspace* relocate_rows(Workspace* old, const OpenNode* node,
                              int64_t n_entries) noexcept nogil
cdef int64_t relocate_runs(const Workspace* old, const entry_t* entries, Workspace* new,
                           Run* runs, int64_t n_runs, int64_t at, const Column* columns,
                           uint32_t* scratch, const CountRule* rule,
                           Counted* counted) noexcept nogil
cdef Workspace* relocate(Workspace* old, const entry_t* entries, OpenNode* node,
                         const Column* columns, const CountRule* rule) noexcept nogil
cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil
