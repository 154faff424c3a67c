"""Moving rows and entries to the children of a node; see _partition.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport PresortedFeature, Split, entry_t

cdef struct Route:
    # A test on ranks (or codes): subset, or low < rank <= high; rank 0 by missing_left.
    const uint64_t* subset
    int64_t subset_words
    uint32_t low
    uint32_t high
    uint8_t missing_left

cdef struct ChildFeatures:
    # Where the features of the children go, with room for all: NULL for leaves, which need none.
    PresortedFeature* left
    int64_t* n_left         # counts what is appended
    PresortedFeature* right
    int64_t* n_right
    int64_t least           # rows of a leaf


cdef inline bint goes_left(const Route* route, uint32_t rank) noexcept nogil:
    """Whether rows with this rank go left; O(1)."""
    if rank == 0:
        return route.missing_left
    if route.subset != NULL:
        if rank >> 6 >= route.subset_words:
            return False
        return (route.subset[rank >> 6] >> (rank & 63)) & 1
    return route.low < rank and rank <= route.high


cdef Route route_of(const Split* split, uint32_t last_ordered, const uint64_t* subset,
                    int64_t subset_words) noexcept nogil
cdef void mark_feature(const Route* route, const entry_t* entries, const PresortedFeature* feature,
                       const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil
cdef void mark_codes(const Route* route, const Column* column, const uint32_t* row_id,
                     const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil
cdef int64_t partition_row_list(uint32_t* rows, int64_t n, const uint8_t* side,
                                uint32_t* scratch) noexcept nogil
cdef int64_t partition_features(entry_t* entries, const PresortedFeature* features,
                                int64_t n_features, const uint8_t* side, entry_t* scratch,
                                const ChildFeatures* children) noexcept nogil
