"""How columns are counted, and where the sums of a node stand; see _node_counts.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dtrees.core.data._columns cimport Column

cpdef enum:
    LISTED = 255            # no histogram, but a list of what occurs; else bits of an interval

cpdef enum:
    # The moment is in three parts, which add up without a carry.
    N = 0
    WEIGHT = 1
    TARGET = 2
    MOMENT = 3
    LOWEST = 6
    HIGHEST = 7
    LOWEST_SHARE = 8        # of targets for their weights, rounded down,
    HIGHEST_SHARE = 9       # and up
    CLASS_0 = 10


cdef inline int64_t cells_of(const Column* column, uint8_t way) noexcept nogil:
    """Cells of the histogram of a column, with that of missing values."""
    return interval_of(column.n_codes, way) + 1


cdef inline int64_t interval_of(int64_t code, uint8_t way) noexcept nogil:
    """The cell of a code: neighbours that differ in their last `way` bits only share one."""
    return (code + (<int64_t>1 << way) - 1) >> way


cdef inline uint32_t last_code(int64_t interval, uint8_t way, uint32_t n_codes) noexcept nogil:
    """The last code of an interval."""
    return <uint32_t>min(interval << way, <int64_t>n_codes)


cdef inline int64_t stretch_of(const int64_t* start, int64_t k, int64_t n,
                               int64_t place) noexcept nogil:
    """The stretch, k or behind it, of n, that begins at a place or before; start[k] <= place.

    O(log of how far).
    """
    cdef int64_t step = 1
    cdef int64_t high, middle
    while k + step < n and start[k + step] <= place:
        k += step
        step *= 2
    high = min(k + step, n)
    while high - k > 1:
        middle = (k + high) >> 1
        if start[middle] <= place:
            k = middle
        else:
            high = middle
    return k
