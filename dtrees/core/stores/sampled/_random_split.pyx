"""Splits that are drawn at random: extremely randomized trees (Geurts, Ernst and Wehenkel 2006).

Each column that a node draws gets one split, and the best of these is taken. All draws are
functions of the node's key and the column.

    numbers      a value between the least and the greatest of the node: the range of the codes,
                 then the sums of one side, without a histogram and without a branch
    categories,  each goes left or right by the toss of a coin, from the bins of the column
      hybrids    (`_bins`), however these were read

Missing values go left or right by the toss of a coin as well.

Tables whose rows fit a few lines of the cache are searched in another order of work, with the same
splits. A node's rows are far apart in a column of codes, but the codes of one row are neighbours in
the table by row (`RowCodes`), 32 of them in a register of 256 bits:

    column      0    1    2    3   ...  31
    row 17    | 12 | 40 |  0 | 99 |   |    |        a slot for every column, drawn or not: the
    row 23    | 14 |  7 |  5 | 98 |   |    |        others cost nothing
                v    v    v    v         v
    least, most; then, with thresholds between them, the sums on the left and the codes beside

Codes are compared less one, so that missing ones, which are 0, are the greatest. Sums are counted
in 8 bits, for as many rows as these hold.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, RowCodes, code_t, last_ordered
)
from dtrees.core.data._structs cimport ALL_ORDERED, AT_MOST, IN_SUBSET, Split
from dtrees.core.histogram._layout cimport OUTPUTS, PACKED, decode
from dtrees.core.search._absolute_errors cimport move_row
from dtrees.core.search._bins cimport keep_best
from dtrees.core.search._categories cimport add_to_subset, begin_bins, clear_subset
from dtrees.core.search._criterion cimport NONE
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport (
    Bins, Search, add_bin, add_row, add_to_class, beats, begin_column, begin_pass, by_class,
    consider, key_of_split, take_split
)
from dtrees.core.stores.sampled._column_loader cimport (
    ColumnLoader, RowPartition, label_of, pack_rows, row_of, target_at, weight_at
)
from dtrees.core.stores.sampled._sampled_columns cimport bins_of_drawn

cdef struct RandomSplit:
    uint32_t at             # codes 1 .. at go left
    bint has_above          # some codes are greater
    bint saw_missing
    bint missing_left


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


cdef uint32_t threshold_code(const Search* q, int32_t column, uint32_t low, uint32_t high,
                             const double* value) noexcept nogil:
    """The greatest code whose value is at most one drawn between those of low and high; < high."""
    cdef double at = drawn_value(q, column, value[low - 1], value[high - 1])
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
    cdef int64_t i, n_left
    cdef uint32_t code
    begin_column(q, column)
    while last < g.count and g.rank[last] <= last_number:
        last += 1
    at_number = last - first > 1 and (last == g.count or key & 2)
    if at_number or (last == g.count and first == 1):
        # all that is not missing is on the left when there is one value only
        begin_bins(q, AT_MOST, missing and last - first > 1)
        code = threshold_code(q, column, g.rank[first], g.rank[last - 1], value)
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
# from codes

cdef bint draw_split(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, const double* value) noexcept nogil:
    """One split of a column, drawn at random (`search_random`); False when it is constant.

    A dense column of numbers needs no histogram: its range, then the sums on one side. The split
    holds the threshold until `finish_drawn_split`. O(rows).
    """
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int64_t n = node.totals.n
    cdef RandomSplit drawn
    cdef bint varies
    if not has_threshold(column):
        bins_of_drawn(loader, q, node, column, number)
        if q.bins.count <= 1:
            return False
        search_random(q, number, last_ordered(column), value)
        return True
    pack_rows(loader, node)
    if column.storage == STORED_U8:
        varies = draw_threshold(loader, q, <const uint8_t*>column.codes, item, n, number, value,
                                &drawn)
    elif column.storage == STORED_U16:
        varies = draw_threshold(loader, q, <const uint16_t*>column.codes, item, n, number, value,
                                &drawn)
    else:
        varies = draw_threshold(loader, q, <const uint32_t*>column.codes, item, n, number, value,
                                &drawn)
    if not varies:
        return False
    consider(q, drawn.at, False)
    if beats(q, number):
        take_split(q, number, drawn.at, drawn.has_above, drawn.missing_left, drawn.saw_missing)
        loader.knows_neighbours = False
    return True


cdef inline bint draw_threshold(ColumnLoader* loader, Search* q, const code_t* codes,
                                const uint64_t* item, int64_t n, int32_t number,
                                const double* value, RandomSplit* drawn) noexcept nogil:
    """Draw the threshold and sum up its left side; False when the column is constant.

    Loops are apart and without branches, so that codes of 8 bits are compared many at a time. A
    code less one wraps to the top when it is missing.
    """
    cdef code_t* own = <code_t*>loader.codes
    cdef code_t top = <code_t>0 - <code_t>1
    cdef code_t least = top
    cdef code_t most = 0
    cdef code_t lowest = top
    cdef code_t at, code, less
    cdef uint32_t low, high
    cdef uint64_t sums = 0
    cdef uint8_t missing_left
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
    drawn.missing_left = toss_missing(q, number, drawn.saw_missing and low < high)
    missing_left = drawn.missing_left
    at = <code_t>(low if low == high else threshold_code(q, number, low, high, value))
    drawn.at = at
    drawn.has_above = most > at
    begin_pass(q, AT_MOST, drawn.missing_left)
    begin_column(q, number)
    q.floor = NONE
    if loader.is_packed:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            sums += loader.packed[i] & (0 - <uint64_t>(
                (less < at) | (missing_left & (own[i] == 0))))
        q.n = decode(<const int64_t*>&sums, PACKED, 2, &q.w, &q.s)
    else:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            if less < at or (missing_left and own[i] == 0):
                add_item(loader, q, item - loader.partition.item + i)
                if q.errors != NULL:
                    move_row(q.errors, i)
    return True


cdef inline void add_item(const ColumnLoader* loader, Search* q, int64_t i) noexcept nogil:
    """Move an item to the side, for statistics that are not packed."""
    cdef const RowPartition* partition = &loader.partition
    if q.kind == OUTPUTS:
        add_row(q, row_of(partition.item[i]))
        return
    q.n += 1
    if by_class(q):
        q.w += weight_at(partition, i)
        add_to_class(q, <int>label_of(partition.item[i]), weight_at(partition, i))
    else:
        q.w += weight_at(partition, i)
        q.s += target_at(partition, i)


cdef void finish_drawn_split(ColumnLoader* loader, Search* q, const OpenNode* node,
                             const Column* column) noexcept nogil:
    """Complete the split that `draw_split` has chosen. O(rows)."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int64_t n = node.totals.n
    if loader.knows_neighbours or not has_threshold(column):
        return
    if column.storage == STORED_U8:
        neighbours(loader, <const uint8_t*>column.codes, item, n, &q.split)
    elif column.storage == STORED_U16:
        neighbours(loader, <const uint16_t*>column.codes, item, n, &q.split)
    else:
        neighbours(loader, <const uint32_t*>column.codes, item, n, &q.split)


cdef inline void neighbours(ColumnLoader* loader, const code_t* codes, const uint64_t* item,
                            int64_t n, Split* split) noexcept nogil:
    """The codes beside the threshold that occur in the node, for the test that is recorded."""
    cdef code_t* own = <code_t*>loader.codes
    cdef code_t at = <code_t>split.boundary
    cdef code_t left = 0
    cdef code_t right = <code_t>0 - <code_t>1
    cdef code_t mask, code
    cdef int64_t i
    for i in range(n):
        own[i] = codes[<uint32_t>item[i]]
    for i in range(n):
        mask = <code_t>0 - <code_t>(own[i] <= at)
        code = own[i] & mask
        left = code if code > left else left
    for i in range(n):
        mask = <code_t>0 - <code_t>(own[i] <= at)
        code = own[i] | mask
        right = code if code < right else right
    split.boundary = left
    if split.beyond > 0:
        split.beyond = right


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
        uint32_t* n
        uint32_t* w
        uint32_t* s
    void simd_ranges(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t) noexcept
    void simd_sums(SimdSplits*, const uint8_t*, int64_t, const uint64_t*, int64_t, bint,
                   int64_t) noexcept
    uint32_t simd_upto(const double*, const double*, double) noexcept

cdef enum:
    TOP = 255               # a missing code less one


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
    simd_ranges(&x, codes, width, item, n)
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
    simd_sums(&x, codes, width, item, n, any_missing, loader.most_times)
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
    cdef uint32_t count = simd_upto(value, pivot, at)
    if count < low:
        return low
    return count if count < high else high - 1
