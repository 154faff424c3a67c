"""Histograms of presorted nodes; see _histogram.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.histogram._count cimport NodeRows
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef struct Counters:
    # The counted columns of a node: those of a frame, or of a block of columns.
    const PresortedFeature* features
    int64_t n_features
    int64_t n_words         # of their histograms

cdef NodeRows node_rows(const Buffers* w, int64_t start, int64_t n) noexcept nogil
cdef void count_features(const Buffers* w, const TrainParameters* params, const Counters* counters,
                         const OpenNode* node, int64_t* histogram) noexcept nogil
cdef bint partition_histogram(const Buffers* w, const TrainParameters* params,
                              const Counters* counters, const OpenNode* left, const OpenNode* right,
                              int64_t** of_node, int64_t** of_left,
                              int64_t** of_right) noexcept nogil
