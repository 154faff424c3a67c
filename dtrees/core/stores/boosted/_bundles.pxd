"""Columns of which a row has one byte together; see _bundles.pyx."""
from libc.stdint cimport int64_t, uint8_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals

cdef list bundles_of(const Column* columns, list narrow, int64_t n_rows)
cdef void add_codes(const Column* column, int64_t first, int64_t n_rows, uint8_t* codes,
                    int64_t stride) noexcept nogil
cdef bint complete_bundled(const Column* column, const Totals* totals, int shift, int64_t min_rows,
                           int64_t* cells) noexcept nogil
