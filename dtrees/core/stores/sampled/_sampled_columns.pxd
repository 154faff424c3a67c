"""Columns that are drawn, and read afresh for the rows of a node; see _sampled_columns.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._columns cimport Column
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader

cdef const uint32_t* codes_to_partition(ColumnLoader* loader, Search* q, const OpenNode* node,
                                        const Column* column, bint is_subset) noexcept nogil
cdef void mark_present(ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef void forget_present(ColumnLoader* loader, const OpenNode* node) noexcept nogil
cdef int64_t drop_absent(const ColumnLoader* loader, int32_t* columns, int64_t n) noexcept nogil
cdef int64_t draw_columns(const TrainParameters* params, uint64_t path, int32_t* order,
                          int32_t* swapped, int64_t first, int64_t count) noexcept nogil
cdef bint search_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil
cdef void bins_of_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                        int32_t number) noexcept nogil
cdef void count_sides(ColumnLoader* loader, const Search* q, const OpenNode* node) noexcept nogil
cdef void take_side(ColumnLoader* loader, Search* q, const OpenNode* node,
                    int64_t bit) noexcept nogil
cdef void begin_local(ColumnLoader* loader, Search* q) noexcept nogil
cdef void end_local(Search* q, const Criterion* criterion, const OpenNode* node) noexcept nogil


cdef inline void fetch_ahead(const Column* columns, const int32_t* drawn, int64_t i,
                             int64_t n) noexcept nogil:
    """Sparse columns lie far apart: ask for what those 8 places on are read from."""
    cdef const Column* column
    if i + 16 < n:
        prefetch(columns + drawn[i + 16])
    if i + 8 < n:
        column = columns + drawn[i + 8]
        prefetch(column.rows)
        prefetch(column.rows + 16)
