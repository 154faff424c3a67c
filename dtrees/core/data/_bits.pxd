"""Instructions of the processor that compilers have names for."""
from libc.stdint cimport uint64_t

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil
    int count_bits "__builtin_popcountll"(uint64_t) noexcept nogil
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil
