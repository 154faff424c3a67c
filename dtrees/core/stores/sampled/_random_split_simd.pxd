"""Random splits of many columns at once; see _random_split_simd.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader

cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil
