"""The middle of some rows in the order of y; see _absolute_errors.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport leading_zeros, trailing_zeros
from dtrees.core.search._criterion cimport Criterion

cdef enum:
    LEVELS = 6              # 64 to this power is more than there are rows
    FEW_PLACES = 63         # whose bits are one word

cdef struct Middle:
    # What is in the middle of a set of places.
    int64_t at              # the middle one of an odd number; of weighted rows the lower median
    # of weighted rows
    int64_t weight
    int64_t passed          # weight up to the median,
    int64_t below           # and weighted target,
    int64_t target          # and that of all

cdef struct AbsoluteErrors:
    # of a growth
    bint weighted
    int shift               # `Criterion.shift_of_products`
    double scale            # of several outputs, as in `Criterion`
    AbsoluteErrors* next    # of the next output; NULL: it is the last one
    # of the node: n rows, with places 1 .. n
    int64_t n
    int64_t* y              # by place
    int64_t* w
    int64_t* wy
    uint32_t* place         # by row
    Middle node
    int64_t whole           # absolute errors about the median
    # of the pass
    int64_t count           # places that have moved to the side,
    int64_t held            # and the last one of them; n + 1: none
    int64_t errors          # of both sides; not of weighted rows
    Middle side
    Middle rest
    int n_levels
    uint64_t* bits          # a bit for each place: 1: on the side
    uint64_t* words[2][LEVELS]  # above them a bit for each word that has any: of the rest, the side
    uint32_t* bin           # by place, where the column has bins,
    uint32_t* of_bins       # and places, bin after bin; `bins.target` is where they begin
    int64_t room
    int64_t room_of_rows

cdef AbsoluteErrors* new_errors(const Criterion* criterion, bint weighted) noexcept nogil
cdef void free_errors(AbsoluteErrors* e) noexcept nogil
cdef bint reserve_places(AbsoluteErrors* e, int64_t n, int64_t n_rows) noexcept nogil
cdef void begin_places(AbsoluteErrors* e, int64_t whole) noexcept nogil
cdef void clear_sides(AbsoluteErrors* e) noexcept nogil
cdef void move_row(AbsoluteErrors* e, int64_t row) noexcept nogil
cdef void move_bin(AbsoluteErrors* e, int64_t begin, int64_t n) noexcept nogil
cdef int64_t errors_of_sides(const AbsoluteErrors* e) noexcept nogil
cdef void note_word(const AbsoluteErrors* e, int64_t p, bint is_side) noexcept nogil
cdef int64_t climb(const AbsoluteErrors* e, int64_t p, bint is_side, bint upwards) noexcept nogil


cdef inline void put_place(AbsoluteErrors* e, int64_t p, int64_t row, int64_t y, int64_t w,
                           int64_t wy) noexcept nogil:
    """Let a row be number p in the order of y, from 1 on."""
    e.place[row] = <uint32_t>p
    e.y[p] = y
    if e.weighted:
        e.w[p] = w
        e.wy[p] = wy


cdef inline void flip(const AbsoluteErrors* e, int64_t p) noexcept nogil:
    """Take a place from the rest to the side."""
    cdef uint64_t bit = <uint64_t>1 << (p & 63)
    cdef uint64_t word = e.bits[p >> 6] | bit
    e.bits[p >> 6] = word
    if word == bit:
        note_word(e, p, True)
    if word == ~<uint64_t>0:
        note_word(e, p, False)


cdef inline int64_t neighbour(const AbsoluteErrors* e, int64_t p, bint is_side,
                              bint upwards) noexcept nogil:
    """The next place of a side, of which there is one."""
    cdef uint64_t word = e.bits[p >> 6] if is_side else ~e.bits[p >> 6]
    cdef uint64_t bit = <uint64_t>1 << (p & 63)
    word &= -(bit << 1) if upwards else bit - 1
    if word == 0:
        return climb(e, p, is_side, upwards)
    return (p & -64) | (trailing_zeros(word) if upwards else 63 - leading_zeros(word))


cdef inline int64_t twice_median(const AbsoluteErrors* e, bint is_side) noexcept nogil:
    """The sum of both numbers in the middle of a side."""
    cdef const Middle* o = &e.side if is_side else &e.rest
    cdef int64_t lower = o.at
    cdef int64_t upper = o.at
    if e.weighted:
        if 2 * o.passed == o.weight:
            upper = neighbour(e, o.at, is_side, True)
    elif (e.count if is_side else e.n - e.count) & 1 == 0:
        if e.held <= o.at if is_side else e.held >= o.at:
            lower = neighbour(e, o.at, is_side, False)
        if e.held >= o.at if is_side else e.held <= o.at:
            upper = neighbour(e, o.at, is_side, True)
    return e.y[lower] + e.y[upper]


cdef inline int64_t step(const AbsoluteErrors* e, uint64_t word, int64_t* at, const int64_t* y,
                         int64_t p, int64_t held, bint is_odd, bint is_side,
                         bint few) noexcept nogil:
    """Let a place come to the side, or leave the rest, of rows that weigh 1 each; its bit is
    flipped. No branch depends on p, but for words that are empty. Returns its distance from a
    number that is a median before and after.

    at : the middle one of an odd number; with `held`, the place before, it tells those of an even
    one. word : the bits, where there are `few`; `e` is not needed then
    """
    cdef int64_t m = at[0]
    cdef int64_t d
    cdef uint64_t bit, behind, before, above, below
    if not is_odd:  # both are above the middle of an odd number, or below, or it stays
        bit = <uint64_t>1 << (m & 63)
        above = -<uint64_t>(min(p, held) >= m)
        below = -<uint64_t>(max(p, held) <= m)
        if not few:
            word = e.bits[m >> 6]
        if not is_side:
            word = ~word
            above, below = below, above
        before = word & (bit - 1)
        behind = word & -(bit + (bit & above))  # from m itself on, if it stays
        behind &= -behind
        word = behind ^ ((behind ^ before) & below)
        if word == 0 and not few:
            m = climb(e, m, is_side, above != 0)
        else:
            m = (m & -64) | (63 - leading_zeros(word))
        at[0] = m
    d = y[p] - y[m]
    return (d ^ d >> 63) - (d >> 63)


cdef inline void step_by_weight(const AbsoluteErrors* e, Middle* o, int64_t p,
                                bint is_side) noexcept nogil:
    """The same, of rows of any weight."""
    cdef int64_t w = e.w[p] if is_side else -e.w[p]
    cdef int64_t wy = e.wy[p] if is_side else -e.wy[p]
    cdef int64_t m = o.at
    o.weight += w
    o.target += wy
    if p <= m:
        o.passed += w
        o.below += wy
        if p == m:
            m = neighbour(e, m, is_side, False) if o.passed > 0 else 0
    while 2 * o.passed < o.weight:
        m = neighbour(e, m, is_side, True)
        o.passed += e.w[m]
        o.below += e.wy[m]
    while m > 0 and 2 * (o.passed - e.w[m]) >= o.weight:
        o.passed -= e.w[m]
        o.below -= e.wy[m]
        m = neighbour(e, m, is_side, False) if o.passed > 0 else 0
    o.at = m
