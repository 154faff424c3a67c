"""Statistics per code; see _histogram.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from dtrees.core._search cimport Search
from dtrees.core._structs cimport Mode, Payload

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef void add_rows(const code_t* codes, const uint32_t* rows, int64_t n, const Payload* payload,
                   Mode mode, int64_t stride, int64_t* histogram) noexcept nogil
cdef void groups_of_histogram(Search* q, const int64_t* histogram, int64_t n_codes) noexcept nogil
