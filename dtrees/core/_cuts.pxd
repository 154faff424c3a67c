"""Splits that are drawn at random; see _cuts.pyx."""
from libc.stdint cimport int32_t, uint32_t

from dtrees.core._columns cimport Column
from dtrees.core._reader cimport Reader
from dtrees.core._search cimport Search
from dtrees.core._workspace cimport OpenNode

cdef void search_random(Search* q, int32_t column, uint32_t last_number,
                        const double* value) noexcept nogil
cdef bint search_cut(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, const double* value) noexcept nogil
cdef void finish_cut(Reader* reader, Search* q, const OpenNode* node,
                     const Column* column) noexcept nogil
