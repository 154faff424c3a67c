"""Declarations of the shard; see _shard.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dtrees.core._finish cimport Plan
from dtrees.core._route cimport Route
from dtrees.core._search cimport Search
from dtrees.core._structs cimport Payload
from dtrees.core._workspace cimport Column


cdef class Shard:
    cdef Plan plan
    cdef Column* columns
    cdef Payload payload
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_live
    cdef uint8_t[::1] live      # 1: the row has a positive weight
    cdef list alive             # arrays whose memory the structs point to

    cdef const void* pointer(self, array, dtype)
    cdef bind_columns(self, coded)
    cdef bind_target(self, target, rules)
    cdef bind_payload(self, target, rules, weight, bint classification)
    cdef found(self, Search* q, const int64_t* histogram)
    cdef bind_limits(self, target, rules, double total_weight)


cdef void column_histogram(const Column* column, const Payload* payload, const Plan* plan,
                           const uint32_t* rows, int64_t n, int64_t* histogram) noexcept nogil
cdef void mark_codes(const Route* route, const Column* column, const uint32_t* rows, int64_t n,
                     uint8_t* side) noexcept nogil
