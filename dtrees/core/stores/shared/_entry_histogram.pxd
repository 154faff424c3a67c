"""Sparse columns of few codes; see _entry_histogram.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef int64_t codes_of_feature(SharedStore* s, const SharedNode* node,
                              const PresortedFeature* feature) noexcept nogil
cdef void search_by_codes(SharedStore* s, const SharedNode* node, const PresortedFeature* feature,
                          int64_t width, uint64_t members) noexcept nogil
