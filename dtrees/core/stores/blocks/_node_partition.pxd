"""The codes of the rows of a node; see _node_partition.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._columns cimport Column

cdef void read_codes(const Column* column, const uint32_t* rows, int64_t n,
                     uint32_t* codes) noexcept nogil
