"""Combinations of rows: numbers of the combinations of training sets that rows of a node are in.

A combination is a mask, a bit for each set. Masks get numbers as they come, by which rows are
counted::

    mask      0b0111   0b1011   0b0111   0b1111 ...
    number       0        1        0        2
"""
import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dtrees.core.data._memory cimport claim, claim_zeros


cdef bint begin_combinations(Combinations* combinations, int64_t size) noexcept nogil:
    """Room for half of so many numbers; False where there is none. size : a power of two"""
    memset(combinations, 0, sizeof(Combinations))
    combinations.size = size
    return (claim(<void**>&combinations.masks, size * sizeof(uint64_t))
            and claim_zeros(<void**>&combinations.keys, size * sizeof(uint64_t))
            and claim(<void**>&combinations.numbers, size * sizeof(uint16_t)))


cdef void free_combinations(Combinations* combinations) noexcept nogil:
    free(combinations.masks)
    free(combinations.keys)
    free(combinations.numbers)


cdef bint widen_combinations(Combinations* combinations) noexcept nogil:
    """Twice the room; False where there is none."""
    cdef Combinations wide
    cdef int64_t k, at
    if not begin_combinations(&wide, 2 * combinations.size):
        free_combinations(&wide)
        return False
    for k in range(combinations.count):
        at = slot_of(&wide, combinations.masks[k])
        wide.masks[k] = wide.keys[at] = combinations.masks[k]
        wide.numbers[at] = <uint16_t>k
    wide.count = combinations.count
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
