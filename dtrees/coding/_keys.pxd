"""Types of values and of codes, and the *key* of a value: an unsigned integer of the same order.

A float is ordered like an unsigned integer once its sign bit is flipped (positive) or all its bits
are (negative).
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused value_t:
    float
    double

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef union Bits32:
    float value
    uint32_t bits

cdef union Bits64:
    double value
    uint64_t bits


cdef inline uint64_t key_of(value_t value) noexcept nogil:
    """The key of a value that is neither NaN nor -0.0."""
    cdef Bits32 narrow
    cdef Bits64 wide
    if value_t is float:
        narrow.value = value
        return narrow.bits ^ ((<uint32_t>(<int32_t>narrow.bits >> 31)) | 0x80000000U)
    else:
        wide.value = value
        return wide.bits ^ ((<uint64_t>(<int64_t>wide.bits >> 63)) | 0x8000000000000000ULL)


cdef inline value_t value_of(uint64_t key, value_t kind) noexcept nogil:
    """The value of a key; ``kind`` only says which type."""
    cdef Bits32 narrow
    cdef Bits64 wide
    if value_t is float:
        narrow.bits = <uint32_t>key
        narrow.bits ^= (<uint32_t>(<int32_t>(~narrow.bits) >> 31)) | 0x80000000U
        return narrow.value
    else:
        wide.bits = key ^ ((<uint64_t>(<int64_t>(~key) >> 63)) | 0x8000000000000000ULL)
        return wide.value
