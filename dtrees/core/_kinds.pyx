"""Kinds of rows: numbers of the combinations of training sets that rows of a node are in.

A combination is a mask, a bit for each set. Masks get numbers as they come, by which rows are
counted::

    mask      0b0111   0b1011   0b0111   0b1111 ...
    number       0        1        0        2
"""
import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc


cdef bint begin_kinds(Kinds* kinds) noexcept nogil:
    """Room for the first numbers; False where there is none."""
    kinds.count = 0
    kinds.size = 64
    kinds.masks = <uint64_t*>malloc(kinds.size * sizeof(uint64_t))
    kinds.keys = <uint64_t*>calloc(kinds.size, sizeof(uint64_t))
    kinds.numbers = <uint16_t*>malloc(kinds.size * sizeof(uint16_t))
    return kinds.masks != NULL and kinds.keys != NULL and kinds.numbers != NULL


cdef void free_kinds(Kinds* kinds) noexcept nogil:
    free(kinds.masks)
    free(kinds.keys)
    free(kinds.numbers)


cdef bint widen_kinds(Kinds* kinds) noexcept nogil:
    """Twice the room; False where there is none."""
    cdef Kinds wide
    cdef int64_t k, at
    wide.count = kinds.count
    wide.size = 2 * kinds.size
    wide.masks = <uint64_t*>malloc(wide.size * sizeof(uint64_t))
    wide.keys = <uint64_t*>calloc(wide.size, sizeof(uint64_t))
    wide.numbers = <uint16_t*>malloc(wide.size * sizeof(uint16_t))
    if wide.masks == NULL or wide.keys == NULL or wide.numbers == NULL:
        free_kinds(&wide)
        return False
    for k in range(kinds.count):
        at = slot_of(&wide, kinds.masks[k])
        wide.masks[k] = wide.keys[at] = kinds.masks[k]
        wide.numbers[at] = <uint16_t>k
    free_kinds(kinds)
    kinds[0] = wide
    return True


cdef masks_of(const Kinds* kinds):
    """The mask of every number; uint64 (n_kinds,), at least one."""
    cdef int64_t k
    cdef uint64_t[::1] masks = np.zeros(max(kinds.count, 1), dtype=np.uint64)
    for k in range(kinds.count):
        masks[k] = kinds.masks[k]
    return np.asarray(masks)
