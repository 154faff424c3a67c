"""Columns that are drawn, and read afresh from the codes of a node's rows; see _drawn.pyx."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from dtrees.core._columns cimport Column
from dtrees.core._plan cimport Plan
from dtrees.core._reader cimport Reader
from dtrees.core._search cimport Search
from dtrees.core._workspace cimport OpenNode

cdef int64_t draw_columns(const Plan* plan, uint64_t path, int32_t* order, int32_t* swapped,
                          int64_t first, int64_t count) noexcept nogil
cdef bint search_drawn(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil
cdef void groups_of_drawn(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                          int32_t number) noexcept nogil
