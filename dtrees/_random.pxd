"""Draws by key: see _random.pyx for the contract. Everything is inline and needs no GIL."""
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    typedef unsigned __int128 dtrees_uint128;
    """
    ctypedef unsigned long long uint128_t "dtrees_uint128"

# Streams keep the draws of different purposes apart: the second word of the key.
cdef enum Stream:
    STREAM_SAMPLE_ROWS = 1      # which rows quantile cuts are read from
    STREAM_FEATURES = 2         # which columns a node searches
    STREAM_BOOTSTRAP = 3        # how often a row is in the sample of a tree
    STREAM_ROUNDING = 5         # which way that is rounded, where rows have weights

cdef inline uint64_t _high_product(uint64_t a, uint64_t b) noexcept nogil:
    """Upper 64 bits of the 128-bit product."""
    return <uint64_t>((<uint128_t>a * b) >> 64)


cdef inline void philox(uint64_t seed, uint64_t stream, uint64_t block, uint64_t branch,
                        uint64_t* out) noexcept nogil:
    """Philox4x64-10: four draws of 64 bits for the key (seed, stream), counter (block, branch)."""
    cdef uint64_t c0 = block, c1 = branch, c2 = 0, c3 = 0
    cdef uint64_t k0 = seed, k1 = stream, h0, h1, l0, l1
    cdef int _
    for _ in range(10):
        h0 = _high_product(0xD2E7470EE14C6C93ULL, c0)
        l0 = 0xD2E7470EE14C6C93ULL * c0
        h1 = _high_product(0xCA5A826395121157ULL, c2)
        l1 = 0xCA5A826395121157ULL * c2
        c0 = h1 ^ c1 ^ k0
        c1 = l1
        c2 = h0 ^ c3 ^ k1
        c3 = l0
        k0 += 0x9E3779B97F4A7C15ULL
        k1 += 0xBB67AE8584CAA73BULL
    out[0] = c0
    out[1] = c1
    out[2] = c2
    out[3] = c3


cdef inline uint64_t philox_draw(uint64_t seed, uint64_t stream, uint64_t branch,
                                 uint64_t i) noexcept nogil:
    """Draw number ``i`` of a key and branch alone; four neighbours cost as much as one."""
    cdef uint64_t[4] four
    philox(seed, stream, i >> 2, branch, four)
    return four[i & 3]


cdef inline uint64_t below(uint64_t draw, uint64_t n) noexcept nogil:
    """A draw brought to 0..n-1 by a multiplication; the bias is below n / 2**64."""
    return _high_product(draw, n)


cdef inline uint64_t hash64(uint64_t a, uint64_t b) noexcept nogil:
    """Mixes two words into one: the name of a node from its parent's name and its side."""
    cdef uint64_t x = a + 0x9E3779B97F4A7C15ULL * (b + 1)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)
