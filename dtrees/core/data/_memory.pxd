"""Room for arrays: one after the other, and one answer for all of them."""
from libc.stdlib cimport calloc, free, malloc, realloc

cdef extern from "data/memory.h" nogil:
    void advise_large(void*, size_t)


cdef inline bint claim(void** room, size_t n_bytes) noexcept nogil:
    """Room instead of what there was, which is forgotten; False and NULL without memory."""
    free(room[0])
    room[0] = malloc(n_bytes)
    advise_large(room[0], n_bytes)
    return room[0] != NULL


cdef inline bint claim_zeros(void** room, size_t n_bytes) noexcept nogil:
    """The same, all zero."""
    free(room[0])
    room[0] = calloc(n_bytes, 1)
    advise_large(room[0], n_bytes)
    return room[0] != NULL


cdef inline bint resize(void** room, size_t n_bytes) noexcept nogil:
    """More room or less, with what there was; False without memory, and the old room stays."""
    cdef void* new = realloc(room[0], n_bytes)
    if new == NULL:
        return False
    advise_large(new, n_bytes)
    room[0] = new
    return True
