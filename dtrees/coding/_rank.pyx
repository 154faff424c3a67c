"""Distinct values of a column in ascending order, and every row's number among them.

The cheapest of three ways is taken:

    LOOKUP   whole numbers in a small range: a table of which are present. O(n + range)
    HASH     at most `FEW` distinct values, a quarter of the rows at most: a hash table that gives
             up early, and a sort of what it holds. O(n)
    SORT     pairs (key, row) by radix. O(n)

A pair holds a key less the least key, so that only the bits that differ are sorted. A float64 key
is reduced to 32 bits by dropping the low bits in which all keys agree. When more than 32 remain,
the upper 32 are sorted first and runs of equal ones by the rest.

`rank` finds the values and `write_codes` writes the codes, in the width that their number needs.

    codes    uint8 | uint16 | uint32, one per row; 0 = NaN
    order    uint32, rows in ascending order of (code, row)
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memset

from dtrees.coding._keys cimport code_t, key_of, value_of, value_t
from dtrees.coding._radix_sort cimport sort_pairs

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef enum:
    FEW = 2048              # distinct values that the hash table holds
    SLOTS = 8192
    BLOCK = 64              # values that are converted at once
    LEAST_RANGE = 1024      # of whole numbers that are always looked up
    SMALL = 40              # rows, up to which sorting is cheapest

cdef struct Keys:
    uint64_t first          # the least key
    int drop                # low bits in which all agree
    bint is_whole           # a pair holds all the other bits


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
