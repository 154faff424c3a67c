"""Declarations of the sorting of entries; see _sorted_entries.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column

cdef void count_narrow(const uint8_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                       uint32_t* own, uint32_t* count) noexcept nogil
cdef void count_wide(const uint16_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                     uint32_t* count) noexcept nogil
cdef int64_t entries_of_narrow(uint32_t* own, uint32_t* count, int64_t n, int64_t n_codes,
                               uint32_t* entries, uint32_t* majority) noexcept nogil
cdef int64_t entries_of_wide(const Column* column, const uint32_t* row_id, int64_t n,
                             uint32_t* entries, uint32_t* scratch) noexcept nogil
cdef void entries_of_widest(const Column* column, const uint32_t* row_id, int64_t n,
                            uint64_t* entries, uint64_t* scratch) noexcept nogil
cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil
cdef int64_t leave_out_majority(uint32_t* entries, int64_t n, uint32_t* fill) noexcept nogil
