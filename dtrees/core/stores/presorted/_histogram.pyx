"""Histograms of the columns of few codes of a presorted node, which go down with it.

A node that is large enough keeps the histogram of each counted column. The smaller child is
counted; the larger one is the parent less the smaller one, in the parent's memory.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport subtract_words
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores.presorted._buffers cimport Buffers


cdef NodeRows node_rows(const Buffers* w, int64_t start, int64_t n) noexcept nogil:
    """Rows of buffers, to be counted."""
    cdef NodeRows rows
    memset(&rows, 0, sizeof(NodeRows))
    rows.n = n
    rows.rows = w.rows + start
    rows.row_id = w.row_id
    rows.of_row = &w.of_row
    return rows


cdef void count_features(const Buffers* w, const TrainParameters* params, const Counters* counters,
                         const OpenNode* node, int64_t* histogram) noexcept nogil:
    """Add the rows of a node to the histograms that are kept of its counted columns."""
    cdef NodeRows rows = node_rows(w, node.start, node.totals.n)
    cdef const PresortedFeature* feature
    cdef int64_t r
    for r in range(counters.n_features):
        feature = counters.features + r
        if feature.length == 0 and feature.offset >= 0:
            count_column(params.columns + feature.column, &rows, &params.layout,
                         histogram + feature.offset)


cdef bint partition_histogram(const Buffers* w, const TrainParameters* params,
                              const Counters* counters, const OpenNode* left, const OpenNode* right,
                              int64_t** of_node, int64_t** of_left,
                              int64_t** of_right) noexcept nogil:
    """Histograms of the children that want one, from that of their parent, which is used up.

    of_left, of_right : where they go; NULL: the child wants none. False without memory. O(rows of
    the smaller child per column + cells).
    """
    cdef const OpenNode* small = left
    cdef int64_t** of_small = of_left
    cdef int64_t** of_large = of_right
    cdef int64_t* counted
    if right.totals.n < left.totals.n:
        small = right
        of_small, of_large = of_right, of_left
    if of_small == NULL and of_large == NULL:
        return True
    counted = <int64_t*>calloc(counters.n_words, sizeof(int64_t))
    if counted == NULL:
        return False
    count_features(w, params, counters, small, counted)
    if of_large != NULL:
        subtract_words(of_node[0], counted, counters.n_words)
        of_large[0] = of_node[0]
        of_node[0] = NULL
    if of_small != NULL:
        of_small[0] = counted
    else:
        free(counted)
    return True
