"""Entries of a column in ascending order of code, sorted by counting.

    uint32, sparse    uint64 entries (code | row) of a large table, sorted once (radix)
    uint8, uint16     uint32 entries (code | row) of a relocated node

A value that more than half of the rows share is left out, as in a sparse column. O(rows).
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, Column, code_at
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport NO_RANK
from dtrees.core.search._entry_scan cimport first_above
from dtrees.core.search._sort cimport merge_sort


cdef void count_narrow(const uint8_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                       uint32_t* own, uint32_t* count) noexcept nogil:
    """How many of n rows hold each of the codes 0 .. n_codes of a uint8 column.

    own : their codes, filled. Neighbouring rows often hold one code, so they are counted in four
    arrays: no addition waits for the one before.
    """
    cdef uint32_t counts[4][256]
    cdef int64_t i, k
    for k in range(4):
        memset(counts[k], 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        own[i] = codes[row_id[i]]
    for i in range(n):
        counts[i & 3][own[i]] += 1
    for i in range(n_codes + 1):
        count[i] = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i]


cdef void count_wide(const uint16_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                     uint32_t* count) noexcept nogil:
    """The same of a uint16 column, whose codes are not kept."""
    cdef int64_t i
    memset(count, 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        count[codes[row_id[i]]] += 1


cdef int64_t entries_of_narrow(uint32_t* own, uint32_t* count, int64_t n, int64_t n_codes,
                               uint32_t* entries, uint32_t* majority) noexcept nogil:
    """Entries of a uint8 column for n <= 65,535 rows, numbered from 0, from their codes and counts
    (`count_narrow`), which are used up; O(n + n_codes). Ranks are the codes.

    majority : a code, other than 0, that more than half of the rows hold, which has no entries;
    NO_RANK without one.
    Returns how many entries there are.
    """
    cdef int64_t m = 0
    cdef int64_t i
    cdef uint32_t code, t
    cdef uint32_t total = 0
    cdef uint32_t common = NO_RANK
    for i in range(n_codes + 1):
        t = count[i]
        if i > 0 and 2 * <int64_t>t > n:
            common = <uint32_t>i
            t = 0
        count[i] = total
        total += t
    majority[0] = common
    if common == NO_RANK:
        for i in range(n):
            code = own[i]
            entries[count[code]] = code << 16 | <uint32_t>i
            count[code] += 1
        return n
    for i in range(n):  # without a branch, in place
        code = own[i]
        own[m] = code << 16 | <uint32_t>i
        m += code != common
    for i in range(m):
        code = own[i] >> 16
        entries[count[code]] = own[i]
        count[code] += 1
    return m


cdef int64_t entries_of_wide(const Column* column, const uint32_t* row_id, int64_t n,
                             uint32_t* entries, uint32_t* scratch) noexcept nogil:
    """The same for a uint16 column, by radix sort of all codes; without a majority. O(n).

    row_id : rows of the coded matrix; entry i stands for row_id[i].
    """
    cdef const uint16_t* codes = <const uint16_t*>column.codes
    cdef uint32_t low[256]
    cdef uint32_t high[256]
    cdef int64_t i
    cdef uint32_t a = 0
    cdef uint32_t b = 0
    cdef uint32_t t, entry
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    for i in range(n):
        t = codes[row_id[i]]
        low[t & 255] += 1
        high[t >> 8] += 1
    for i in range(256):
        t = low[i]
        low[i] = a
        a += t
        t = high[i]
        high[i] = b
        b += t
    for i in range(n):
        t = codes[row_id[i]]
        scratch[low[t & 255]] = t << 16 | <uint32_t>i
        low[t & 255] += 1
    for i in range(n):
        entry = scratch[i]
        entries[high[entry >> 24]] = entry
        high[entry >> 24] += 1
    return n


cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil:
    """Entries of a column, rows with live[row] == 0 left out; returns how many.

    Stored codes that equal the fill code are left out too.
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef int64_t m = 0
    cdef int64_t i
    cdef uint32_t row
    if column.storage == STORED_U32 and column.order != NULL:
        for i in range(n_rows):
            row = column.order[i]
            entries[m] = <uint64_t>codes[row] << 32 | row
            m += live[row]
        return m
    if column.storage != STORED_SPARSE:
        for i in range(n_rows):
            entries[m] = <uint64_t>code_at(column, i) << 32 | <uint64_t>i
            m += live[i]
    else:
        for i in range(column.stored):
            row = column.rows[i]
            entries[m] = <uint64_t>codes[i] << 32 | row
            m += live[row] & (codes[i] != column.fill)
    sort_by_code(entries, scratch, m, column.n_codes)
    return m


cdef uint32_t entries_of_widest(const Column* column, const uint32_t* row_id, int64_t n,
                                uint32_t* entries, uint64_t* scratch,
                                PresortedFeature* feature) noexcept nogil:
    """The same for a uint32 column, of ranks; returns the last rank, as `write_ranks`.

    scratch : (2 n,).
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef int64_t i
    for i in range(n):
        scratch[i] = <uint64_t>codes[row_id[i]] << 32 | <uint64_t>i
    sort_by_code(scratch, scratch + n, n, column.n_codes)
    return write_ranks(<const uint64_t*>scratch, n, NULL, NO_RANK, entries, feature)


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


cdef int64_t leave_out_majority(uint32_t* entries, int64_t n, uint32_t* fill) noexcept nogil:
    """Make a dense feature sparse when one value holds more than half of its rows; the new length.

    A majority holds the middle entry, so two binary searches find it. Missing values stay.
    """
    cdef uint32_t rank = entries[n // 2] >> 16
    cdef int64_t first, last
    if rank == 0 or not PATH_IS_ON("majority_left_out"):
        return n
    first = first_above(entries, 0, n // 2, rank - 1)
    last = first_above(entries, n // 2, n, rank)
    if 2 * (last - first) <= n:
        return n
    fill[0] = rank
    memmove(entries + first, entries + last, (n - last) * sizeof(uint32_t))
    return n - (last - first)
