"""Sorts: of entries of few rows and of bins by comparison, of entries of many rows by radix.

Short stretches are sorted by insertion, then merged bottom up, from one array to another and back:

    items      | 16 sorted | 16 sorted | 16 sorted | rest |
    scratch    |       32 sorted       |     the rest     |
    items      |                   sorted                 |

O(n log n), and O(n) by radix.

Of many bins, keys are first dealt to buckets of equal width, and buckets are sorted: O(n) where
keys are spread evenly, and no worse than before where they are not.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    INSERTED = 16           # items of a stretch that is sorted by insertion
    BUCKETS = 512
    FEW = 96                # bins below which buckets cost more than they save


cdef inline bint ahead(const sorted_t* a, const sorted_t* b) noexcept nogil:
    """Whether a comes before b; bins with equal keys in the order of their ranks."""
    if sorted_t is Keyed:
        return a.key < b.key or (a.key == b.key and a.bin < b.bin)
    else:
        return a[0] < b[0]


cdef inline void insert(sorted_t* items, int64_t start, int64_t end) noexcept nogil:
    """Sort the items start..end in place, by insertion."""
    cdef sorted_t item
    cdef int64_t i, j
    for i in range(start + 1, end):
        item = items[i]
        j = i
        while j > start and ahead(&item, &items[j - 1]):
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef void sort_bins(Keyed* bins, Keyed* scratch, int64_t n) noexcept nogil:
    """Sort n bins in place, ascending. scratch : (n,)."""
    cdef uint32_t begin[BUCKETS + 1]
    cdef double least, most, scale
    cdef int64_t i, b, start, end
    cdef bint are_numbers = True
    if n < FEW:
        merge_sort(bins, scratch, n)
        return
    least = most = bins[0].key
    for i in range(n):
        least = min(least, bins[i].key)
        most = max(most, bins[i].key)
        are_numbers &= bins[i].key == bins[i].key
    scale = (BUCKETS - 1) / (most - least) if most > least else 0
    if not (are_numbers and 0 < scale < INFINITY and (most - least) * scale < INFINITY):
        merge_sort(bins, scratch, n)
        return
    memset(begin, 0, sizeof(begin))
    for i in range(n):
        begin[<int64_t>((bins[i].key - least) * scale) + 1] += 1
    for b in range(BUCKETS):
        begin[b + 1] += begin[b]
    for i in range(n):
        b = <int64_t>((bins[i].key - least) * scale)
        scratch[begin[b]] = bins[i]
        begin[b] += 1
    start = 0
    for b in range(BUCKETS):
        end = begin[b]              # it has moved to the end of its bucket
        if end - start <= INSERTED:
            insert(scratch, start, end)
        else:
            merge_sort(scratch + start, bins + start, end - start)
        start = end
    memcpy(bins, scratch, n * sizeof(Keyed))


cdef void merge_sort(sorted_t* items, sorted_t* scratch, int64_t n) noexcept nogil:
    """Sort n items in place, ascending. scratch : (n,)."""
    cdef int64_t start, end, middle, width, i, j
    cdef sorted_t* source = items
    cdef sorted_t* sink = scratch
    start = 0
    while start < n:
        end = start + INSERTED if start + INSERTED < n else n
        insert(items, start, end)
        start = end
    width = INSERTED
    while width < n:
        start = 0
        while start < n:
            middle = start + width if start + width < n else n
            end = start + 2 * width if start + 2 * width < n else n
            i = start
            j = middle
            while start < end:
                # equal ones: those on the left first
                if i < middle and (j >= end or not ahead(&source[j], &source[i])):
                    sink[start] = source[i]
                    i += 1
                else:
                    sink[start] = source[j]
                    j += 1
                start += 1
        source, sink = sink, source
        width *= 2
    if source != items:
        memcpy(items, source, n * sizeof(sorted_t))


cdef void sort_by_code(uint64_t* entries, uint64_t* scratch, int64_t n,
                       uint32_t n_codes) noexcept nogil:
    """Sort entries whose rows ascend, by radix where they are many. O(n)."""
    cdef int64_t i, shift, t, total
    cdef int64_t count[2048]
    cdef uint64_t* source = entries
    cdef uint64_t* sink = scratch
    cdef uint64_t entry
    if n < 64:
        merge_sort(entries, scratch, n)
        return
    shift = 32
    while shift < 64 and (<uint64_t>n_codes >> (shift - 32)) > 0:
        memset(count, 0, sizeof(count))
        for i in range(n):
            count[(source[i] >> shift) & 2047] += 1
        total = 0
        for i in range(2048):
            t = count[i]
            count[i] = total
            total += t
        for i in range(n):
            entry = source[i]
            sink[count[(entry >> shift) & 2047]] = entry
            count[(entry >> shift) & 2047] += 1
        source, sink = sink, source
        shift += 11
    if source != entries:
        memcpy(entries, source, n * sizeof(uint64_t))
