"""The sort by comparison: of entries in nodes of few rows, and of bins by their keys.

Short stretches are sorted by insertion, then merged bottom up, from one array to another and back:

    items      | 16 sorted | 16 sorted | 16 sorted | rest |
    scratch    |       32 sorted       |     the rest     |
    items      |                   sorted                 |

Entries of many rows are sorted by counting where they are read. O(n log n).
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from dtrees.core.search._search cimport Keyed

cdef enum:
    INSERTED = 16           # items of a stretch that is sorted by insertion


cdef inline bint ahead(const sorted_t* a, const sorted_t* b) noexcept nogil:
    """Whether a comes before b; bins with equal keys in the order of their ranks."""
    if sorted_t is Keyed:
        return a.key < b.key or (a.key == b.key and a.bin < b.bin)
    else:
        return a[0] < b[0]


cdef void merge_sort(sorted_t* items, sorted_t* scratch, int64_t n) noexcept nogil:
    """Sort n items in place, ascending. scratch : (n,)."""
    cdef int64_t start, end, middle, width, i, j
    cdef sorted_t item
    cdef sorted_t* source = items
    cdef sorted_t* sink = scratch
    start = 0
    while start < n:
        end = start + INSERTED if start + INSERTED < n else n
        for i in range(start + 1, end):
            item = items[i]
            j = i
            while j > start and ahead(&item, &items[j - 1]):
                items[j] = items[j - 1]
                j -= 1
            items[j] = item
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
