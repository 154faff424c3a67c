"""Rows of a column to the cells of their codes; see _count.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport Layout

cdef struct NodeRows:
    # Rows of a node, what each adds, and to which of several histograms.
    int64_t n
    const uint32_t* rows        # ascending
    const uint32_t* row_id      # by row: its row of the coded table; NULL: the same
    # by row; NULL: the next two are given. Of several outputs these, of gathered rows, by place
    const RowStatistics* of_row
    const int64_t* weight       # in the order of the rows
    const int64_t* target       # as `encode` gives it
    const uint8_t* cell         # histogram of each row; NULL: there is one
    const uint16_t* combination     # the same, of many
    const uint64_t* members     # by row, a bit for each histogram that gets it; NULL: one does
    int64_t size                # words of a histogram
    const uint32_t* rank        # by code: its number in the histogram; NULL: the code
    uint8_t way                 # of gathered rows: 1 .. 2**way share a cell, and so on

cdef bint count_column(const Column* column, const NodeRows* rows, const Layout* layout,
                       int64_t* cells) noexcept nogil
