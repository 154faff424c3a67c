"""Values to codes: the loops of the coding floor.

A column is copied out of the table as contiguous float32 (when that is exact) or float64, with
-0.0 turned to 0.0 and NaN left in. `_rank` then finds its distinct values in ascending order and
every row's number among them, by the cheapest of three ways:

    LOOKUP   whole numbers in a small range: a table of which are present. O(n + range)
    HASH     at most `FEW` distinct values, a quarter of the rows at most: a hash table that gives
             up early, and a sort of what it holds. O(n)
    SORT     pairs (key, row) by radix. O(n)

    pair   | key, 32 bits | row, 32 bits |       key - least key, so that only the bits that
                                                 differ are sorted

A float is ordered like an unsigned integer once its sign bit is flipped (positive) or all its bits
are (negative). A float64 key is reduced to 32 bits by dropping the low bits in which all keys
agree; when more than 32 remain, the upper 32 are sorted first and runs of equal ones by the rest.
The sort is one pass over the leading bits into buckets that stay in the cache and then, bucket by
bucket, least significant digits first; buckets of a few pairs are inserted.

`_emit` writes the codes in the width that their number asks for.

    codes    uint8 | uint16 | uint32, one per row; 0 = NaN
    order    uint32, rows in ascending order of (code, row)

`cut_columns` codes by given cuts: code = 1 + number of cuts below the value. A table over the
leading bits of the key says where among the cuts to begin, a few steps of bisection do the rest.

No function of this file fails; infinities are reported by a status.
"""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil
    int trailing_zeros "__builtin_ctzll"(unsigned long long) noexcept nogil

ctypedef fused input_t:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused label_t:
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused value_t:
    float
    double

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    FEW = 2048              # distinct values that the hash table holds
    SLOTS = 8192
    DIGIT = 11              # bits sorted in one pass
    SMALL = 40              # pairs that are inserted rather than counted
    BLOCK = 64              # values that are converted at once
    LEAST_RANGE = 1024      # of whole numbers that are always looked up

cdef enum Way:
    LOOKUP
    HASH
    SORT

# What became of a column.
cdef enum Status:
    CODED = 0
    TOO_MANY = 1            # more distinct values than asked for
    INFINITE = 2

STATUS_TOO_MANY = TOO_MANY
STATUS_INFINITE = INFINITE

cdef union Bits32:
    float value
    uint32_t bits

cdef union Bits64:
    double value
    uint64_t bits

cdef struct Scratch:
    int64_t n               # rows it is made for
    uint32_t* table         # lookup: 4 n + LEAST_RANGE + 2
    uint64_t* pairs         # sort: n; lookup: place in the table of every row, n uint32
    uint64_t* other         # sort: n
    uint16_t* few           # hash: provisional number of every row, n
    uint64_t* slot_key      # hash: SLOTS
    uint16_t* slot_number   # hash: SLOTS, 0 = free
    uint64_t* few_key       # hash: FEW
    uint16_t* few_rank      # hash: FEW + 1

cdef struct Ranked:
    Way way
    Status status
    int64_t n_codes
    int64_t n_missing
    int32_t least           # lookup: value of table[1]


# ------------------------------------------------------------------------------------------ keys

cdef inline uint64_t _key(value_t value) noexcept nogil:
    """A value as an unsigned integer of the same order; not for NaN or -0.0."""
    cdef Bits32 narrow
    cdef Bits64 wide
    if value_t is float:
        narrow.value = value
        return narrow.bits ^ ((<uint32_t>(<int32_t>narrow.bits >> 31)) | 0x80000000U)
    else:
        wide.value = value
        return wide.bits ^ ((<uint64_t>(<int64_t>wide.bits >> 63)) | 0x8000000000000000ULL)


cdef inline value_t _value(uint64_t key, value_t kind) noexcept nogil:
    """The value of a key; ``kind`` only says which type."""
    cdef Bits32 narrow
    cdef Bits64 wide
    if value_t is float:
        narrow.bits = <uint32_t>key
        narrow.bits ^= (<uint32_t>(<int32_t>(~narrow.bits) >> 31)) | 0x80000000U
        return narrow.value
    else:
        wide.bits = key ^ ((<uint64_t>(<int64_t>(~key) >> 63)) | 0x8000000000000000ULL)
        return wide.value


cdef inline int _bit_length(uint64_t x) noexcept nogil:
    return 64 - leading_zeros(x) if x else 0


# ------------------------------------------------------------------------------------------ sort

cdef void _insert(uint64_t* a, int64_t n) noexcept nogil:
    """Insertion sort; pairs differ in their rows, so the order is strict."""
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
    cdef uint32_t[1 << DIGIT] count
    cdef uint64_t* source = a
    cdef uint64_t* target = b
    cdef uint64_t* swap
    cdef int passes, width, p, shift
    cdef int64_t i
    cdef uint32_t size, total, c, k, mask
    if n <= SMALL:
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
        shift = 32 + p * width
        memset(count, 0, size * sizeof(uint32_t))
        for i in range(n):
            count[(source[i] >> shift) & mask] += 1
        total = 0
        for k in range(size):
            c = count[k]
            count[k] = total
            total += c
        for i in range(n):
            k = (source[i] >> shift) & mask
            target[count[k]] = source[i]
            count[k] += 1
        swap = source
        source = target
        target = swap
    if source != a:
        memcpy(a, source, n * sizeof(uint64_t))


cdef void _sort_pairs(uint64_t* a, uint64_t* b, int64_t n, int bits) noexcept nogil:
    """Sorts pairs by (key, row); keys have at most ``bits`` bits, rows ascend already.

    O(n): leading bits into buckets of ``b``, each sorted there by its other bits and copied back.
    """
    cdef uint32_t[(1 << DIGIT) + 1] start
    cdef int lead, shift, rest
    cdef int64_t i
    cdef uint32_t k, c, total, size
    if n <= SMALL or bits == 0 or n <= 4096:
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


# ------------------------------------------------------------------------------------------ rank

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
        key = _key(v[i])
        h = ((key * 0x9E3779B97F4A7C15ULL) >> 40) & mask
        while True:
            number = scratch.slot_number[h]
            if number == 0:
                if count == limit:
                    if limit == max_bins:
                        out.status = TOO_MANY
                        return True
                    return False
                scratch.few_key[count] = key
                count += 1
                # mostly new values: not worth going on
                if count == 192 and i < 256 and n > 1024 and max_bins > FEW:
                    return False
                number = <uint16_t>count
                scratch.slot_number[h] = number
                scratch.slot_key[h] = key
                break
            if scratch.slot_key[h] == key:
                break
            h = (h + 1) & mask
        few[i] = number
    _sort_keys(scratch.few_key, count, scratch)
    scratch.few_rank[0] = 0
    for k in range(count):
        low[k] = _value(scratch.few_key[k], low[0])
    out.way = HASH
    out.n_codes = count
    return True


cdef void _sort_keys(uint64_t* key, uint32_t n, Scratch* scratch) noexcept nogil:
    """Sorts distinct keys and sets few_rank[1 + place before] = 1 + place after. Heap sort."""
    cdef uint16_t* at = scratch.few_rank
    cdef uint32_t i, root, child, end
    cdef uint64_t x
    cdef uint16_t[FEW] place
    cdef uint16_t p
    for i in range(n):
        place[i] = <uint16_t>i
    if n > 1:
        i = n // 2
        end = n
        while True:
            if i > 0:
                i -= 1
                x = key[i]
                p = place[i]
            else:
                end -= 1
                if end == 0:
                    break
                x = key[end]
                p = place[end]
                key[end] = key[0]
                place[end] = place[0]
            root = i
            child = 2 * i + 1
            while child < end:
                if child + 1 < end and key[child + 1] > key[child]:
                    child += 1
                if key[child] <= x:
                    break
                key[root] = key[child]
                place[root] = place[child]
                root = child
                child = 2 * child + 1
            key[root] = x
            place[root] = p
            if end == 1:
                break
    for i in range(n):
        at[1 + place[i]] = <uint16_t>(i + 1)


cdef void _rank_sort(const value_t* v, int64_t n, value_t least, value_t most, int64_t max_bins,
                     value_t* low, Scratch* scratch, Ranked* out) noexcept nogil:
    """Codes by sorting; leaves (code, row) pairs in ``scratch.pairs``, missing rows left out."""
    cdef uint64_t* pairs = scratch.pairs
    cdef uint64_t first = _key(least), span = _key(most) - first, differ, key, code = 0
    cdef int64_t i, k, m = 0, end
    cdef int bits = _bit_length(span), drop = 0, split = 0
    cdef uint64_t rest_mask
    cdef value_t x, previous
    cdef bint same
    if bits > 32:
        differ = 0
        for i in range(n):
            if v[i] == v[i]:
                differ |= _key(v[i]) - first
        drop = trailing_zeros(differ)
        bits -= drop
        if bits > 32:
            split = bits - 32
            bits = 32
    for i in range(n):
        x = v[i]
        if x == x:
            pairs[m] = (((_key(x) - first) >> (drop + split)) << 32) | <uint64_t>i
            m += 1
    _sort_pairs(pairs, scratch.other, m, bits)
    if split > 0:
        # runs of equal leading bits, by the others
        rest_mask = ((1ULL << split) - 1)
        i = 0
        while i < m:
            end = i + 1
            while end < m and (pairs[end] >> 32) == (pairs[i] >> 32):
                end += 1
            if end - i > 1:
                same = True
                x = v[<uint32_t>pairs[i]]
                for k in range(i + 1, end):
                    if v[<uint32_t>pairs[k]] != x:
                        same = False
                        break
                if not same:
                    for k in range(i, end):
                        key = ((_key(v[<uint32_t>pairs[k]]) - first) >> drop) & rest_mask
                        pairs[k] = (key << 32) | <uint32_t>pairs[k]
                    _sort_pairs(pairs + i, scratch.other, end - i, split)
            i = end
        previous = 0
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
        key = 0
        for i in range(m):
            if i == 0 or (pairs[i] >> 32) != key:
                if <int64_t>code == max_bins:
                    out.status = TOO_MANY
                    return
                key = pairs[i] >> 32
                low[code] = _value(first + (key << drop), least)
                code += 1
            pairs[i] = (code << 32) | <uint32_t>pairs[i]
    out.way = SORT
    out.n_codes = <int64_t>code


cdef void _rank_few_rows(const value_t* v, int64_t n, int64_t max_bins, value_t* low,
                         Scratch* scratch, Ranked* out) noexcept nogil:
    """`_rank_sort` for at most `SMALL` rows: values are inserted as they are."""
    cdef value_t[SMALL] sorted_value
    cdef uint64_t* pairs = scratch.pairs
    cdef int64_t i, k, m = 0
    cdef uint64_t code = 0
    cdef value_t x
    for i in range(n):
        x = v[i]
        if x != x:
            continue
        k = m
        while k > 0 and sorted_value[k - 1] > x:
            sorted_value[k] = sorted_value[k - 1]
            pairs[k] = pairs[k - 1]
            k -= 1
        sorted_value[k] = x
        pairs[k] = <uint64_t>i
        m += 1
    for i in range(m):
        if i == 0 or sorted_value[i] != sorted_value[i - 1]:
            if <int64_t>code == max_bins:
                out.status = TOO_MANY
                return
            low[code] = sorted_value[i]
            code += 1
        pairs[i] = (code << 32) | <uint32_t>pairs[i]
    out.way = SORT
    out.n_codes = <int64_t>code


cdef void _rank(const value_t* v, int64_t n, int64_t max_bins, value_t* low, Scratch* scratch,
                Ranked* out) noexcept nogil:
    """Distinct values of a column into ``low``, ascending, and what `_emit` needs.

    ``low`` has room for min(n, max_bins) values.
    """
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
    if n <= SMALL:
        _rank_few_rows(v, n, max_bins, low, scratch, out)
        return
    if _rank_hash(v, n, max_bins, low, scratch, out):
        return
    _rank_sort(v, n, least, most, max_bins, low, scratch, out)


cdef void _emit(const value_t* v, int64_t n, Scratch* scratch, const Ranked* ranked,
                code_t* codes, uint32_t* order) noexcept nogil:
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
        # counting sort; more than 65,535 codes, so n_codes + 1 counters fit the pairs
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


cdef int64_t _place(Scratch* s, int64_t n, uint8_t* start) noexcept nogil:
    """Lay scratch for columns of up to n rows out from `start` on; returns how many bytes it is."""
    cdef int64_t at = 0
    s.n = n
    s.table = <uint32_t*>_next(start, &at, (4 * n + LEAST_RANGE + 2) * sizeof(uint32_t))
    s.pairs = <uint64_t*>_next(start, &at, (n + 2) * sizeof(uint64_t))
    s.other = <uint64_t*>_next(start, &at, (n + 2) * sizeof(uint64_t))
    s.few = <uint16_t*>_next(start, &at, (n + 1) * sizeof(uint16_t))
    s.slot_key = <uint64_t*>_next(start, &at, SLOTS * sizeof(uint64_t))
    s.slot_number = <uint16_t*>_next(start, &at, SLOTS * sizeof(uint16_t))
    s.few_key = <uint64_t*>_next(start, &at, FEW * sizeof(uint64_t))
    s.few_rank = <uint16_t*>_next(start, &at, (FEW + 1) * sizeof(uint16_t))
    return at


cdef inline uint8_t* _next(uint8_t* start, int64_t* at, int64_t n_bytes) noexcept nogil:
    cdef uint8_t* found = start + at[0]
    at[0] += (n_bytes + 63) // 64 * 64
    return found


# ---------------------------------------------------------------------------------- entry points

def load_columns(const input_t[:, :] X, value_t[:, ::1] out):
    """Copies columns of a table, whatever its strides, to rows of ``out``.

    Parameters
    ----------
    X : (n_rows, k), any numbers
    out : float32 or float64 (k, n_rows), C order
        Float32 only for types that it holds exactly. -0.0 becomes 0.0.
    """
    cdef Py_ssize_t n = X.shape[0], k = X.shape[1], i, j
    cdef Py_ssize_t end, start = 0
    cdef value_t* column
    cdef const char* cell
    cdef Py_ssize_t step = X.strides[0]
    if n == 0 or k == 0:
        return
    with nogil:
        if X.strides[0] <= X.strides[1] or k == 1:
            for j in range(k):
                column = &out[j, 0]
                cell = <const char*>&X[0, j]
                for i in range(n):
                    column[i] = <value_t>((<const input_t*>(cell + i * step))[0]) + <value_t>0.0
        else:
            # rows are closer together than columns: a cache's worth of rows for all columns
            while start < n:
                end = start + 128 if start + 128 < n else n
                for j in range(k):
                    column = &out[j, 0]
                    cell = <const char*>&X[0, j]
                    for i in range(start, end):
                        column[i] = (<value_t>((<const input_t*>(cell + i * step))[0])
                                     + <value_t>0.0)
                start = end


def scratch_bytes(int64_t n_rows):
    """How much scratch the coding of a column takes; pages that are not touched cost nothing."""
    cdef Scratch scratch
    return _place(&scratch, n_rows, NULL)


def rank_columns(const value_t[:, ::1] values, int64_t max_bins, int64_t[::1] place,
                 uint8_t[::1] room, uint8_t[::1] u8, uint16_t[::1] u16, uint32_t[::1] u32,
                 uint32_t[::1] order, value_t[:, ::1] low, int64_t[::1] n_codes,
                 uint8_t[::1] status):
    """Codes of columns by their distinct values.

    Column k of the tile is column p = place[k] of the table; its codes are written from
    ``p * n_rows`` on in the block that fits them.

    Parameters
    ----------
    values : float32 or float64 (k, n_rows)
    max_bins : int
        Columns with more distinct values get the status `STATUS_TOO_MANY` and no codes.
    place : int64 (k,)
    room : uint8 (at least scratch_bytes(n_rows),)   SCRATCH
    u8, u16, u32, order : uint8, uint16, uint32, uint32 (n_columns * n_rows,)   OUT
        May be empty when no column can need them: ``min(max_bins, n_rows)`` decides.
    low : float32 or float64 (k, at least min(max_bins, n_rows))   OUT
        Distinct values, ascending.
    n_codes : int64 (n_columns,)   OUT
    status : uint8 (n_columns,)   OUT
    """
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t n = values.shape[1], k, p
    cdef const value_t* v
    if _place(&scratch, n, &room[0]) > len(room):
        raise ValueError("the room for scratch is too small")
    with nogil:
        for k in range(values.shape[0]):
            v = &values[k, 0]
            p = place[k]
            _rank(v, n, max_bins, &low[k, 0], &scratch, &ranked)
            status[p] = <uint8_t>ranked.status
            n_codes[p] = ranked.n_codes
            if ranked.status != CODED:
                continue
            if ranked.n_codes <= 0xFF:
                _emit(v, n, &scratch, &ranked, &u8[p * n], NULL)
            elif ranked.n_codes <= 0xFFFF:
                _emit(v, n, &scratch, &ranked, &u16[p * n], NULL)
            else:
                _emit(v, n, &scratch, &ranked, &u32[p * n],
                      &order[p * n] if order.shape[0] else NULL)


def rank_sparse(const value_t[::1] data, const int64_t[::1] indptr, int64_t first, int64_t last,
                int64_t n_rows, int64_t max_bins, uint32_t[::1] codes, value_t[::1] low,
                int64_t[::1] n_codes, uint32_t[::1] fill, uint8_t[::1] status):
    """Codes of the stored values of sparse columns ``first .. last - 1``.

    Zero is a value of the column when a row is not stored or stores it.

    Parameters
    ----------
    data : float32 or float64 (nnz,)
    indptr : int64 (n_columns + 1,)
    codes : uint32 (nnz,)   OUT
    low : float32 or float64 (nnz + n_columns,)   OUT
        Distinct values of column j from ``indptr[j] + j`` on.
    n_codes, fill, status : int64, uint32, uint8 (n_columns,)   OUT
        Fill is the code of zero; 0 when zero is no value of the column.
    """
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t j, i, n, at, longest = 0, z, c
    cdef value_t* values
    cdef value_t[::1] own
    cdef uint8_t[::1] room
    cdef value_t* v
    cdef bint implicit
    for j in range(first, last):
        n = indptr[j + 1] - indptr[j]
        longest = n if n > longest else longest
    own = np.empty(longest + 1, dtype=np.float32 if value_t is float else np.float64)
    room = np.empty(scratch_bytes(longest), dtype=np.uint8)
    v = &own[0]
    _place(&scratch, longest, &room[0])
    with nogil:
        for j in range(first, last):
            at = indptr[j]
            n = indptr[j + 1] - at
            for i in range(n):
                v[i] = data[at + i] + <value_t>0.0
            values = &low[at + j]
            _rank(v, n, max_bins, values, &scratch, &ranked)
            status[j] = <uint8_t>ranked.status
            n_codes[j] = ranked.n_codes
            fill[j] = 0
            if ranked.status != CODED:
                continue
            if n > 0:
                _emit(v, n, &scratch, &ranked, &codes[at], NULL)
            implicit = n < n_rows
            # z values are below zero
            z = ranked.n_codes
            while z > 0 and values[z - 1] >= 0:
                z -= 1
            if z < ranked.n_codes and values[z] == 0:
                fill[j] = <uint32_t>(z + 1)
            elif implicit:
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


def sorted_values(const value_t[::1] values):
    """The values that are not NaN, ascending; same type, (m,). O(m), by radix."""
    cdef int64_t n = values.shape[0], i, m = 0
    cdef value_t least, most, x
    cdef int64_t missing = 0
    cdef uint64_t first
    cdef int bits
    cdef uint64_t* pairs = NULL
    if value_t is float:
        out = np.empty(n, dtype=np.float32)
    else:
        out = np.empty(n, dtype=np.float64)
    cdef value_t[::1] view = out
    if n == 0:
        return out
    with nogil:
        _scan(&values[0], n, &least, &most, &missing)
        first = _key(least) if missing < n else 0
        bits = _bit_length(_key(most) - first) if missing < n else 0
        if bits <= 32:
            pairs = <uint64_t*>malloc(2 * n * sizeof(uint64_t))
        if pairs != NULL:
            for i in range(n):
                x = values[i]
                if x == x:
                    pairs[m] = (_key(x) - first) << 32
                    m += 1
            _sort_pairs(pairs, pairs + n, m, bits)
            for i in range(m):
                view[i] = _value(first + (pairs[i] >> 32), least)
        free(pairs)
    if pairs == NULL:
        out = np.sort(values)
    return out[:n - missing]


def cut_column(const value_t[::1] values, const value_t[::1] cuts, code_t[::1] codes):
    """Codes of one column by cuts.

    Parameters
    ----------
    values : float32 or float64 (n_rows,)
    cuts : same type (n_cuts,)
        Ascending. A value has code 1 + the number of cuts below it; NaN has code 0.
    codes : uint8, uint16 or uint32 (n_rows,)   OUT
    """
    cdef int64_t n = values.shape[0], n_cuts = cuts.shape[0], i, k, at, widest = 0
    cdef int64_t slots = 256, step, top
    cdef int shift = 0
    cdef uint64_t first = 0, span = 0, key
    cdef value_t x
    if n == 0:
        return
    if n_cuts == 0:
        with nogil:
            for i in range(n):
                codes[i] = <code_t>(values[i] == values[i])
        return
    while slots < 16 * n_cuts and slots < (1 << 18):
        slots *= 2
    cdef uint32_t* begin = <uint32_t*>malloc((slots + 1) * sizeof(uint32_t))
    cdef value_t* padded = <value_t*>malloc((2 * n_cuts + 4) * sizeof(value_t))
    if begin == NULL or padded == NULL:
        free(begin)
        free(padded)
        raise MemoryError("no memory for the scratch space of coding")
    with nogil:
        first = _key(cuts[0])
        span = _key(cuts[n_cuts - 1]) - first
        while (span >> shift) >= <uint64_t>slots:
            shift += 1
        # begin[s]: cuts that stand before slot s
        k = 0
        for i in range(slots + 1):
            while k < n_cuts and <int64_t>((_key(cuts[k]) - first) >> shift) < i:
                k += 1
            begin[i] = <uint32_t>k
        for i in range(slots):
            widest = begin[i + 1] - begin[i] if begin[i + 1] - begin[i] > widest else widest
        top = 1
        while 2 * top <= widest:
            top *= 2
        for i in range(2 * n_cuts + 4):
            padded[i] = cuts[i] if i < n_cuts else INFINITY
        for i in range(n):
            x = values[i]
            key = _key(x)
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


def cut_sparse(const value_t[::1] data, const int64_t[::1] indptr, const int64_t[::1] columns,
               const double[::1] cuts, const int64_t[::1] cut_start, const int64_t[::1] target,
               uint32_t[::1] codes, uint32_t[::1] fill):
    """Codes of the stored values of some sparse columns by cuts, as in `cut_column`.

    Parameters
    ----------
    data : float32 or float64 (nnz,)
    indptr : int64 (n_columns + 1,)
    columns, target : int64 (k,)
        Column ``columns[i]`` is written from ``target[i]`` on.
    cuts : float64 (n_cuts,)
        Those of column ``columns[i]`` stand from ``cut_start[i]`` to ``cut_start[i + 1]``.
    codes : uint32 (nnz of the columns,)   OUT
    fill : uint32 (k,)   OUT
        The code of zero.
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


def any_infinite(const value_t[:, :] X):
    """Whether a cell is infinite. O(cells), in the order of memory."""
    cdef Py_ssize_t rows = X.shape[0], columns = X.shape[1], i, j
    cdef Py_ssize_t outer = X.strides[0], inner = X.strides[1], swap
    cdef const char* line
    cdef uint64_t found = 0
    cdef const uint32_t* narrow
    cdef const uint64_t* wide
    if rows == 0 or columns == 0:
        return False
    line = <const char*>&X[0, 0]
    with nogil:
        if (inner if inner > 0 else -inner) > (outer if outer > 0 else -outer):
            swap = inner
            inner = outer
            outer = swap
            swap = rows
            rows = columns
            columns = swap
        for i in range(rows):
            if inner == sizeof(value_t):
                if value_t is float:
                    narrow = <const uint32_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (narrow[j] & 0x7FFFFFFFU) == 0x7F800000U
                else:
                    wide = <const uint64_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (wide[j] & 0x7FFFFFFFFFFFFFFFULL) == 0x7FF0000000000000ULL
            else:
                for j in range(columns):
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == INFINITY
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == -INFINITY
            if found:
                break
    return found != 0


def labels_present(const label_t[::1] labels, uint8_t[::1] present):
    """Sets ``present[label]`` for the labels of some row; -1 is no label."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(labels.shape[0]):
            if labels[i] >= 0:
                present[labels[i]] = 1


def label_codes(const label_t[::1] labels, const uint32_t[::1] table, code_t[::1] codes):
    """Codes of labels: ``codes[i] = table[labels[i] + 1]``, so ``table[0]`` is for missing."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(labels.shape[0]):
            codes[i] = <code_t>table[labels[i] + 1]


def take_rows(const code_t[::1, :] block, const uint32_t[::1] rows, code_t[::1, :] out):
    """Some rows of a block of codes, column by column. O(rows x columns), without the GIL.

    Parameters
    ----------
    block : (n_rows, k), Fortran
    rows : uint32 (n,)
        Below n_rows.
    out : (n, k), Fortran
    """
    cdef int64_t n = len(rows)
    cdef int64_t i, j
    with nogil:
        for j in range(block.shape[1]):
            for i in range(n):
                out[i, j] = block[rows[i], j]


def compact(code_t[::1] block, const int64_t[::1] columns, int64_t n):
    """Moves runs of n items to the front: run columns[k] to place k; columns ascend."""
    cdef int64_t k
    if block.shape[0] == 0:
        return
    with nogil:
        for k in range(columns.shape[0]):
            if columns[k] != k:
                memcpy(&block[k * n], &block[columns[k] * n], n * sizeof(code_t))


def compact_values(value_t[::1] block, const int64_t[::1] start, const int64_t[::1] length):
    """Moves runs of values to the front, one behind the other; starts ascend. Returns the total."""
    cdef int64_t k, i, at = 0
    with nogil:
        for k in range(start.shape[0]):
            for i in range(length[k]):
                block[at + i] = block[start[k] + i]
            at += length[k]
    return at


def thresholds(const value_t[::1] low, const value_t[::1] high, const int64_t[::1] offsets,
               const uint8_t[::1] exact, const int64_t[::1] n_ordered, const int32_t[:] column,
               const uint32_t[:] left, const uint32_t[:] right, const double[::1] places):
    """Thresholds between codes that are neighbours in a node, and the last code that goes left.

    Parameters
    ----------
    low, high : float32 or float64 (n_values,)
        Least and greatest value of every code, ascending, one column behind the other.
    offsets : int64 (n_columns + 1,)
        Where the values of a column begin.
    exact : uint8 (n_columns,)
    n_ordered : int64 (n_columns,)
    column : int32 (m,)
    left, right : uint32 (m,)
        0 on the left: there is no threshold. 0 on the right: all ordered codes go left.
    places : float64 (m,) or None
        Of random cuts: 0 <= place < 1, from the left code to the right one.

    Returns
    -------
    threshold : float64 (m,)
        Exact columns: ``high[left] / 2 + low[right] / 2``, or ``high[left]`` where that is not
        below ``low[right]``. Others: the ``high`` between that is nearest to it. nan: none.
        Random cuts: the point at ``places`` between ``high[left]`` and ``high[right]``, and for
        columns that are not exact the greatest ``high`` that is at most this point.
    code : uint32 (m,)
        The greatest code whose ``high`` is at most the threshold.

    Notes
    -----
    O(log (right - left)) each.
    """
    cdef double[::1] threshold = np.empty(len(column), dtype=np.float64)
    cdef uint32_t[::1] code = np.empty(len(column), dtype=np.uint32)
    cdef int64_t i, first, end, half, base
    cdef double above, between, step
    cdef bint drawn = places is not None
    with nogil:
        for i in range(column.shape[0]):
            if left[i] == 0:
                threshold[i] = NAN
                code[i] = 0
                continue
            if right[i] == 0:
                threshold[i] = INFINITY
                code[i] = <uint32_t>n_ordered[column[i]]
                continue
            base = offsets[column[i]] - 1
            first = base + left[i]
            end = base + right[i] - 1
            above = low[end + 1]
            if drawn:
                # halves, since a difference of huge values is infinite
                above = high[end + 1]
                step = places[i] * (above / 2 - <double>high[first] / 2)
                between = (<double>high[first] + step) + step
            else:
                between = <double>high[first] / 2 + above / 2
            if not between < above:
                between = high[first]
            while first < end:
                half = (first + end + 1) >> 1
                if high[half] <= between:
                    first = half
                else:
                    end = half - 1
            if not exact[column[i]]:
                # halves, since a difference of huge values is infinite
                end = base + right[i] - 1
                if not drawn and first < end and (
                        <double>high[first + 1] / 2 - between / 2
                        < between / 2 - <double>high[first] / 2):
                    first += 1
                between = high[first]
            threshold[i] = between
            code[i] = <uint32_t>(first - base)
    return np.asarray(threshold), np.asarray(code)
