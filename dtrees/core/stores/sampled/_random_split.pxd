"""Splits that are drawn at random; see _random_split.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from dtrees.core.data._columns cimport Column
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader

cdef void search_random(Search* q, int32_t column, uint32_t last_number,
                        const double* value) noexcept nogil
cdef bint draw_split(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, const double* value) noexcept nogil
cdef void finish_drawn_split(ColumnLoader* loader, Search* q, const OpenNode* node,
                             const Column* column) noexcept nogil

cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil
