"""Random splits of many columns at once, for tables whose rows fit a few lines of the cache.

The same splits as those of `_random_split`, in another order of work. A node's rows are far apart
in a column of codes, but the codes of one row are neighbours in the table by row (`RowCodes`), 32
of them in two registers, or in one:

    column      0    1    2    3   ...  31
    row 17    | 12 | 40 |  0 | 99 |   |    |        a slot for every column, drawn or not: the
    row 23    | 14 |  7 |  5 | 98 |   |    |        others cost nothing
                v    v    v    v         v
    least, most; then, with thresholds between them, the sums on the left and the codes beside

Codes are compared less one, so that missing ones, which are 0, are the greatest. Sums are counted
in 8 bits, for as many rows as these hold.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport RowCodes
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport AT_MOST
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport (
    NONE, Search, beats, begin_column, begin_pass, consider, take_split
)
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader
from dtrees.core.stores.sampled._random_split cimport (
    drawn_value, has_threshold, toss_missing
)

cdef extern from "stores/sampled/random_split_simd.h" nogil:
    enum:
        SLOTS
    ctypedef struct SimdSplits:
        uint8_t* least
        uint8_t* most
        uint8_t* greatest
        uint8_t* at
        uint8_t* missing_left
        uint8_t* left
        uint8_t* right
        uint32_t* n
        uint32_t* w
        uint32_t* s
    void simd_ranges_wide(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t) noexcept
    void simd_ranges_plain(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t) noexcept
    void simd_sums_wide(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t, bint,
                        int64_t) noexcept
    void simd_sums_plain(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t, bint,
                         int64_t) noexcept
    uint32_t simd_upto_wide(const double*, const double*, double) noexcept
    uint32_t simd_upto_plain(const double*, const double*, double) noexcept

cdef enum:
    TOP = 255               # a missing code less one


cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil:
    """Search the drawn columns that have a slot; the others move to the front. Returns how many."""
    cdef int64_t left = 0
    cdef int64_t i
    cdef int32_t block
    for block in range(params.row_codes.width // SLOTS):
        search_block(loader, q, node, params, block * SLOTS, columns, count)
    for i in range(count):
        columns[left] = columns[i]
        left += not is_in(params, columns[i], 0, params.row_codes.width)
    return left


cdef inline bint is_in(const TrainParameters* params, int32_t column, int32_t first,
                       int32_t end) noexcept nogil:
    """Whether a column is split at a threshold and has one of these slots."""
    return has_threshold(params.columns + column) and first <= params.columns[column].row_slot < end


cdef void search_block(ColumnLoader* loader, Search* q, const OpenNode* node,
                       const TrainParameters* params, int32_t first, const int32_t* columns,
                       int64_t count) noexcept nogil:
    """Search the columns of one block of slots. O(rows), however many they are."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef const uint8_t* codes = params.row_codes.codes + first
    cdef int64_t width = params.row_codes.width
    cdef int64_t n = node.totals.n
    cdef int32_t[32] drawn
    cdef int32_t[32] boundary
    cdef int64_t n_drawn = 0
    cdef int64_t n_varying = 0
    cdef bint any_missing = False
    cdef int64_t i
    cdef int32_t column, slot, low, high
    cdef bint saw_missing
    cdef SimdSplits x
    for i in range(count):
        if is_in(params, columns[i], first, first + SLOTS):
            drawn[n_drawn] = columns[i]
            n_drawn += 1
    if n_drawn == 0:
        return
    if is_wide:
        simd_ranges_wide(&x, codes, width, item, n)
    else:
        simd_ranges_plain(&x, codes, width, item, n)
    memset(x.at, 0, SLOTS)
    memset(x.missing_left, 0, SLOTS)
    for i in range(n_drawn):
        column = drawn[i]
        slot = params.columns[column].row_slot - first
        low = x.least[slot] + 1
        high = x.most[slot]
        saw_missing = x.greatest[slot] == TOP
        if high == 0 or (low == high and not saw_missing):
            continue
        any_missing |= saw_missing
        if toss_missing(q, column, saw_missing and low < high):
            x.missing_left[slot] = 0xFF
        if low < high:
            low = threshold_of_slot(q, &params.row_codes, column, slot + first, low, high)
        x.at[slot] = <uint8_t>(low - 1)
        boundary[n_varying] = low
        drawn[n_varying] = column
        n_varying += 1
    if n_varying == 0:
        return
    if is_wide:
        simd_sums_wide(&x, codes, width, item, n, any_missing, loader.most_times)
    else:
        simd_sums_plain(&x, codes, width, item, n, any_missing, loader.most_times)
    for i in range(n_varying):
        column = drawn[i]
        slot = params.columns[column].row_slot - first
        begin_pass(q, AT_MOST, x.missing_left[slot] & 1)
        begin_column(q, column)
        q.floor = NONE
        q.n = x.n[slot]
        q.w = x.w[slot]
        q.s = x.s[slot]
        consider(q, boundary[i], False)
        if beats(q, column):
            take_split(q, column, x.left[slot],
                       <uint32_t>x.right[slot] + 1 if x.most[slot] > x.at[slot] + 1 else 0,
                       x.missing_left[slot] & 1, x.greatest[slot] == TOP)
            loader.knows_neighbours = True


cdef inline uint32_t threshold_of_slot(const Search* q, const RowCodes* rows, int32_t column,
                                       int64_t slot, uint32_t low, uint32_t high) noexcept nogil:
    """`threshold_code`, from the values of a slot."""
    cdef const double* value = rows.value + 256 * slot
    cdef const double* pivot = rows.pivot + 16 * slot
    cdef double at = drawn_value(q, column, value[low - 1], value[high - 1])
    cdef uint32_t count = simd_upto_wide(value, pivot, at) if is_wide else simd_upto_plain(
        value, pivot, at)
    if count < low:
        return low
    return count if count < high else high - 1
