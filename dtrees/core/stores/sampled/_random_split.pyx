"""Splits that are drawn at random: extremely randomized trees (Geurts, Ernst and Wehenkel 2006).

Each column that a node draws gets one split, and the best of these is taken. All draws are
functions of the node's key and the column.

    numbers      a value between the least and the greatest of the node: the range of the codes,
                 then the side of each row, without a histogram and without a branch
    categories,  each goes left or right by the toss of a coin, from the bins of the column
      hybrids    (`_bins`), however these were read

Missing values go left or right by the toss of a coin as well.

The sides of 32 columns are the bits of a number for each row. A cell for each column adds up the
side of fewer rows, all columns in one pass over the rows.

Tables whose rows fit a few lines of the cache tell these sides in another order of work. A node's
rows are far apart in a column of codes, but the codes of one row are neighbours in the table by row
(`RowCodes`), 32 of them in a register of 256 bits:

    column      0    1    2    3   ...  31
    row 17    | 12 | 40 |  0 | 99 |   |    |        a slot for every column, drawn or not: the
    row 23    | 14 |  7 |  5 | 98 |   |    |        others cost nothing
                v    v    v    v         v
    least, most; then, with thresholds between them, the sides and the codes beside

Codes are compared less one, so that missing ones, which are 0, are the greatest.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, RowCodes, code_t, last_ordered
)
from dtrees.core.data._structs cimport ALL_ORDERED, AT_MOST, IN_SUBSET
from dtrees.core.histogram._layout cimport PACKED, decode
from dtrees.core.search._bins cimport keep_best, reserve_bins
from dtrees.core.search._categories cimport add_to_subset, begin_bins, clear_subset
from dtrees.core.search._criterion cimport NONE, Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport (
    Bins, Search, add_bin, beats, begin_column, begin_pass, cannot_win, consider, key_of_split,
    take_split
)
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader, pack_rows
from dtrees.core.stores.sampled._sampled_columns cimport (
    begin_local, bins_of_drawn, count_sides, end_local, fetch_ahead, take_side
)

cdef enum:
    FEW_ROWS = 64           # whose own values are looked at: no search of the column's
    TOP = 255               # a missing code of 8 bits less one

cdef struct RandomSplit:
    # Of a column at a node.
    int32_t column
    int32_t bit             # of the sides of its rows
    uint32_t at             # the greatest code on the left
    uint32_t beyond         # the least one beyond it, not missing; 0: there is none
    bint saw_missing
    bint missing_left
    int64_t n_left          # rows of the left side, or its packed sums


# ---------------------------------------------------------------------------------------------
# what is drawn

cdef inline bint has_threshold(const Column* column) noexcept nogil:
    """Whether a column is split without a look at its bins."""
    return column.storage != STORED_SPARSE and last_ordered(column) == ALL_ORDERED


cdef inline bint toss_missing(const Search* q, int32_t column, bint tossed) noexcept nogil:
    """Whether missing values go left, by the toss of a coin; False when there is none to toss."""
    return tossed and key_of_split(q, column) & 1


cdef inline double drawn_value(const Search* q, int32_t column, double least,
                               double most) noexcept nogil:
    """A number between two, drawn by the key of the node and the column."""
    cdef uint64_t draw = hash64(key_of_split(q, column), 0)
    # halves: a difference of huge values is infinite
    cdef double step = <double>(draw >> 11) * 1.1102230246251565e-16 * (most / 2 - least / 2)
    return (least + step) + step


cdef uint32_t threshold_code(double at, uint32_t low, uint32_t high,
                             const double* value) noexcept nogil:
    """The greatest code whose value is at most that; at least low, and below high."""
    cdef uint32_t count = high - low
    cdef uint32_t step
    while count > 1:  # without a branch
        step = count >> 1
        low += step if value[low + step - 1] <= at else 0
        count -= step
    return low


# ---------------------------------------------------------------------------------------------
# from bins

cdef void search_random(Search* q, int32_t column, uint32_t last_number,
                        const double* value) noexcept nogil:
    """One split of a column, drawn by key: extremely randomized trees (Geurts et al. 2006).

    Numbers are split at a value drawn between the least and the greatest of the node. Categories go
    left or right by the toss of a coin each; so does the side of missing values. A hybrid column
    is split at a number or partitioned by its categories, by the toss of a coin.

    value : of the codes 1, 2, ... of the column.
    """
    cdef Bins* g = q.bins
    cdef int64_t first = 1 if g.count > 0 and g.rank[0] == 0 else 0
    cdef int64_t last = first
    cdef uint64_t key = key_of_split(q, column)
    cdef bint missing = toss_missing(q, column, first == 1)
    cdef bint at_number
    cdef double limit
    cdef int64_t i, n_left
    cdef uint32_t code
    begin_column(q, column)
    while last < g.count and g.rank[last] <= last_number:
        last += 1
    at_number = last - first > 1 and (last == g.count or key & 2)
    if at_number or (last == g.count and first == 1):
        # all that is not missing is on the left when there is one value only
        begin_bins(q, AT_MOST, missing and last - first > 1)
        code = g.rank[first]
        limit = drawn_value(q, column, value[code - 1], value[g.rank[last - 1] - 1])
        code = threshold_code(limit, code, g.rank[last - 1], value)
        i = first
        add_bin(q, i, 1)
        while i + 1 < last - 1 and g.rank[i + 1] <= code:
            i += 1
            add_bin(q, i, 1)
        consider(q, i, False)
    elif g.count - last > 0:
        begin_bins(q, IN_SUBSET, missing)
        if not clear_subset(q):
            return
        n_left = 0
        for i in range(last, g.count):
            if hash64(key, g.rank[i]) & 1 or (n_left == 0 and i == g.count - 1):
                if n_left == g.count - first - 1 and (first == 0 or q.missing):
                    break  # something stays on the right
                add_bin(q, i, 1)
                add_to_subset(q, g.rank[i])
                n_left += 1
        consider(q, 0, False)
    keep_best(q, column, first, last)


# ---------------------------------------------------------------------------------------------
# sums of one side

cdef void search_sides(ColumnLoader* loader, Search* q, const OpenNode* node,
                       const RandomSplit* drawn, int64_t count, bint has_sums) noexcept nogil:
    """Search columns whose rows have their sides, or whose left sums are packed: `has_sums`."""
    cdef const Criterion* criterion = q.criterion
    cdef int64_t n = node.totals.n
    cdef uint32_t found = 0
    cdef uint32_t right = 0
    cdef const RandomSplit* one
    cdef int64_t i
    if count == 0 or not reserve_bins(q, 1):
        return
    begin_local(loader, q)
    if not has_sums:
        for i in range(count):
            found |= <uint32_t>1 << drawn[i].bit
            right |= <uint32_t>(2 * drawn[i].n_left > n) << drawn[i].bit
        for i in range(n):
            loader.sides[i] = (loader.sides[i] ^ right) & found
        count_sides(loader, q, node)
    for i in range(count):
        one = drawn + i
        begin_pass(q, AT_MOST, one.missing_left)
        begin_column(q, one.column)
        q.floor = NONE
        if has_sums:
            q.n = decode(&one.n_left, PACKED, 2, &q.w, &q.s)
        else:
            take_side(loader, q, node, one.bit)
        consider(q, one.at, right >> one.bit & 1)
        if beats(q, one.column):
            take_split(q, one.column, one.at, one.beyond, one.missing_left, one.saw_missing)
    end_local(q, criterion, node)


# ---------------------------------------------------------------------------------------------
# from codes

cdef void draw_splits(ColumnLoader* loader, Search* q, const OpenNode* node,
                      const TrainParameters* params, const int32_t* columns, int64_t count,
                      double perfect) noexcept nogil:
    """One split of each column, drawn at random (`search_random`).

    A dense column of numbers needs no histogram: its range, then the sums on one side. O(rows).

    perfect : as of `perfect_score`; below zero, the first column that varies has it.
    """
    cdef RandomSplit[SLOTS] drawn
    cdef int64_t n_drawn = 0
    cdef int64_t i
    cdef int32_t number
    cdef const double* value
    for i in range(count):
        number = columns[i]
        value = params.values + params.first_value[number]
        if cannot_win(q, perfect, number):
            continue
        if loader.position != NULL:
            fetch_ahead(params.columns, columns, i, count)
        if not has_threshold(params.columns + number):
            bins_of_drawn(loader, q, node, params.columns + number, number)
            if q.bins.count > 1:
                search_random(q, number, last_ordered(params.columns + number), value)
            continue
        drawn[n_drawn].column = number
        drawn[n_drawn].bit = <int32_t>n_drawn
        n_drawn += draw_side(loader, q, node, params.columns + number, value, drawn + n_drawn)
        if n_drawn == SLOTS or n_drawn > 0 and perfect < 0:
            search_sides(loader, q, node, drawn, n_drawn, loader.is_packed)
            n_drawn = 0
    search_sides(loader, q, node, drawn, n_drawn, loader.is_packed)


cdef inline bint draw_side(ColumnLoader* loader, const Search* q, const OpenNode* node,
                           const Column* column, const double* value,
                           RandomSplit* drawn) noexcept nogil:
    """Tell which rows go left in a column of numbers; False when it is constant."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int64_t n = node.totals.n
    pack_rows(loader, node)
    if column.storage == STORED_U8:
        return draw_threshold(loader, q, <const uint8_t*>column.codes, item, n, value, drawn)
    if column.storage == STORED_U16:
        return draw_threshold(loader, q, <const uint16_t*>column.codes, item, n, value, drawn)
    return draw_threshold(loader, q, <const uint32_t*>column.codes, item, n, value, drawn)


cdef inline bint draw_threshold(ColumnLoader* loader, const Search* q, const code_t* codes,
                                const uint64_t* item, int64_t n, const double* value,
                                RandomSplit* drawn) noexcept nogil:
    """Draw the threshold and tell the left side, or its packed sums; False: the column is constant.

    Loops are apart and without branches, so that codes of 8 bits are compared many at a time. A
    code less one wraps to the top when it is missing.
    """
    cdef code_t* own = <code_t*>loader.codes
    cdef code_t top = <code_t>0 - <code_t>1
    cdef code_t least = top
    cdef code_t most = 0
    cdef code_t lowest = top
    cdef code_t below = 0
    cdef code_t beyond = top
    cdef code_t at, code, less, mask
    cdef uint32_t low, high, left
    cdef uint32_t n_left = 0
    cdef uint64_t sums = 0
    cdef uint8_t missing_left
    cdef double limit
    cdef int64_t i
    for i in range(n):
        own[i] = codes[<uint32_t>item[i]]
    for i in range(n):
        code = own[i]
        less = <code_t>(code - 1)
        least = less if less < least else least
        most = code if code > most else most
        lowest = code if code < lowest else lowest
    low = <uint32_t>least + 1
    high = most
    drawn.saw_missing = lowest == 0
    if high == 0 or (low == high and not drawn.saw_missing):
        return False
    drawn.missing_left = toss_missing(q, drawn.column, drawn.saw_missing and low < high)
    missing_left = drawn.missing_left
    at = <code_t>low
    limit = drawn_value(q, drawn.column, value[low - 1], value[high - 1]) if low < high else 0
    if low < high and n > FEW_ROWS:
        at = <code_t>threshold_code(limit, low, high, value)
    elif low < high:
        for i in range(n):
            if at < own[i] < high and value[own[i] - 1] <= limit:
                at = own[i]
    for i in range(n):
        mask = <code_t>0 - <code_t>(own[i] <= at)
        code = own[i] & mask
        below = code if code > below else below
        code = own[i] | mask
        beyond = code if code < beyond else beyond
    drawn.at = below
    drawn.beyond = beyond if most > at else 0
    if loader.is_packed:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            sums += loader.packed[i] & (0 - <uint64_t>(
                (less < at) | (missing_left & (own[i] == 0))))
        drawn.n_left = <int64_t>sums
        return True
    if drawn.bit == 0:
        memset(loader.sides, 0, n * sizeof(uint32_t))
    for i in range(n):
        less = <code_t>(own[i] - 1)
        left = (less < at) | (missing_left & (own[i] == 0))
        loader.sides[i] |= left << drawn.bit
        n_left += left
    drawn.n_left = n_left
    return True


# ---------------------------------------------------------------------------------------------
# 32 columns at once

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
        uint64_t* n
    void simd_ranges(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t) noexcept
    void simd_sides(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t,
                    uint32_t*, int64_t) noexcept
    uint32_t simd_upto(const double*, const double*, double) noexcept


cdef int64_t search_simd(ColumnLoader* loader, Search* q, const OpenNode* node,
                         const TrainParameters* params, int32_t* columns,
                         int64_t count) noexcept nogil:
    """Search the drawn columns that have a slot; the others move to the front. Returns how many.

    There are registers of 256 bits.
    """
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
    cdef RandomSplit[SLOTS] drawn
    cdef RandomSplit* one
    cdef int64_t n_drawn = 0
    cdef int64_t n_varying = 0
    cdef int64_t i
    cdef int32_t slot, low, high
    cdef SimdSplits x
    for i in range(count):
        if is_in(params, columns[i], first, first + SLOTS):
            drawn[n_drawn].column = columns[i]
            drawn[n_drawn].bit = params.columns[columns[i]].row_slot - first
            n_drawn += 1
    if n_drawn == 0:
        return
    simd_ranges(&x, codes, width, item, n)
    memset(x.at, 0, SLOTS)
    memset(x.missing_left, 0, SLOTS)
    for i in range(n_drawn):
        one = drawn + n_varying
        one[0] = drawn[i]
        slot = one.bit
        low = x.least[slot] + 1
        high = x.most[slot]
        one.saw_missing = x.greatest[slot] == TOP
        if high == 0 or (low == high and not one.saw_missing):
            continue
        one.missing_left = toss_missing(q, one.column, one.saw_missing and low < high)
        x.missing_left[slot] = 0xFF if one.missing_left else 0
        if low < high:
            low = threshold_of_slot(q, &params.row_codes, one.column, slot + first, low, high)
        x.at[slot] = <uint8_t>(low - 1)
        n_varying += 1
    if n_varying == 0:
        return
    simd_sides(&x, codes, width, item, n, NULL if loader.is_small else loader.sides,
               loader.most_times)
    for i in range(n_varying):
        slot = drawn[i].bit
        drawn[i].at = x.left[slot]
        drawn[i].beyond = x.right[slot] + 1 if x.most[slot] > x.at[slot] + 1 else 0
        drawn[i].n_left = <int64_t>x.n[slot]
    search_sides(loader, q, node, drawn, n_varying, loader.is_small)


cdef inline uint32_t threshold_of_slot(const Search* q, const RowCodes* rows, int32_t column,
                                       int64_t slot, uint32_t low, uint32_t high) noexcept nogil:
    """`threshold_code`, from the values of a slot."""
    cdef const double* value = rows.value + 256 * slot
    cdef const double* pivot = rows.pivot + 16 * slot
    cdef double at = drawn_value(q, column, value[low - 1], value[high - 1])
    cdef uint32_t count = simd_upto(value, pivot, at)
    if count < low:
        return low
    return count if count < high else high - 1
