"""How the codes of a column are counted in rounds; see _code_ways.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dtrees.core.data._columns cimport Column

cpdef enum:
    LISTED = 255            # no histogram, but a list of what occurs; else bits of an interval


cdef inline int64_t cells_of(const Column* column, uint8_t way) noexcept nogil:
    """Cells of the histogram of a column, with that of missing values."""
    return interval_of(column.n_codes, way) + 1


cdef inline int64_t interval_of(int64_t code, uint8_t way) noexcept nogil:
    """The cell of a code: neighbours that differ in their last `way` bits only share one."""
    return (code + (<int64_t>1 << way) - 1) >> way


cdef inline uint32_t last_code(int64_t interval, uint8_t way, uint32_t n_codes) noexcept nogil:
    """The last code of an interval."""
    return <uint32_t>min(interval << way, <int64_t>n_codes)
