"""Random cuts of many columns at once; see _lanes.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core._columns cimport Column
from dtrees.core._plan cimport Plan
from dtrees.core._reader cimport Reader
from dtrees.core._search cimport Search
from dtrees.core._workspace cimport OpenNode

cdef int64_t search_lanes(Reader* reader, Search* q, const OpenNode* node, const Plan* plan,
                          int32_t* columns, int64_t count) noexcept nogil
