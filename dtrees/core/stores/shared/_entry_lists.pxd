"""Declarations of lists of entries that nodes share; see _entry_lists.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._memory cimport resize
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.stores.shared._shared_nodes cimport SharedNode, rows_of
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef enum:
    SPARE = 16              # of room that may not be enough, such a part more
    MOST_READ = 2           # nodes read entries of at most so many times their rows, or,
    NEARLY_ALL = 16         # where nobody else does, of a part of them more


cdef bint share_entries(SharedNode* node, SharedNode* child) noexcept nogil
cdef bint has_other_readers(const SharedStore* s, const SharedNode* node) noexcept nogil
cdef bint next_copies(const SharedStore* s, int64_t most_offloaded) noexcept nogil
cdef void part_entries(SharedStore* s, SharedNode* node) noexcept nogil
cdef void push_children(SharedStore* s, SharedNode* left, SharedNode* right) noexcept nogil


cdef inline int64_t likely_entries(const SharedNode* node, int64_t n_rows) noexcept nogil:
    """Room for the entries of n rows out of those that a node reads, if all rows have alike."""
    cdef int64_t all_rows = rows_of(node) if node.readers == NULL else node.readers.n_rows
    cdef double share = <double>n_rows / (all_rows + 1)
    return min(node.n_entries + 1,
               <int64_t>(share * node.n_entries * (SPARE + 1) / SPARE) + 64)


cdef inline bint has_room(void** entries, int64_t* room, int64_t n) noexcept nogil:
    """Make room for n entries, and one more; False without memory."""
    if n < room[0]:
        return True
    room[0] = max(n + 1, room[0] + room[0] // SPARE)
    return resize(entries, room[0] * sizeof(uint64_t))


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
