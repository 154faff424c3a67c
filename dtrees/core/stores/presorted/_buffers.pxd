"""Buffers of growth and their entries; see _buffers.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport PresortedFeature, RowStatistics, entry_t
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport CountRule

cdef enum:
    MAX_NARROW = 65535      # rows of buffers of uint32 entries

cdef struct Counted:
    # The columns of buffers that are read by histogram; their features have no entries.
    int64_t n_words         # of the histograms of a node
    int64_t least_rows      # entries serve nodes of fewer rows better; 0: no column is counted

cdef struct ClassWeights:
    # Of the set that the rows of buffers are of: they get them as they are relocated.
    const int64_t* of_class     # NULL: rows weigh what they weigh
    bint has_target             # the weighted class of a row is summed, too

cdef struct Buffers:
    # Rows of a set of open nodes; every node is a stretch of `rows` and of each column's entries.
    int64_t n_rows
    bint narrow             # uint32 entries, rows numbered 0 .. n_rows-1; else uint64 entries
    void* entries
    void* scratch           # n_rows entries
    uint32_t* rows
    uint32_t* row_scratch
    uint32_t* number        # scratch of a relocation: row -> new number
    uint8_t* side           # by row: 1 goes left
    uint32_t* row_id        # row of the dataset, NULL: the same
    uint32_t ones           # narrow: rows from here on are not of class 0, where there are classes
    Counted counted
    RowStatistics of_row
    ClassWeights classes
    bint owns_statistics
    bint owns_rows          # else they are a loader's scratch
    bint shared             # by several threads: nodes are relocated before they are grown
    bint in_one             # its arrays lie behind it, but for `number`
    bint grows              # and but for `entries`, which get more room as they are written

cdef struct Relocation:
    # A move of columns to other buffers.
    const Buffers* old
    Buffers* new          # made by `relocate_rows`
    const Column* columns
    const CountRule* rule
    uint32_t* scratch       # a number per row of the new buffers
    Counted* counted        # what is counted there, added to

cdef Buffers* new_buffers(int64_t n_rows) noexcept nogil
cdef void free_buffers(Buffers* w) noexcept nogil
cdef bint reserve_entries(Buffers* w, int64_t* room, int64_t n) noexcept nogil
cdef Buffers* relocate_rows(Buffers* old, const OpenNode* node, int64_t n_entries) noexcept nogil
cdef int64_t relocate_features(const Relocation* move, const entry_t* entries,
                               PresortedFeature* features, int64_t n_features,
                               int64_t at) noexcept nogil
cdef Buffers* relocate(Buffers* old, const entry_t* entries, OpenNode* node, const Column* columns,
                       const CountRule* rule) noexcept nogil
cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil


cdef inline int64_t entries_of_features(const PresortedFeature* features, int64_t n_features,
                                        int64_t n) noexcept nogil:
    """Entries of columns of a node of n rows; those that are counted have one for each row."""
    cdef int64_t entries = 0
    cdef int64_t r
    for r in range(n_features):
        entries += features[r].length if features[r].length > 0 else n
    return entries
