"""Counting the rows of a node of several sets; see _shared_histogram.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport PACKED, SUM, Layout
from dtrees.core.stores.shared._shared_nodes cimport SharedNode

cdef struct Counting:
    # What a row of a node adds to the cells of a histogram, and where.
    const RowStatistics* of_row
    Layout layout
    const int64_t* added    # by row of the node: all that it adds; NULL: by `of_row`
    const int64_t* some_added   # the same of those that some members have
    const uint32_t* rank    # by code: its number in the histogram; NULL: the code
    int64_t size            # numbers of a histogram

cdef inline bint are_beside(const Counting* counting) noexcept nogil:
    """Whether the numbers of all members stand side by side, of what only some have."""
    return counting.layout.kind == PACKED or counting.layout.kind == SUM


cdef inline int64_t numbers_of_some(const SharedNode* node) noexcept nogil:
    """How many stand side by side, for each word of a cell."""
    return (node.n_members + 3) & ~3


cdef int64_t rank_codes(const SharedNode* node, const Column* column, uint64_t* hit,
                        uint32_t* code, uint32_t* rank) noexcept nogil
cdef void count_rows(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil
cdef void count_some(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil
