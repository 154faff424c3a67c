"""Entries of the sparse columns of shared nodes; see _shared_entries.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.stores.shared._shared_nodes cimport SharedNode, SharedStore, rows_of

cdef enum:
    SPARE = 16              # of room that may not be enough, such a part more


cdef bint open_entries(SharedStore* s, SharedNode* root, const uint8_t* live) noexcept nogil
cdef void note_members(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void forget_members(SharedStore* s, const SharedNode* node) noexcept nogil
cdef void search_entries(SharedStore* s, const SharedNode* node, int64_t first, int64_t step,
                         uint64_t members) noexcept nogil
cdef bint weigh_entries(SharedStore* s, const SharedNode* node, uint64_t* entries, int64_t n,
                        int member) noexcept nogil
cdef bint reserve_own(SharedStore* s, const PresortedFeature* feature) noexcept nogil
cdef void bins_of_subsets(SharedStore* s, const SharedNode* node, int32_t number,
                          uint64_t members) noexcept nogil
cdef void spread_codes(SharedStore* s, const SharedNode* node, int32_t number,
                       Column* spread) noexcept nogil
cdef bint share_entries(SharedNode* node, SharedNode* child) noexcept nogil
cdef bint has_other_readers(const SharedStore* s, const SharedNode* node) noexcept nogil
cdef bint next_copies(const SharedStore* s, int64_t most_offloaded) noexcept nogil
cdef void part_entries(SharedStore* s, SharedNode* node) noexcept nogil
cdef void push_children(SharedStore* s, SharedNode* left, SharedNode* right) noexcept nogil
cdef bint reserve_drawn(SharedStore* s, SharedNode* node, const int32_t* drawn,
                        int64_t count) noexcept nogil
cdef void read_drawn(SharedStore* s, SharedNode* node, int32_t number) noexcept nogil


cdef inline int64_t likely_entries(const SharedNode* node, int64_t n_rows) noexcept nogil:
    """Room for the entries of n rows out of those that a node reads, if all rows have alike."""
    cdef int64_t all_rows = rows_of(node) if node.readers == NULL else node.readers.n_rows
    cdef double share = <double>n_rows / (all_rows + 1)
    return min(node.n_entries + 1,
               <int64_t>(share * node.n_entries * (SPARE + 1) / SPARE) + 64)


cdef inline int64_t keep_marked(const uint64_t* entries, const PresortedFeature* feature,
                                const uint8_t* side, uint64_t* kept) noexcept nogil:
    """Write the entries of a feature whose rows are marked by 1; returns how many. Without a
    branch.

    kept : room for one more; may be `entries`, or what was read of them.
    """
    cdef const uint64_t* e = entries + feature.offset
    cdef uint64_t entry
    cdef int64_t n = 0
    cdef int64_t i
    for i in range(feature.length):
        entry = e[i]
        kept[n] = entry
        n += side[<uint32_t>entry] & 1
    return n
