"""Room for arrays: one after the other, and one answer for all of them."""
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

cdef extern from "data/memory.h" nogil:
    void advise_large(void*, size_t)
    void let_go_of_pages(const void*, size_t)
    void* resize_pages(void*, size_t, size_t)
    void free_pages(void*, size_t)

cdef enum:
    LEAST_PAGES = 1 << 12   # bytes that are worth pages of their own


cdef inline bint claim(void** room, size_t n_bytes) noexcept nogil:
    """Room instead of what there was, which is forgotten; False and NULL without memory."""
    free(room[0])
    room[0] = malloc(n_bytes)
    advise_large(room[0], n_bytes)
    return room[0] != NULL


cdef inline bint claim_zeros(void** room, size_t n_bytes) noexcept nogil:
    """Zeros instead of what there was, which is forgotten; False and NULL without memory."""
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


cdef inline bint resize_in_pages(void** room, size_t* paged, size_t used,
                                 size_t n_bytes) noexcept nogil:
    """Resize memory in pages of its own, where there are such and it is large; what is not written
    yet takes no memory then.

    paged : bytes of the pages, 0: `room` is of the heap; `free_room` needs it. used : bytes that
    stay.
    """
    cdef void* new = NULL
    if paged[0] > 0 or n_bytes >= LEAST_PAGES:
        new = resize_pages(room[0] if paged[0] > 0 else NULL, paged[0], n_bytes)
    if new == NULL:
        return paged[0] == 0 and resize(room, n_bytes)
    if paged[0] == 0:
        if used > 0:        # else there may be no room
            memcpy(new, room[0], used)
        free(room[0])
    room[0] = new
    paged[0] = n_bytes
    return True


cdef inline void free_room(void* room, size_t paged) noexcept nogil:
    """Give back what `resize_in_pages` has got."""
    if paged > 0:
        free_pages(room, paged)
    else:
        free(room)
