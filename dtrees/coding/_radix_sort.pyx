"""Sorting pairs of a key and a row by radix, in O(n).

    pair   | key, 32 bits | row, 32 bits |

One pass over the leading bits fills buckets that stay in the cache. Each bucket is sorted by its
other bits, least significant digits first; a few pairs are inserted.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    DIGIT = 11              # bits sorted in one pass
    FEW_PAIRS = 40          # that are inserted rather than counted


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
    cdef uint32_t[1 << DIGIT] count
    cdef uint64_t* source = a
    cdef uint64_t* target = b
    cdef uint64_t* swap
    cdef int passes, width, p, shift
    cdef int64_t i
    cdef uint32_t size, total, c, k, mask
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
        shift = 32 + p * width
        memset(count, 0, size * sizeof(uint32_t))
        for i in range(n):
            count[(source[i] >> shift) & mask] += 1
        total = 0
        for k in range(size):
            c = count[k]
            count[k] = total
            total += c
        for i in range(n):
            k = (source[i] >> shift) & mask
            target[count[k]] = source[i]
            count[k] += 1
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
    if n <= 4096 or bits == 0:
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
