"""Declarations of the kinds of rows; see _kinds.pyx."""
from libc.stdint cimport int64_t, uint16_t, uint64_t

cdef enum:
    MOST_KINDS = 1 << 16

cdef struct Kinds:
    # Masks by number, and numbers by mask: open addressing.
    uint64_t* masks
    int64_t count
    uint64_t* keys          # 0: empty; no kind has nobody
    uint16_t* numbers
    int64_t size            # a power of two

cdef bint begin_kinds(Kinds* kinds) noexcept nogil
cdef void free_kinds(Kinds* kinds) noexcept nogil
cdef bint widen_kinds(Kinds* kinds) noexcept nogil
cdef masks_of(const Kinds* kinds)


cdef inline int64_t slot_of(const Kinds* kinds, uint64_t mask) noexcept nogil:
    cdef int64_t at = <int64_t>((mask * <uint64_t>0x9E3779B97F4A7C15) >> 40) & (kinds.size - 1)
    while kinds.keys[at] != 0 and kinds.keys[at] != mask:
        at = (at + 1) & (kinds.size - 1)
    return at


cdef inline int64_t number_of(Kinds* kinds, uint64_t mask) noexcept nogil:
    """The number of a mask, which gets one when it is new; -1 when there are too many."""
    cdef int64_t at = slot_of(kinds, mask)
    if kinds.keys[at] == mask:
        return kinds.numbers[at]
    if kinds.count == MOST_KINDS:
        return -1
    if 2 * kinds.count >= kinds.size:
        if not widen_kinds(kinds):
            return -1
        at = slot_of(kinds, mask)
    kinds.keys[at] = mask
    kinds.masks[kinds.count] = mask
    kinds.numbers[at] = <uint16_t>kinds.count
    kinds.count += 1
    return kinds.count - 1
