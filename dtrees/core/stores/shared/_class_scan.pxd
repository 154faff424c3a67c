"""Several classes, the members of a node side by side; see _class_scan.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.search._search cimport Search
from dtrees.core.stores.shared._shared_nodes cimport SharedNode

cdef extern from "stores/shared/class_scan.h" nogil:
    enum:
        MEMBERS
        BEHIND
    ctypedef struct MemberScan:
        int64_t width
        int64_t n_classes
        int32_t* totals
        int32_t* side
        int32_t* n
        int32_t* least
        int32_t* most
        int32_t* squares
        double* best
        int64_t* at
        int32_t* n_codes

cdef enum:
    MOST_ROWS = 46340       # of a node: their square fits 31 bits

cdef struct ClassCounts:
    # The node that is searched, and histograms of one column of it.
    MemberScan scan
    int32_t* has            # (n_cells, width): -1 where a member has the rows of a cell
    int64_t n_has         # room of these, `totals` and `side`
    uint16_t* number        # by class: among those that the node holds
    uint16_t* label         # of its rows, and then of those that some have, so numbered
    int64_t n_labels        # room
    int32_t* cells          # (n_codes, n_classes, width)
    int32_t* rows           # (n_codes, width)
    int64_t n_cells         # room of both
    int64_t n_codes         # of the column

cdef void free_classes(ClassCounts* x) noexcept nogil
cdef bint number_classes(ClassCounts* x, const SharedNode* node, const RowStatistics* of_row,
                         int64_t n_classes) noexcept nogil
cdef bint count_classes(ClassCounts* x, const SharedNode* node, const Column* column,
                        const uint32_t* rank, int64_t n_codes) noexcept nogil
cdef void search_classes(ClassCounts* x, bint has_missing) noexcept nogil
cdef void take_boundary(const ClassCounts* x, Search* q, int32_t column, int member,
                        const uint32_t* code) noexcept nogil
