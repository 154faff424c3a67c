"""Sorting pairs of a key and a row by radix, in O(n).

    pair   | key, 32 bits | row, 32 bits |

Pairs that lie in a cache are sorted by one digit after the other, the least significant first.
Of more pairs, a pass over the leading bits fills buckets that do, and each of them is sorted by its
other bits; a few pairs are inserted.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    DIGIT = 11              # bits sorted in one pass
    MOST_PASSES = 4
    FEW_PAIRS = 40          # that are inserted rather than counted
    CACHED = 1 << 19        # pairs that all lie in a cache (measured: .65 of the time of buckets)


cdef void _insert(uint64_t* a, int64_t n) noexcept nogil:
    """Insertion sort."""
    cdef int64_t i, k
    cdef uint64_t x
    for i in range(1, n):
        x = a[i]
        k = i
        while k > 0 and a[k - 1] > x:
            a[k] = a[k - 1]
            k -= 1
        a[k] = x


cdef void _least_digits_first(uint64_t* a, uint64_t* b, int64_t n, int bits) noexcept nogil:
    """Sorts ``a`` by the lowest ``bits`` bits of the keys; ``b`` is scratch. Stable."""
    cdef uint32_t[MOST_PASSES][1 << DIGIT] count
    cdef uint64_t* source = a
    cdef uint64_t* target = b
    cdef uint64_t* swap
    cdef int passes, width, p, shift
    cdef int64_t i
    cdef uint32_t size, total, c, k, mask
    cdef uint64_t key
    if n <= FEW_PAIRS:
        _insert(a, n)
        return
    width = 8 if n < 1024 else DIGIT
    passes = (bits + width - 1) // width
    if passes == 0:
        return
    width = (bits + passes - 1) // passes
    size = 1U << width
    mask = size - 1
    for p in range(passes):
        memset(count[p], 0, size * sizeof(uint32_t))
    for i in range(n):
        key = a[i] >> 32
        for p in range(passes):
            count[p][(key >> (p * width)) & mask] += 1
    for p in range(passes):
        shift = 32 + p * width
        total = 0
        for k in range(size):
            c = count[p][k]
            count[p][k] = total
            total += c
        for i in range(n):
            k = (source[i] >> shift) & mask
            target[count[p][k]] = source[i]
            count[p][k] += 1
        swap = source
        source = target
        target = swap
    if source != a:
        memcpy(a, source, n * sizeof(uint64_t))


cdef void sort_pairs(uint64_t* a, uint64_t* b, int64_t n, int bits) noexcept nogil:
    """Sorts ``a`` by (key, row): rows ascend, keys have ``bits`` bits, ``b`` is scratch."""
    cdef uint32_t[(1 << DIGIT) + 1] start
    cdef int lead, shift, rest
    cdef int64_t i
    cdef uint32_t k, c, total, size
    if n <= CACHED or bits == 0:
        _least_digits_first(a, b, n, bits)
        return
    lead = DIGIT if bits >= DIGIT else bits
    rest = bits - lead
    shift = 32 + rest
    size = 1U << lead
    memset(start, 0, (size + 1) * sizeof(uint32_t))
    for i in range(n):
        start[a[i] >> shift] += 1
    total = 0
    for k in range(size):
        c = start[k]
        start[k] = total
        total += c
    for i in range(n):
        k = a[i] >> shift
        b[start[k]] = a[i]
        start[k] += 1
    # start[k] is now the end of bucket k
    total = 0
    for k in range(size):
        c = start[k] - total
        if c > 1 and rest > 0:
            _least_digits_first(b + total, a + total, c, rest)
        total = start[k]
    memcpy(a, b, n * sizeof(uint64_t))
