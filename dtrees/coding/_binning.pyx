"""Codes of columns of numbers: by their distinct values, or by cuts where these are too many.

Distinct values are found in ascending order by the cheapest of three ways:

    LOOKUP   whole numbers in a small range: a table of which are present. O(n + range)
    HASH     at most `FEW` distinct values, a quarter of the rows at most: a hash table that gives
             up early, and a sort of what it holds. O(n)
    SORT     pairs (key, row) by radix. O(n)

A pair holds a key less the least key, so that only the bits that differ are sorted. A float64 key
is reduced to 32 bits by dropping the low bits in which all keys agree. When more than 32 remain,
the upper 32 are sorted first and runs of equal ones by the rest.

    pair     | key, 32 bits | row, 32 bits |

Pairs that lie in a cache are sorted by one digit after the other, the least significant first.
Of more pairs, a pass over the leading bits fills buckets that do, and each of them is sorted by its
other bits; a few pairs are inserted.

`rank` finds the values and `write_codes` writes the codes, in the width that their number needs.

    codes    uint8 | uint16 | uint32, one per row; 0 = NaN
    order    uint32, rows in ascending order of (code, row)

Cuts stand at quantiles. A value has the code 1 + number of cuts below it: a table over the leading
bits of the key says where among the cuts to begin, a few steps of bisection do the rest. Rows that
have been sorted to count the values of a column are in the order of its codes, too: where all rows
are in the sample, cuts and codes take one more look at each of them.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from dtrees.coding._keys cimport code_t, key_of, value_of, value_t

import numpy as np

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef enum:
    DIGIT = 11              # bits sorted in one pass
    MOST_PASSES = 4
    FEW_PAIRS = 40          # that are inserted rather than counted
    CACHED = 1 << 19        # pairs that all lie in a cache (measured: .65 of the time of buckets)
    FEW = 2048              # distinct values that the hash table holds
    SLOTS = 8192
    BLOCK = 64              # values that are converted at once
    LEAST_RANGE = 1024      # of whole numbers that are always looked up
    SMALL = 40              # rows, up to which sorting is cheapest

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

cdef struct Keys:
    uint64_t first          # the least key
    int drop                # low bits in which all agree
    bint is_whole           # a pair holds all the other bits

STATUS_TOO_MANY = TOO_MANY
STATUS_INFINITE = INFINITE


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


cdef void _scan(const value_t* v, int64_t n, value_t* least, value_t* most,
                int64_t* n_missing) noexcept nogil:
    """Range of the values that are not NaN, and how many are."""
    cdef value_t[4] low
    cdef value_t[4] high
    cdef value_t x
    cdef int64_t i = 0, missing = 0
    cdef int k
    for k in range(4):
        low[k] = INFINITY
        high[k] = -INFINITY
    while i + 4 <= n:
        for k in range(4):
            x = v[i + k]
            low[k] = x if x < low[k] else low[k]
            high[k] = x if x > high[k] else high[k]
        i += 4
    while i < n:
        x = v[i]
        low[0] = x if x < low[0] else low[0]
        high[0] = x if x > high[0] else high[0]
        i += 1
    for k in range(1, 4):
        low[0] = low[k] if low[k] < low[0] else low[0]
        high[0] = high[k] if high[k] > high[0] else high[0]
    for i in range(n):
        missing += v[i] != v[i]
    least[0] = low[0]
    most[0] = high[0]
    n_missing[0] = missing


cdef bint _whole_numbers(const value_t* v, int64_t n, const Ranked* ranked,
                         uint32_t* number) noexcept nogil:
    """Every value less ``ranked.least``, plus one; NaN as 0. False if some are no whole numbers.

    The values fit an int32. A few at a time, without a branch for each.
    """
    cdef value_t[BLOCK] back
    cdef int64_t i, m, start = 0
    cdef uint32_t before = <uint32_t>ranked.least - 1
    cdef value_t x
    if ranked.n_missing > 0:
        for i in range(n):
            x = v[i]
            number[i] = 0
            if x == x:
                if <value_t><int32_t>x != x:
                    return False
                number[i] = <uint32_t><int32_t>x - before
        return True
    while start < n:
        m = BLOCK if start + BLOCK < n else n - start
        for i in range(m):
            back[i] = <value_t><int32_t>v[start + i]
        if memcmp(back, v + start, m * sizeof(value_t)) != 0:  # there is no -0.0
            return False
        for i in range(m):
            number[start + i] = <uint32_t><int32_t>v[start + i] - before
        start += m
    return True


cdef void _rank_lookup(const uint32_t* number, int64_t n, int64_t span, int64_t max_bins,
                       value_t* low, Scratch* scratch, Ranked* out) noexcept nogil:
    """Codes of whole numbers: table[number] is the code. ``span``: greatest number."""
    cdef uint32_t* table = scratch.table
    cdef int64_t i, k, n_codes = 0
    memset(table, 0, (span + 1) * sizeof(uint32_t))
    for i in range(n):
        table[number[i]] = 1
    table[0] = 0
    for k in range(1, span + 1):
        n_codes += table[k]
    if n_codes > max_bins:
        out.status = TOO_MANY
        return
    n_codes = 0
    for k in range(1, span + 1):
        if table[k]:
            low[n_codes] = <value_t>(out.least + k - 1)
            n_codes += 1
            table[k] = <uint32_t>n_codes
    out.way = LOOKUP
    out.n_codes = n_codes


cdef bint _rank_hash(const value_t* v, int64_t n, int64_t max_bins, value_t* low,
                     Scratch* scratch, Ranked* out) noexcept nogil:
    """Codes of a column of few distinct values; False when there are too many for it.

    few[row] is the order of first appearance of the row's value, from 1; few_rank its code.
    """
    cdef int64_t i, slots = 64, limit
    cdef uint64_t key, mask, h
    cdef uint16_t number = 0
    cdef uint32_t count = 0, k
    cdef uint16_t* few = scratch.few
    limit = n // 4 if n < 4 * FEW else FEW  # more than that: sorting is cheaper
    limit = max_bins if max_bins < limit else limit
    while slots < 4 * limit and slots < SLOTS:
        slots *= 2
    mask = slots - 1
    memset(scratch.slot_number, 0, slots * sizeof(uint16_t))
    for i in range(n):
        if v[i] != v[i]:
            few[i] = 0
            continue
        key = key_of(v[i])
        h = ((key * 0x9E3779B97F4A7C15ULL) >> 40) & mask
        while True:
            number = scratch.slot_number[h]
            if number == 0:
                if count == limit:
                    if limit == max_bins:
                        out.status = TOO_MANY
                        return True
                    return False
                scratch.few_key[count].key = key
                count += 1
                # mostly new values: not worth going on
                if count == 192 and i < 256 and n > 1024 and max_bins > FEW:
                    return False
                number = <uint16_t>count
                scratch.few_key[count - 1].number = number
                scratch.slot_number[h] = number
                scratch.slot_key[h] = key
                break
            if scratch.slot_key[h] == key:
                break
            h = (h + 1) & mask
        few[i] = number
    qsort(scratch.few_key, count, sizeof(FewKey), _by_key)
    scratch.few_rank[0] = 0
    for k in range(count):
        low[k] = value_of(scratch.few_key[k].key, low[0])
        scratch.few_rank[scratch.few_key[k].number] = <uint16_t>(k + 1)
    out.way = HASH
    out.n_codes = count
    return True


cdef int _by_key(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const FewKey*>a).key, y = (<const FewKey*>b).key
    return (x > y) - (x < y)


cdef int64_t sort_rows(const value_t* v, int64_t n, Scratch* scratch) noexcept nogil:
    """Rows in ascending order of their values, as the low halves of ``scratch.pairs``.

    Returns how many there are: missing ones are left out. No value is infinite.
    """
    cdef value_t least, most
    cdef int64_t n_missing
    cdef Keys keys
    _scan(v, n, &least, &most, &n_missing)
    if n_missing < n:
        _sort_pairs(v, n, least, most, n_missing, scratch, &keys)
    return n - n_missing


cdef void _sort_pairs(const value_t* v, int64_t n, value_t least, value_t most, int64_t n_missing,
                      Scratch* scratch, Keys* keys) noexcept nogil:
    """Sorts the rows that have a value in ``scratch.pairs``."""
    cdef uint64_t* pairs = scratch.pairs
    cdef uint64_t first = key_of(least), span = key_of(most) - first, differ, key, rest_mask
    cdef int64_t i, k, m = 0, end
    cdef int bits = 64 - leading_zeros(span) if span else 0, drop = 0, split = 0
    cdef value_t x
    if bits > 32:
        differ = 0
        for i in range(n):
            if v[i] == v[i]:
                differ |= key_of(v[i]) - first
        drop = trailing_zeros(differ)
        bits -= drop
        if bits > 32:
            split = bits - 32
            bits = 32
    if n_missing == 0:  # without a branch
        m = n
        for i in range(n):
            pairs[i] = (((key_of(v[i]) - first) >> (drop + split)) << 32) | <uint64_t>i
    else:
        for i in range(n):
            x = v[i]
            pairs[m] = (((key_of(x) - first) >> (drop + split)) << 32) | <uint64_t>i
            m += x == x
    sort_pairs(pairs, scratch.other, m, bits)
    keys.first = first
    keys.drop = drop
    keys.is_whole = split == 0
    if split == 0:
        return
    # runs of equal leading bits, by the others
    rest_mask = ((1ULL << split) - 1)
    i = 0
    while i < m:
        end = i + 1
        while end < m and (pairs[end] >> 32) == (pairs[i] >> 32):
            end += 1
        k = i + 1
        while k < end and v[<uint32_t>pairs[k]] == v[<uint32_t>pairs[i]]:
            k += 1
        if k < end:
            for k in range(i, end):
                key = ((key_of(v[<uint32_t>pairs[k]]) - first) >> drop) & rest_mask
                pairs[k] = (key << 32) | <uint32_t>pairs[k]
            sort_pairs(pairs + i, scratch.other, end - i, split)
        i = end


cdef void _rank_sort(const value_t* v, int64_t n, value_t least, value_t most, int64_t max_bins,
                     value_t* low, Scratch* scratch, Ranked* out) noexcept nogil:
    """Codes by sorting; leaves (code, row) pairs in ``scratch.pairs``, missing rows left out."""
    cdef uint64_t* pairs = scratch.pairs
    cdef uint64_t key = 0, code = 0
    cdef int64_t i, m = n - out.n_missing
    cdef value_t x, previous = 0
    cdef Keys keys
    out.way = SORT
    _sort_pairs(v, n, least, most, out.n_missing, scratch, &keys)
    if not keys.is_whole:
        for i in range(m):
            x = v[<uint32_t>pairs[i]]
            if i == 0 or x != previous:
                if <int64_t>code == max_bins:
                    out.status = TOO_MANY
                    return
                low[code] = x
                code += 1
                previous = x
            pairs[i] = (code << 32) | <uint32_t>pairs[i]
    else:
        for i in range(m):
            if i == 0 or (pairs[i] >> 32) != key:
                if <int64_t>code == max_bins:
                    out.status = TOO_MANY
                    return
                key = pairs[i] >> 32
                low[code] = value_of(keys.first + (key << keys.drop), least)
                code += 1
            pairs[i] = (code << 32) | <uint32_t>pairs[i]
    out.n_codes = <int64_t>code


cdef void rank(const value_t* v, int64_t n, int64_t max_bins, value_t* low, Scratch* scratch,
               Ranked* out) noexcept nogil:
    """Distinct values of a column into ``low`` (min(n, max_bins),), ascending."""
    cdef value_t least, most
    cdef double span
    cdef uint32_t* number
    out.status = CODED
    out.way = LOOKUP
    out.n_codes = 0
    _scan(v, n, &least, &most, &out.n_missing)
    if out.n_missing == n:
        return
    if least == -INFINITY or most == INFINITY:
        out.status = INFINITE
        return
    if n > SMALL and least > -2e9 and most < 2e9:
        span = <double>most - <double>least
        if span <= LEAST_RANGE or span <= 4.0 * n:
            out.least = <int32_t>least
            number = <uint32_t*>scratch.pairs
            if _whole_numbers(v, n, out, number):
                _rank_lookup(number, n, <int64_t>span + 1, max_bins, low, scratch, out)
                return
    if n <= SMALL or not _rank_hash(v, n, max_bins, low, scratch, out):
        _rank_sort(v, n, least, most, max_bins, low, scratch, out)


cdef void write_codes(int64_t n, Scratch* scratch, const Ranked* ranked, code_t* codes,
                      uint32_t* order) noexcept nogil:
    """Writes the codes of a ranked column, and with ``order`` its rows by (code, row)."""
    cdef int64_t i, k
    cdef const uint32_t* table = scratch.table
    cdef const uint32_t* number
    cdef uint32_t* start
    cdef uint32_t c, total
    cdef uint64_t pair
    if ranked.n_codes == 0:
        memset(codes, 0, n * sizeof(code_t))
    elif ranked.way == LOOKUP:
        number = <const uint32_t*>scratch.pairs
        for i in range(n):
            codes[i] = <code_t>table[number[i]]
    elif ranked.way == HASH:
        for i in range(n):
            codes[i] = <code_t>scratch.few_rank[scratch.few[i]]
    else:
        if ranked.n_missing > 0:
            memset(codes, 0, n * sizeof(code_t))
        for i in range(n - ranked.n_missing):
            pair = scratch.pairs[i]
            codes[<uint32_t>pair] = <code_t>(pair >> 32)
    if order == NULL:
        return
    if ranked.way == SORT:
        k = 0
        if ranked.n_missing > 0:
            for i in range(n):
                if codes[i] == 0:
                    order[k] = <uint32_t>i
                    k += 1
        for i in range(n - ranked.n_missing):
            order[k + i] = <uint32_t>scratch.pairs[i]
    else:
        # counting sort; n_codes + 1 counters fit the pairs
        start = <uint32_t*>scratch.pairs
        memset(start, 0, (ranked.n_codes + 1) * sizeof(uint32_t))
        for i in range(n):
            start[codes[i]] += 1
        total = 0
        for k in range(ranked.n_codes + 1):
            c = start[k]
            start[k] = total
            total += c
        for i in range(n):
            order[start[codes[i]]] = <uint32_t>i
            start[codes[i]] += 1


cdef int64_t lay_out(Scratch* scratch, int64_t n, uint8_t* start) noexcept nogil:
    """Lay scratch for columns of up to n rows out from `start` on; returns how many bytes it is."""
    cdef int64_t at = 0
    scratch.table = <uint32_t*>_next(start, &at, (4 * n + LEAST_RANGE + 2) * sizeof(uint32_t))
    scratch.pairs = <uint64_t*>_next(start, &at, (n + 2) * sizeof(uint64_t))
    scratch.other = <uint64_t*>_next(start, &at, (n + 2) * sizeof(uint64_t))
    scratch.few = <uint16_t*>_next(start, &at, (n + 1) * sizeof(uint16_t))
    scratch.slot_key = <uint64_t*>_next(start, &at, SLOTS * sizeof(uint64_t))
    scratch.slot_number = <uint16_t*>_next(start, &at, SLOTS * sizeof(uint16_t))
    scratch.few_key = <FewKey*>_next(start, &at, FEW * sizeof(FewKey))
    scratch.few_rank = <uint16_t*>_next(start, &at, (FEW + 1) * sizeof(uint16_t))
    return at


cdef inline uint8_t* _next(uint8_t* start, int64_t* at, int64_t n_bytes) noexcept nogil:
    cdef uint8_t* found = start + at[0]
    at[0] += (n_bytes + 63) // 64 * 64
    return found


def cut_column(const value_t[::1] values, const value_t[::1] cuts, code_t[::1] codes):
    """Codes of one column by ascending cuts of its type; ``codes`` OUT."""
    cdef int64_t n = values.shape[0], n_cuts = cuts.shape[0]
    cdef bint is_cut = n == 0
    if n > 0:
        with nogil:
            is_cut = cut_values(&values[0], n, &cuts[0] if n_cuts > 0 else NULL, n_cuts, &codes[0])
    if not is_cut:
        raise MemoryError("no memory for the scratch space of coding")


cdef bint cut_values(const value_t* values, int64_t n, const value_t* cuts, int64_t n_cuts,
                     code_t* codes) noexcept nogil:
    """Codes of n values by ascending cuts; False without memory."""
    cdef int64_t i, k = 0, at, widest = 0, slots = 256, step, top = 1
    cdef int shift = 0
    cdef uint64_t first, span, key
    cdef value_t x
    if n_cuts == 0:
        for i in range(n):
            codes[i] = <code_t>(values[i] == values[i])
        return True
    while slots < 16 * n_cuts and slots < (1 << 18) and slots < n:
        slots *= 2
    cdef uint32_t* begin = <uint32_t*>malloc((slots + 1) * sizeof(uint32_t))
    cdef value_t* padded = <value_t*>malloc((2 * n_cuts + 4) * sizeof(value_t))
    if begin == NULL or padded == NULL:
        free(begin)
        free(padded)
        return False
    first = key_of(cuts[0])
    span = key_of(cuts[n_cuts - 1]) - first
    while (span >> shift) >= <uint64_t>slots:
        shift += 1
    # begin[s]: cuts that stand before slot s
    for i in range(slots + 1):
        while k < n_cuts and <int64_t>((key_of(cuts[k]) - first) >> shift) < i:
            k += 1
        begin[i] = <uint32_t>k
    for i in range(slots):
        widest = begin[i + 1] - begin[i] if begin[i + 1] - begin[i] > widest else widest
    while 2 * top <= widest:
        top *= 2
    for i in range(2 * n_cuts + 4):
        padded[i] = cuts[i] if i < n_cuts else INFINITY
    for i in range(n):
        x = values[i]
        key = key_of(x)
        key = (key - first) >> shift if key > first else 0
        key = key if key < <uint64_t>slots else slots - 1
        at = begin[key]
        step = top
        while step > 0:
            at += step if padded[at + step - 1] < x else 0
            step >>= 1
        codes[i] = <code_t>(at + 1 if x == x else 0)
    free(begin)
    free(padded)
    return True


cdef int64_t quantiles(const value_t* ordered, const int64_t* weights, int64_t n, int64_t zeros,
                       int64_t max_bins, value_t* low, value_t* high) noexcept nogil:
    """Least and greatest value of every code, from a sample; returns how many codes there are.

    ordered : values that were sampled, ascending. weights : of each; NULL: one. zeros : total
    weight of the zeros that were sampled beside them. low, high : min(max_bins, n + 1), OUT.

    Of a total weight W, cut k of K is the value at which the weight of all values up to it reaches
    k W / K. Equal cuts are one.
    """
    cdef int64_t total = zeros, up_to = 0, i = 0, k = 1, wanted, n_codes = 0
    cdef bint begins = True, is_beside = zeros > 0
    cdef value_t x
    if weights == NULL:
        total += n
    else:
        for i in range(n):
            total += weights[i]
        i = 0
    wanted = _share(total, 1, max_bins)
    while i < n or is_beside:
        if is_beside and (i == n or ordered[i] >= 0):
            x = 0
            up_to += zeros
            is_beside = False
        else:
            x = ordered[i]
        while i < n and ordered[i] == x:
            up_to += 1 if weights == NULL else weights[i]
            i += 1
        if begins:
            low[n_codes] = x
            begins = False
        if up_to >= wanted:
            high[n_codes] = x
            n_codes += 1
            begins = True
            while k <= max_bins and wanted <= up_to:
                k += 1
                wanted = _share(total, k, max_bins)
    return n_codes


cdef inline int64_t _share(int64_t total, int64_t k, int64_t n) noexcept nogil:
    """k n-ths of a total, rounded up; k and n are below 2**31, the product of all may be large."""
    return total // n * k + (total % n * k + n - 1) // n


def quantile_codes(const value_t[::1] ordered, int64_t max_bins, int64_t zeros=0,
                   const int64_t[::1] weights=None):
    """Least and greatest value of every code, from a sample.

    Parameters
    ----------
    ordered : float32 or float64 (m,)
        Sampled values, ascending, without NaN.
    max_bins : int
    zeros : int, default=0
        Zeros that were sampled beside these values (rows that a sparse column does not store), or
        their total weight.
    weights : int64 (m,) or None, default=None
        None: every value counts once.

    Returns
    -------
    low, high : same type (n_codes,)
        A value x has the first code with ``x <= high[code - 1]``; the last when there is none.
    """
    cdef int64_t n = ordered.shape[0], room = min(max_bins, n + 1), n_codes
    found = np.empty((2, room), dtype=np.float32 if value_t is float else np.float64)
    cdef value_t[:, ::1] to = found
    n_codes = quantiles(&ordered[0] if n > 0 else NULL,
                        &weights[0] if weights is not None and n > 0 else NULL,
                        n, zeros, max_bins, &to[0, 0], &to[1, 0])
    return found[0, :n_codes], found[1, :n_codes]


def cut_sparse(const value_t[::1] data, const int64_t[::1] indptr, const int64_t[::1] columns,
               const double[::1] cuts, const int64_t[::1] cut_start, const int64_t[::1] target,
               uint32_t[::1] codes, uint32_t[::1] fill):
    """Codes of the stored values of some sparse columns, and of zero.

    The cuts of column ``columns[i]`` stand from ``cut_start[i]`` to ``cut_start[i + 1]``. Its codes
    are written from ``target[i]`` on, OUT, and the code of zero to ``fill[i]``, OUT.
    """
    cdef int64_t i, p, at
    cdef double x
    with nogil:
        for i in range(columns.shape[0]):
            at = target[i]
            fill[i] = _code_by_cuts(cuts, cut_start[i], cut_start[i + 1], 0.0)
            for p in range(indptr[columns[i]], indptr[columns[i] + 1]):
                x = data[p]
                codes[at] = _code_by_cuts(cuts, cut_start[i], cut_start[i + 1], x)
                at += 1


cdef inline uint32_t _code_by_cuts(const double[::1] cuts, int64_t first, int64_t last,
                                   double x) noexcept nogil:
    """1 + how many of ``cuts[first:last]`` are below x; 0 for NaN. Bisection."""
    cdef int64_t low = first, high = last, middle
    if x != x:
        return 0
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < x:
            low = middle + 1
        else:
            high = middle
    return <uint32_t>(low - first + 1)


def scratch_bytes(int64_t n_rows):
    """Bytes of scratch for the coding of a column; pages that are not touched cost nothing."""
    cdef Scratch scratch
    return lay_out(&scratch, n_rows, NULL)


cdef struct Sampled:
    const int64_t* rows     # in ascending order; NULL: all
    const int64_t* weights  # of all rows; NULL: one
    int64_t n


def rank_columns(const value_t[:, ::1] values, int64_t max_bins, const int64_t[::1] columns,
                 uint8_t[::1] room, blocks, value_t[:, ::1] low, value_t[:, ::1] high,
                 int64_t[::1] n_codes, uint8_t[::1] status, uint8_t[::1] is_binned,
                 const int64_t[::1] rows=None, const int64_t[::1] weights=None,
                 bint cuts_missing=True):
    """Codes of a tile; those of column p are written from ``p * n_rows`` on.

    Parameters
    ----------
    values : float32 or float64 (k, n_rows)
    max_bins : int
        Columns with more distinct values are cut at quantiles.
    columns : int64 (k,)
        Column k of the tile is column ``columns[k]`` of the table.
    room : uint8 (at least scratch_bytes(n_rows),)   SCRATCH
    blocks : tuple of uint8, uint16, uint32 and uint32 (n_columns * n_rows,)   OUT
        Codes of each width, and the rows of uint32 columns by (code, row), but for those that are
        cut. May be empty when no column can need them: ``min(max_bins, n_rows)`` decides.
    low, high : float32 or float64 (k, at least min(max_bins, n_rows))   OUT
        Least and greatest value of every code; the same array where no column can be cut.
    n_codes, status, is_binned : int64, uint8, uint8 (n_columns,)   OUT
        A column that was not cut, see below, has the status `STATUS_TOO_MANY` and no codes.
    rows : int64 or None, default=None
        That are sampled for cuts; None: all.
    weights : int64 (n_rows,) or None, default=None
        None: every row counts once.
    cuts_missing : bool, default=True
        False: columns with missing values have other samples, and are not cut.
    """
    cdef Scratch scratch
    cdef Ranked ranked
    cdef Sampled sample
    cdef int64_t n = values.shape[1], k, p
    cdef uint8_t[::1] u8 = blocks[0]
    cdef uint16_t[::1] u16 = blocks[1]
    cdef uint32_t[::1] u32 = blocks[2]
    cdef uint32_t[::1] order = blocks[3]
    cdef bint is_done = True
    if lay_out(&scratch, n, &room[0]) > len(room):
        raise ValueError("the room for scratch is too small")
    sample.rows = &rows[0] if rows is not None else NULL
    sample.weights = &weights[0] if weights is not None else NULL
    sample.n = n if rows is None else rows.shape[0]
    with nogil:
        for k in range(values.shape[0]):
            p = columns[k]
            rank(&values[k, 0], n, max_bins, &low[k, 0], &scratch, &ranked)
            status[p] = <uint8_t>ranked.status
            is_binned[p] = ranked.status == TOO_MANY
            if ranked.status == TOO_MANY and (cuts_missing or ranked.n_missing == 0):
                status[p] = CODED
                n_codes[p] = cut_sample(&values[k, 0], n, &sample, ranked.way == SORT, max_bins,
                                        &low[k, 0], &high[k, 0], &scratch)
                if n_codes[p] <= 0xFF:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u8[p * n])
                elif n_codes[p] <= 0xFFFF:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u16[p * n])
                else:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u32[p * n])
                continue
            n_codes[p] = ranked.n_codes
            if ranked.status != CODED:
                continue
            if &high[k, 0] != &low[k, 0]:
                memcpy(&high[k, 0], &low[k, 0], ranked.n_codes * sizeof(value_t))
            if ranked.n_codes <= 0xFF:
                write_codes(n, &scratch, &ranked, &u8[p * n], NULL)
            elif ranked.n_codes <= 0xFFFF:
                write_codes(n, &scratch, &ranked, &u16[p * n], NULL)
            else:
                write_codes(n, &scratch, &ranked, &u32[p * n],
                            &order[p * n] if order.shape[0] else NULL)
    if not is_done:
        raise MemoryError("no memory for the scratch space of coding")


cdef int64_t cut_sample(const value_t* v, int64_t n, const Sampled* sample, bint is_sorted,
                        int64_t max_bins, value_t* low, value_t* high,
                        Scratch* scratch) noexcept nogil:
    """Least and greatest value of every code of a column; returns how many codes there are.

    is_sorted : `rank` has sorted the rows, and left missing ones out. The sampled values that are
    not missing are left in ``scratch.other``, ascending.
    """
    cdef value_t* ordered = <value_t*>scratch.other
    cdef value_t* sampled = <value_t*>scratch.table             # room for 16 bytes a row
    cdef int64_t* weights = <int64_t*>(scratch.table + 2 * n)
    cdef int64_t i, row, m = sample.n
    cdef const value_t* of_sample = v
    if sample.rows != NULL:
        for i in range(m):
            sampled[i] = v[sample.rows[i]]
        of_sample = sampled
        is_sorted = False
    if not is_sorted:
        m = sort_rows(of_sample, m, scratch)
    else:
        for i in range(n):
            m -= v[i] != v[i]
    for i in range(m):
        row = <uint32_t>scratch.pairs[i]
        ordered[i] = of_sample[row]
    if sample.weights != NULL:
        for i in range(m):
            row = <uint32_t>scratch.pairs[i]
            weights[i] = sample.weights[row if sample.rows == NULL else sample.rows[row]]
    return quantiles(ordered, weights if sample.weights != NULL else NULL, m, 0, max_bins, low,
                     high)


cdef bint code_rows(const value_t* v, int64_t n, const Sampled* sample, const value_t* high,
                    int64_t n_codes, Scratch* scratch, code_t* codes) noexcept nogil:
    """Codes of a column that `cut_sample` has cut; False without memory."""
    cdef const value_t* ordered = <const value_t*>scratch.other
    cdef int64_t i, m = n, code = 0
    if sample.rows != NULL:
        return cut_values(v, n, high, n_codes - 1, codes)
    for i in range(n):
        m -= v[i] != v[i]
    if m < n:
        memset(codes, 0, n * sizeof(code_t))
    for i in range(m):
        code += ordered[i] > high[code]
        codes[<uint32_t>scratch.pairs[i]] = <code_t>(code + 1)
    return True


def distinct_values(const value_t[::1] values, int64_t max_bins):
    """Distinct values, ascending, and the status of the column; no values but for status 0."""
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t n = values.shape[0]
    cdef uint8_t[::1] room = np.empty(scratch_bytes(n), dtype=np.uint8)
    found = np.empty(min(n, max_bins), dtype=np.float32 if value_t is float else np.float64)
    cdef value_t[::1] low = found
    lay_out(&scratch, n, &room[0])
    with nogil:
        rank(&values[0], n, max_bins, &low[0], &scratch, &ranked)
    return found[:ranked.n_codes], ranked.status


def rank_sparse(const value_t[::1] data, const int64_t[::1] indptr, int64_t first, int64_t last,
                int64_t n_rows, int64_t max_bins, out):
    """Codes of the stored values of sparse columns ``first .. last - 1``.

    Zero is a value of the column when a row is not stored or stores it.

    Parameters
    ----------
    data : float32 or float64 (nnz,)
    indptr : int64 (n_columns + 1,)
    out : `dtrees.coding.sparse_columns.SparseCodes`   OUT
    """
    cdef uint32_t[::1] codes = out.codes
    cdef value_t[::1] low = out.low
    cdef int64_t[::1] n_codes = out.n_codes
    cdef uint32_t[::1] fill = out.fill
    cdef uint8_t[::1] status = out.status
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t j, i, n, at, longest = 0, z, c
    cdef value_t* values
    cdef value_t[::1] own
    cdef uint8_t[::1] room
    cdef value_t* v
    for j in range(first, last):
        n = indptr[j + 1] - indptr[j]
        longest = n if n > longest else longest
    own = np.empty(longest + 1, dtype=np.float32 if value_t is float else np.float64)
    room = np.empty(scratch_bytes(longest), dtype=np.uint8)
    v = &own[0]
    lay_out(&scratch, longest, &room[0])
    with nogil:
        for j in range(first, last):
            at = indptr[j]
            n = indptr[j + 1] - at
            for i in range(n):
                v[i] = data[at + i] + <value_t>0.0
            values = &low[at + j]
            rank(v, n, max_bins, values, &scratch, &ranked)
            status[j] = <uint8_t>ranked.status
            n_codes[j] = ranked.n_codes
            fill[j] = 0
            if ranked.status != CODED:
                continue
            if n > 0:
                write_codes(n, &scratch, &ranked, &codes[at], NULL)
            # z values are below zero
            z = ranked.n_codes
            while z > 0 and values[z - 1] >= 0:
                z -= 1
            if z < ranked.n_codes and values[z] == 0:
                fill[j] = <uint32_t>(z + 1)
            elif n < n_rows:
                if ranked.n_codes == max_bins:
                    status[j] = TOO_MANY
                    continue
                for c in range(ranked.n_codes, z, -1):
                    values[c] = values[c - 1]
                values[z] = 0
                if z < ranked.n_codes:
                    for i in range(n):
                        codes[at + i] += codes[at + i] > <uint32_t>z
                fill[j] = <uint32_t>(z + 1)
                n_codes[j] = ranked.n_codes + 1
