"""Entries of the sparse columns of shared nodes; see _shared_entries.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef bint open_entries(SharedStore* s, SharedNode* root, const uint8_t* live) noexcept nogil
cdef void note_members(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void forget_members(SharedStore* s, const SharedNode* node) noexcept nogil
cdef int64_t entries_of_member(const SharedStore* s, const SharedNode* node,
                               const PresortedFeature* feature, int member,
                               void* entries) noexcept nogil
cdef void search_entries(SharedStore* s, const SharedNode* node, int64_t first, int64_t step,
                         uint64_t members) noexcept nogil
cdef bint weigh_entries(SharedStore* s, const SharedNode* node, uint64_t* entries, int64_t n,
                        int member) noexcept nogil
cdef bint reserve_own(SharedStore* s, const PresortedFeature* feature) noexcept nogil
cdef void bins_of_subsets(SharedStore* s, const SharedNode* node, int32_t number,
                          uint64_t members) noexcept nogil
cdef void spread_codes(SharedStore* s, const SharedNode* node, int32_t number,
                       Column* spread) noexcept nogil
