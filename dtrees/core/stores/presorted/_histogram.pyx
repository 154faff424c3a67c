"""Histograms of the columns of few codes of a presorted node, which go down with it.

A node that is large enough keeps the histogram of each counted column. The smaller child is
counted; the larger one is the parent less the smaller one, in the parent's memory.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free
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


cdef void count_features(const Buffers* w, const TrainParameters* params,
                         const PresortedFeature* features, int64_t n_features,
                         const OpenNode* node, int64_t* histogram) noexcept nogil:
    """Add the rows of a node to the histograms that are kept of some of its columns."""
    cdef NodeRows rows = node_rows(w, node.start, node.totals.n)
    cdef const PresortedFeature* feature
    cdef int64_t r
    for r in range(n_features):
        feature = features + r
        if feature.length == 0 and feature.offset >= 0:
            count_column(params.columns + feature.column, &rows, &params.layout,
                         histogram + feature.offset)


cdef void give_histograms(const Buffers* w, OpenNode* node, int64_t* of_smaller, OpenNode* left,
                          OpenNode* right) noexcept nogil:
    """Give the children their histograms, from those of the node, which are used up, and of the
    smaller child. O(cells)."""
    cdef bint is_right = smaller_child(left, right) == right
    cdef OpenNode* smaller = right if is_right else left
    cdef OpenNode* larger = left if is_right else right
    if keeps_histogram(w, larger):
        subtract_words(node.histogram, of_smaller, w.counted.n_words)
        larger.histogram = node.histogram
        node.histogram = NULL
    if keeps_histogram(w, smaller):
        smaller.histogram = of_smaller
    else:
        free(of_smaller)
