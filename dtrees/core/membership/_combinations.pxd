"""Declarations of the combinations of rows; see _combinations.pyx."""
from libc.stdint cimport int64_t, uint16_t, uint64_t

cdef enum:
    MOST_COMBINATIONS = 1 << 16

cdef struct Combinations:
    # Masks by number, and numbers by mask: open addressing.
    uint64_t* masks
    int64_t count
    uint64_t* keys          # 0: empty; no combination has nobody
    uint16_t* numbers
    int64_t size            # a power of two

cdef bint begin_combinations(Combinations* combinations, int64_t size) noexcept nogil
cdef void free_combinations(Combinations* combinations) noexcept nogil
cdef bint widen_combinations(Combinations* combinations) noexcept nogil
cdef masks_of(const Combinations* combinations)


cdef inline int64_t slot_of(const Combinations* combinations, uint64_t mask) noexcept nogil:
    cdef int64_t last = combinations.size - 1
    cdef int64_t at = <int64_t>((mask * <uint64_t>0x9E3779B97F4A7C15) >> 40) & last
    while combinations.keys[at] != 0 and combinations.keys[at] != mask:
        at = (at + 1) & last
    return at


cdef inline int64_t number_of(Combinations* combinations, uint64_t mask) noexcept nogil:
    """The number of a mask, which gets one when it is new; -1 when there are too many."""
    cdef int64_t at = slot_of(combinations, mask)
    if combinations.keys[at] == mask:
        return combinations.numbers[at]
    if combinations.count == MOST_COMBINATIONS:
        return -1
    if 2 * combinations.count >= combinations.size:
        if not widen_combinations(combinations):
            return -1
        at = slot_of(combinations, mask)
    combinations.keys[at] = mask
    combinations.masks[combinations.count] = mask
    combinations.numbers[at] = <uint16_t>combinations.count
    combinations.count += 1
    return combinations.count - 1
