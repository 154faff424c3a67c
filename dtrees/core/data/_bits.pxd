"""Instructions of the processor that compilers have names for."""
from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil
    int leading_zeros "__builtin_clzll"(uint64_t) noexcept nogil
    int count_bits "__builtin_popcountll"(uint64_t) noexcept nogil
    int64_t add_atomic "__atomic_add_fetch"(int64_t*, int64_t, int order) noexcept nogil
    int64_t load_atomic "__atomic_load_n"(const int64_t*, int order) noexcept nogil
    int ACQUIRE "__ATOMIC_ACQUIRE"
    int ACQ_REL "__ATOMIC_ACQ_REL"
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil
