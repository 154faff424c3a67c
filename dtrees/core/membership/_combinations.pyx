"""Combinations of rows: numbers of the combinations of training sets that rows of a node are in.

A combination is a mask, a bit for each set. Masks get numbers as they come, by which rows are
counted::

    mask      0b0111   0b1011   0b0111   0b1111 ...
    number       0        1        0        2
"""
import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc


cdef bint begin_combinations(Combinations* combinations) noexcept nogil:
    """Room for the first numbers; False where there is none."""
    combinations.count = 0
    combinations.size = 64
    combinations.masks = <uint64_t*>malloc(combinations.size * sizeof(uint64_t))
    combinations.keys = <uint64_t*>calloc(combinations.size, sizeof(uint64_t))
    combinations.numbers = <uint16_t*>malloc(combinations.size * sizeof(uint16_t))
    return combinations.masks != NULL and combinations.keys != NULL and combinations.numbers != NULL


cdef void free_combinations(Combinations* combinations) noexcept nogil:
    free(combinations.masks)
    free(combinations.keys)
    free(combinations.numbers)


cdef bint widen_combinations(Combinations* combinations) noexcept nogil:
    """Twice the room; False where there is none."""
    cdef Combinations wide
    cdef int64_t k, at
    wide.count = combinations.count
    wide.size = 2 * combinations.size
    wide.masks = <uint64_t*>malloc(wide.size * sizeof(uint64_t))
    wide.keys = <uint64_t*>calloc(wide.size, sizeof(uint64_t))
    wide.numbers = <uint16_t*>malloc(wide.size * sizeof(uint16_t))
    if wide.masks == NULL or wide.keys == NULL or wide.numbers == NULL:
        free_combinations(&wide)
        return False
    for k in range(combinations.count):
        at = slot_of(&wide, combinations.masks[k])
        wide.masks[k] = wide.keys[at] = combinations.masks[k]
        wide.numbers[at] = <uint16_t>k
    free_combinations(combinations)
    combinations[0] = wide
    return True


cdef masks_of(const Combinations* combinations):
    """The mask of every number; uint64 (n_combinations,), at least one."""
    cdef int64_t k
    cdef uint64_t[::1] masks = np.zeros(max(combinations.count, 1), dtype=np.uint64)
    for k in range(combinations.count):
        masks[k] = combinations.masks[k]
    return np.asarray(masks)
