"""Where the sums of a node stand, and what its rows add; see _node_counts.pyx."""
from libc.stdint cimport int64_t, uint16_t, uint32_t

from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport CellKind, Layout
from dtrees.core.stores._dataset cimport Dataset

cpdef enum:
    # The moment is in three parts, which add up without a carry.
    N = 0
    WEIGHT = 1
    TARGET = 2
    MOMENT = 3
    LOWEST = 6
    HIGHEST = 7
    LOWEST_SHARE = 8        # of targets for their weights, rounded down,
    HIGHEST_SHARE = 9       # and up
    CLASS_0 = 10


cdef Layout layout_of_node(Dataset dataset, node)
cdef void write_statistics(const RowStatistics* of_row, CellKind kind, const uint32_t* rows,
                           const uint16_t* times, int64_t n, int64_t* weight,
                           int64_t* target) noexcept nogil
