"""Where the rows of open nodes live; see _workspace.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core._columns cimport Column
from dtrees.core._structs cimport Payload, Run, Totals, entry_t

cdef enum:
    MAX_NARROW = 65535      # rows of a workspace of uint32 entries

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
    bint owns_rows          # else they are a reader's scratch
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
