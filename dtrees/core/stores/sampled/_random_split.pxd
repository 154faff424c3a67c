"""Splits that are drawn at random; see _random_split.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport STORED_SPARSE, Column, last_ordered
from dtrees.core.data._structs cimport ALL_ORDERED
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, key_of_split
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader

cdef inline bint has_threshold(const Column* column) noexcept nogil:
    """Whether a column is split without a look at its bins."""
    return column.storage != STORED_SPARSE and last_ordered(column) == ALL_ORDERED


cdef inline bint toss_missing(const Search* q, int32_t column, bint tossed) noexcept nogil:
    """Whether missing values go left, by the toss of a coin; False when there is none to toss."""
    return tossed and key_of_split(q, column) & 1


cdef inline double drawn_value(const Search* q, int32_t column, double least,
                               double most) noexcept nogil:
    """A number between two, drawn by the key of the node and the column."""
    cdef uint64_t draw = hash64(key_of_split(q, column), 0)
    # halves: a difference of huge values is infinite
    cdef double step = <double>(draw >> 11) * 1.1102230246251565e-16 * (most / 2 - least / 2)
    return (least + step) + step


cdef uint32_t threshold_code(const Search* q, int32_t column, uint32_t low, uint32_t high,
                             const double* value) noexcept nogil
cdef void search_random(Search* q, int32_t column, uint32_t last_number,
                        const double* value) noexcept nogil
cdef bint draw_split(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, const double* value) noexcept nogil
cdef void finish_drawn_split(ColumnLoader* loader, Search* q, const OpenNode* node,
                             const Column* column) noexcept nogil

cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil
