"""Splits that are drawn at random; see _random_split.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader

cdef void search_random(Search* q, int32_t column, uint32_t last_number,
                        const double* value) noexcept nogil
cdef void draw_splits(ColumnLoader* loader, Search* q, const OpenNode* node,
                      const TrainParameters* params, const int32_t* columns, int64_t count,
                      double perfect) noexcept nogil

cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil
