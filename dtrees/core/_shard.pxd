"""Declarations of the shard; see _shard.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dtrees.core._columns cimport Column, Columns
from dtrees.core._plan cimport Plan
from dtrees.core._search cimport Search
from dtrees.core._structs cimport Payload


cdef class Shard:
    cdef Columns bound
    cdef Plan plan
    cdef Column* columns
    cdef Payload payload
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_live
    cdef readonly bint rows_only
    cdef readonly bint is_weighted
    cdef uint8_t[::1] live      # 1: the row has a positive weight
    cdef list alive             # arrays whose memory the structs point to

    cdef bind_target(self, target, rules, bint zero_one)
    cdef bind_payload(self, target, rules, weight, bint classification)
    cdef int64_t cells_of(self, int32_t column)
    cdef found(self, Search* q, const int64_t* histogram)
    cdef bind_limits(self, target, rules, double total_weight)
