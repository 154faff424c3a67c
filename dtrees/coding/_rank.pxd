"""Declarations of the ranking; see _rank.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.coding._keys cimport code_t, value_t

cdef enum Way:
    LOOKUP
    HASH
    SORT

# What became of a column.
cdef enum Status:
    CODED = 0
    TOO_MANY = 1            # more distinct values than asked for; after SORT the rows are sorted
    INFINITE = 2

cdef struct FewKey:
    uint64_t key
    uint16_t number         # in the order of first appearance, from 1

cdef struct Scratch:
    uint32_t* table         # lookup: 4 n + LEAST_RANGE + 2
    uint64_t* pairs         # sort: n; lookup: index into the table of every row, n uint32
    uint64_t* other         # sort: n
    uint16_t* few           # hash: provisional number of every row, n
    uint64_t* slot_key      # hash: SLOTS
    uint16_t* slot_number   # hash: SLOTS, 0 = free
    FewKey* few_key         # hash: FEW
    uint16_t* few_rank      # hash: FEW + 1, rank by provisional number

cdef struct Ranked:
    Way way
    Status status
    int64_t n_codes
    int64_t n_missing
    int32_t least           # lookup: value of table[1]

cdef int64_t lay_out(Scratch* scratch, int64_t n, uint8_t* start) noexcept nogil
cdef int64_t sort_rows(const value_t* v, int64_t n, Scratch* scratch) noexcept nogil
cdef void rank(const value_t* v, int64_t n, int64_t max_bins, value_t* low, Scratch* scratch,
               Ranked* out) noexcept nogil
cdef void write_codes(int64_t n, Scratch* scratch, const Ranked* ranked, code_t* codes,
                      uint32_t* order) noexcept nogil
