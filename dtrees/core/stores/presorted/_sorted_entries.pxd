"""Declarations of the sorting of entries; see _sorted_entries.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport ALL_ORDERED, NO_RANK, PresortedFeature, entry_t

cdef void count_narrow(const uint8_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                       uint32_t* own, uint32_t* count) noexcept nogil
cdef void count_wide(const uint16_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                     uint32_t* count) noexcept nogil
cdef int64_t entries_of_narrow(uint32_t* own, uint32_t* count, int64_t n, int64_t n_codes,
                               uint32_t* entries, uint32_t* majority) noexcept nogil
cdef int64_t entries_of_wide(const Column* column, const uint32_t* row_id, int64_t n,
                             uint32_t* entries, uint32_t* scratch) noexcept nogil
cdef uint32_t entries_of_widest(const Column* column, const uint32_t* row_id, int64_t n,
                                uint32_t* entries, uint64_t* scratch,
                                PresortedFeature* feature) noexcept nogil
cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil
cdef void sort_by_code(uint64_t* entries, uint64_t* scratch, int64_t n,
                       uint32_t n_codes) noexcept nogil
cdef int64_t leave_out_majority(uint32_t* entries, int64_t n, uint32_t* fill) noexcept nogil


cdef inline uint32_t write_ranks(const entry_t* entries, int64_t length, const uint32_t* number,
                                 uint32_t fill_code, uint32_t* target,
                                 PresortedFeature* feature) noexcept nogil:
    """Entries of codes, ascending, become entries of ranks; returns the last rank.

    number : new numbers of the rows; NULL: those that they have. fill_code : of the rows without an
    entry, NO_RANK where there are none. target : may be `entries`. feature : gets the rank of the
    fill code or NO_RANK, and that of the last ordered code.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef uint32_t last_ordered = feature.last_ordered
    cdef uint32_t rank = 0
    cdef uint32_t previous = 0
    cdef uint32_t of_fill = NO_RANK
    cdef uint32_t last = 0
    cdef int64_t i
    cdef uint32_t code, row
    for i in range(length):
        code = <uint32_t>(entries[i] >> shift)
        row = <uint32_t>(entries[i] & mask)
        if of_fill == NO_RANK and code > fill_code:
            rank += fill_code > 0
            of_fill = rank
            if fill_code <= last_ordered:
                last = rank
        rank += code != previous
        previous = code
        if code <= last_ordered:
            last = rank
        target[i] = rank << 16 | (row if number == NULL else number[row])
    if of_fill == NO_RANK and fill_code != NO_RANK:
        rank += fill_code > 0
        of_fill = rank
        if fill_code <= last_ordered:
            last = rank
    feature.fill = of_fill
    if last_ordered != ALL_ORDERED:
        feature.last_ordered = last
    return rank
