"""Absolute errors about the medians of both sides, as rows move from one to the other.

Rows of a node have places in the order of y. A set of places is a bit for each, and a row that
comes or goes leaves the median where it is, or moves it by one place of the set. One number is a
median before and after, so the sum of the absolute errors changes by the distance from it::

    y         1    3    4    8    9        median 4        errors 3 + 1 + 0 + 4 + 5 = 13
    less 9    1    3    4    8             3 .. 4          4 is a median still: 13 - |9 - 4| = 8
    less 8    1    3    4                  3               3 was one, too: 8 - |8 - 3| = 3

Weighted rows move the median by as many places as they weigh, about, and errors come from the sums
up to it.

The next place of a set is in the same word of 64 bits, mostly. Else the words are looked up in a
bit for each that has any, and so on. scikit-learn keeps Fenwick trees, at O(log rows) a row.

Several outputs have places and medians each, and their errors are added up as doubles.

All are integers in units of weighted targets. So errors are exact where weights have no digits
beyond these (`Criterion.shift_of_products` is 0), and else off by the rounding of each row.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dtrees.core.data._bits cimport leading_zeros, trailing_zeros
from dtrees.core.data._memory cimport claim
from dtrees.core.histogram._totals cimport product_of


cdef AbsoluteErrors* new_errors(const Criterion* criterion, bint weighted) noexcept nogil:
    """Of each output, without rows; NULL without memory. Freed by `free_errors`."""
    cdef int m = criterion.n_outputs
    cdef AbsoluteErrors* e = <AbsoluteErrors*>calloc(m, sizeof(AbsoluteErrors))
    cdef int o
    for o in range(m if e != NULL else 0):
        e[o].weighted = weighted
        e[o].shift = criterion.shift_of_products
        e[o].scale = criterion.scale[o] if m > 1 else 1.0
        e[o].next = e + o + 1 if o < m - 1 else NULL
    return e


cdef void free_errors(AbsoluteErrors* errors) noexcept nogil:
    cdef AbsoluteErrors* e = errors
    cdef int k
    while e != NULL:
        for k in range(LEVELS):
            free(e.words[0][k])
            free(e.words[1][k])
        free(e.bits)
        free(e.y)
        free(e.w)
        free(e.wy)
        free(e.place)
        free(e.of_bins)
        free(e.bin)
        e = e.next
    free(errors)


cdef bint reserve_places(AbsoluteErrors* e, int64_t n, int64_t n_rows) noexcept nogil:
    """Make room for a node of n rows, whose numbers are below n_rows; False without memory."""
    cdef size_t n_bytes = (n + 1) * sizeof(int64_t)
    cdef int k
    e.n = n
    e.n_levels = 1
    while n >> 6 * e.n_levels > 0:
        e.n_levels += 1
    if n_rows > e.room_of_rows:
        e.room_of_rows = 0
        if not claim(<void**>&e.place, n_rows * sizeof(uint32_t)):
            return False
        e.room_of_rows = n_rows
    if n <= e.room:
        return True
    e.room = 0
    if not (claim(<void**>&e.y, n_bytes) and claim(<void**>&e.w, n_bytes)
            and claim(<void**>&e.wy, n_bytes) and claim(<void**>&e.of_bins, n_bytes)
            and claim(<void**>&e.bin, n_bytes)
            and claim(<void**>&e.bits, bytes_of_level(n, 0))):
        return False
    for k in range(1, e.n_levels):
        if not (claim(<void**>&e.words[0][k], bytes_of_level(n, k))
                and claim(<void**>&e.words[1][k], bytes_of_level(n, k))):
            return False
    e.room = n
    return True


cdef inline size_t bytes_of_level(int64_t n, int k) noexcept nogil:
    return ((n >> 6 * (k + 1)) + 1) * sizeof(uint64_t)


cdef void begin_places(AbsoluteErrors* e, int64_t whole) noexcept nogil:
    """Begin with a node whose rows are in place. whole : their errors."""
    cdef Middle* o = &e.node
    cdef int64_t i
    e.whole = whole
    o.at = e.n // 2 + 1     # of an even number, as if n + 1 had gone
    if not e.weighted:
        return
    o.at = o.weight = o.passed = o.below = o.target = e.w[0] = e.wy[0] = 0
    for i in range(1, e.n + 1):
        o.weight += e.w[i]
        o.target += e.wy[i]
    while 2 * o.passed < o.weight:
        o.at += 1
        o.passed += e.w[o.at]
        o.below += e.wy[o.at]


cdef void clear_sides(AbsoluteErrors* e) noexcept nogil:
    """Let all rows be in the rest."""
    cdef int k
    while e != NULL:
        e.count = 0
        e.held = e.n + 1    # the side begins as if 0 and n + 1 were there
        e.errors = e.whole
        memset(&e.side, 0, sizeof(Middle))
        e.rest = e.node
        e.bits[0] = 0
        if e.n_levels > 1:
            memset(e.bits, 0, bytes_of_level(e.n, 0))
        for k in range(1, e.n_levels):
            memset(e.words[0][k], 0xFF, bytes_of_level(e.n, k))
            memset(e.words[1][k], 0, bytes_of_level(e.n, k))
        e = e.next


cdef void move_row(AbsoluteErrors* e, int64_t row) noexcept nogil:
    """Move a row to the side."""
    while e != NULL:
        move_places(e, e.place + row, 1)
        e = e.next


cdef void move_bin(AbsoluteErrors* e, int64_t begin, int64_t n) noexcept nogil:
    """Move n rows to the side, whose places begin there in those of all bins."""
    while e != NULL:
        move_places(e, e.of_bins + begin, n)
        e = e.next


cdef inline void move_places(AbsoluteErrors* e, const uint32_t* places, int64_t n) noexcept nogil:
    """Move n places to the side."""
    cdef int64_t i, p
    for i in range(n):
        p = places[i]
        flip(e, p)
        if e.weighted:
            step_by_weight(e, &e.side, p, True)
            step_by_weight(e, &e.rest, p, False)
        else:
            e.errors += step(e, 0, &e.side.at, e.y, p, e.held, e.count & 1, True, False)
            e.errors -= step(e, 0, &e.rest.at, e.y, p, e.held, e.n - e.count & 1, False, False)
        e.held = p
        e.count += 1


cdef int64_t errors_of_sides(const AbsoluteErrors* e) noexcept nogil:
    if e.weighted:
        return errors_by_weight(e, &e.side) + errors_by_weight(e, &e.rest)
    return e.errors


cdef inline int64_t errors_by_weight(const AbsoluteErrors* e, const Middle* o) noexcept nogil:
    return (o.target - 2 * o.below
            + product_of(2 * o.passed - o.weight, e.y[o.at], e.shift))


cdef void note_word(const AbsoluteErrors* e, int64_t p, bint is_side) noexcept nogil:
    """The side has its first place of a word, or the rest has lost its last one: note it above."""
    cdef uint64_t bit
    cdef uint64_t* word
    cdef int k
    for k in range(1, e.n_levels):
        p >>= 6
        bit = <uint64_t>1 << (p & 63)
        word = e.words[is_side][k] + (p >> 6)
        word[0] ^= bit
        if word[0] != (bit if is_side else 0):
            return


cdef int64_t climb(const AbsoluteErrors* e, int64_t p, bint is_side, bint upwards) noexcept nogil:
    """`neighbour` in another word."""
    cdef uint64_t bit
    cdef uint64_t word = 0
    cdef int k = 0
    while word == 0:
        k += 1
        p >>= 6
        bit = <uint64_t>1 << (p & 63)
        word = e.words[is_side][k][p >> 6] & (-(bit << 1) if upwards else bit - 1)
    while True:
        p = (p & -64) | (trailing_zeros(word) if upwards else 63 - leading_zeros(word))
        if k == 0:
            return p
        k -= 1
        word = e.words[is_side][k][p] if k > 0 else e.bits[p] if is_side else ~e.bits[p]
        p <<= 6
