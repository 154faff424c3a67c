"""The store of presorted entries; see _presorted_store.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef struct PresortedStore:
    Store store
    Buffers* w
    const PresortedFeature* chosen  # of the column of the split
    const int64_t* histogram    # of the counted columns; NULL: not kept

cdef PresortedStore presorted_store() noexcept nogil
cdef bint partition_rows(const TrainParameters* params, Buffers* w, const OpenNode* node,
                         OpenNode* left, OpenNode* right) noexcept nogil
cdef void search_columns(PresortedStore* s, OpenNode* node) noexcept nogil
cdef bint reserve_features(const OpenNode* node, OpenNode* left, OpenNode* right) noexcept nogil
cdef void give_back(OpenNode* child, int64_t n_features) noexcept nogil
cdef void count_features(const Buffers* w, const TrainParameters* params,
                         const PresortedFeature* features, int64_t n_features,
                         const OpenNode* node, int64_t* histogram) noexcept nogil
cdef void give_histograms(const Buffers* w, OpenNode* node, int64_t* of_smaller, OpenNode* left,
                          OpenNode* right) noexcept nogil


cdef inline bint keeps_histogram(const Buffers* w, const OpenNode* node) noexcept nogil:
    """Whether a node is worth the memory of its histograms."""
    return w.counted.n_words > 0 and not node.is_leaf and node.totals.n >= w.counted.least_rows


cdef inline const OpenNode* smaller_child(const OpenNode* left,
                                          const OpenNode* right) noexcept nogil:
    return right if right.totals.n < left.totals.n else left
