"""Columns read afresh from the codes of a node's rows; see _drawn.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core._search cimport Search
from dtrees.core._structs cimport Payload, Run
from dtrees.core._workspace cimport Column, OpenNode, Workspace

cdef struct Reader:
    # Scratch of one growth.
    int64_t n_rows          # most rows of a node
    Payload payload         # of the rows of a node, in their order
    bint has_payload        # gathered for this node
    uint64_t* packed        # the same for two classes: rows, weight, weight of class 1
    bint is_packed          # the node's sums fit the packed fields
    int64_t* cells          # a histogram, all zero between two columns
    int64_t n_cells
    uint64_t* hit           # bit per code, all zero between two columns
    int64_t n_words
    uint64_t* entries       # of one column: code | place of the row in the node
    uint64_t* scratch
    int64_t n_entries       # room
    uint32_t* codes         # of one column, in the order of the rows
    uint32_t* place         # by row of the workspace, kept for sparse columns
    Run run                 # of the column that was read last


cdef Reader* new_reader(const Payload* payload, int64_t n_rows, int64_t n_places,
                        bint sparse) noexcept nogil
cdef void free_reader(Reader* reader) noexcept nogil
cdef void read_rows(Reader* reader, const Search* q, const Workspace* w,
                    const OpenNode* node) noexcept nogil
cdef bint search_drawn(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                       const Column* column, int32_t number) noexcept nogil
cdef void groups_of_drawn(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                          const Column* column, int32_t number) noexcept nogil
cdef bint search_cut(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                     const Column* column, int32_t number, const double* value) noexcept nogil
