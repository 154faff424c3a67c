"""Counting the rows of a node of several sets; see _shared_counts.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core._columns cimport Column
from dtrees.core._shared_nodes cimport SharedNode
from dtrees.core._structs cimport Mode, Payload

cdef struct Counting:
    # What a row of a node adds to the cells of a histogram, and where.
    const Payload* payload
    Mode mode
    int64_t stride          # numbers of a cell
    const int64_t* added    # by row of the node: all that it adds; NULL: by payload and mode
    const int64_t* some_added   # the same of those that some members have
    const uint32_t* rank    # by code: its place in the histogram; NULL: the code
    int64_t size            # numbers of a histogram

cdef inline int64_t numbers_of_some(const SharedNode* node) noexcept nogil:
    """Numbers of a code in the histogram of what some members have: where rows are packed."""
    return (node.n_members + 3) & ~3

cdef int64_t rank_codes(const SharedNode* node, const Column* column, uint64_t* hit,
                        uint32_t* code, uint32_t* rank) noexcept nogil
cdef void count_rows(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil
cdef void count_some(const SharedNode* node, const Column* column, const Counting* counting,
                     int64_t* cells) noexcept nogil
