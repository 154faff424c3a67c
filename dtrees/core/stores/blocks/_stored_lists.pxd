"""Lists of numbers that are not zero; see _stored_lists.pyx."""
from libc.stdint cimport int64_t, uint64_t

cdef struct Numbers:
    # A list.
    int64_t* place
    int64_t* value
    uint64_t* who
    bint has_who
    int64_t n
    int64_t room

cdef bint append(Numbers* numbers, int64_t place, int64_t value, uint64_t who) noexcept nogil
cdef arrays_of(const Numbers* numbers)
