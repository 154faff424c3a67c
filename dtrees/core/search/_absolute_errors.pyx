"""Absolute errors about the medians of both sides, as rows move from one to the other.

The places of a node's rows in the order of y are a linked list. A row that is taken out leaves the
median where it is, or moves it by one place. One number is a median before and after, so the sum of
the absolute errors loses the distance from it::

    y         1    3    4    8    9        median 4        errors 3 + 1 + 0 + 4 + 5 = 13
    less 9    1    3    4    8             3 .. 4          4 is a median still: 13 - |9 - 4| = 8
    less 8    1    3    4                  3               3 was one, too: 8 - |8 - 3| = 3

Weighted rows move the median by as many places as they weigh, about, and errors come from the sums
up to it.

A pass takes the rows of the rest out in their order, and those of the side in the opposite order,
each from a list of its own: two chains of steps that do not wait for each other. O(rows), where the
side has all of them in the end; else the side is sorted. scikit-learn adds rows to a Fenwick tree
instead, O(rows * log rows).

All are integers in units of weighted targets. So errors are exact where weights have no digits
beyond these (`Criterion.shift_of_products` is 0), and else off by the rounding of each row.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from dtrees.core.data._memory cimport claim
from dtrees.core.histogram._totals cimport product_of
from dtrees.core.search._sort cimport merge_sort


cdef AbsoluteErrors* new_errors(bint weighted, int shift) noexcept nogil:
    """Without rows; NULL without memory. Freed by `free_errors`."""
    cdef AbsoluteErrors* e = <AbsoluteErrors*>calloc(1, sizeof(AbsoluteErrors))
    if e != NULL:
        e.weighted = weighted
        e.shift = shift
    return e


cdef void free_errors(AbsoluteErrors* e) noexcept nogil:
    if e == NULL:
        return
    free(e.y)
    free(e.w)
    free(e.wy)
    free(e.place)
    free(e.node.link)
    free(e.moved)
    free(e.of_bins)
    free(e.of_side)
    free(e.of_rest)
    free(e.middle_of_side)
    free(e.middle_of_rest)
    free(e.sorted)
    free(e.scratch)
    free(e.link)
    free(e)


cdef bint reserve_places(AbsoluteErrors* e, int64_t n, int64_t n_rows) noexcept nogil:
    """Make room for a node of n rows; False without memory.

    n_rows : numbers of rows are below; 0: they are places from 0.
    """
    cdef size_t n_bytes = (n + 2) * sizeof(int64_t)
    e.n = n
    e.count = 0
    e.has_place = n_rows > 0
    if n_rows > e.room_of_rows:
        e.room_of_rows = 0
        if not claim(<void**>&e.place, n_rows * sizeof(uint32_t)):
            return False
        e.room_of_rows = n_rows
    if n <= e.room:
        return True
    e.room = 0
    if not (claim(<void**>&e.y, n_bytes) and claim(<void**>&e.w, n_bytes)
            and claim(<void**>&e.wy, n_bytes) and claim(<void**>&e.node.link, n_bytes)
            and claim(<void**>&e.moved, (n + 2) * sizeof(uint32_t))
            and claim(<void**>&e.of_bins, n_bytes)
            and claim(<void**>&e.of_side, n_bytes) and claim(<void**>&e.of_rest, n_bytes)
            and claim(<void**>&e.middle_of_side, n_bytes)
            and claim(<void**>&e.middle_of_rest, n_bytes)
            and claim(<void**>&e.sorted, n_bytes) and claim(<void**>&e.scratch, n_bytes)
            and claim(<void**>&e.link, n_bytes)):
        return False
    e.room = n
    return True


cdef void begin_places(AbsoluteErrors* e) noexcept nogil:
    """Begin with a node whose rows are in place."""
    cdef int64_t n = e.n
    e.y[0] = e.y[n + 1] = e.w[0] = e.w[n + 1] = e.wy[0] = e.wy[n + 1] = 0
    link_all(e.node.link, n)
    find_middle(e, &e.node, NULL, n)


cdef inline void link_all(Link* link, int64_t n) noexcept nogil:
    cdef int32_t i
    for i in range(<int32_t>n + 2):
        link[i].before = i - 1
        link[i].after = i + 1


cdef void find_middle(const AbsoluteErrors* e, Ordered* o, const uint64_t* places,
                      int64_t n) noexcept nogil:
    """The middle of n places, ascending, that are linked; NULL: of all that there are."""
    cdef int64_t i, p
    o.middle = o.weight = o.passed = o.below = o.target = 0
    for i in range(n):
        p = i + 1 if places == NULL else places[i]
        o.target += e.wy[p]
        o.weight += e.w[p]
    i = 0
    while 2 * o.passed < o.weight:
        p = i + 1 if places == NULL else places[i]
        o.middle = p
        o.passed += e.w[p]
        o.below += e.wy[p]
        i += 1
    see_errors(e, o, e.shift)


cdef void order_side(AbsoluteErrors* e, Ordered* side) noexcept nogil:
    """The places that have moved, in the order of y."""
    cdef int64_t k = e.count
    cdef int64_t i
    cdef int32_t before = 0
    if k == e.n:
        link_all(e.link, k)
        side[0] = e.node
        side.link = e.link
        return
    side.link = e.link
    for i in range(k):
        e.sorted[i] = e.moved[i]
    merge_sort(e.sorted, e.scratch, k)
    for i in range(k):
        e.link[e.sorted[i]].before = before
        e.link[before].after = <int32_t>e.sorted[i]
        before = <int32_t>e.sorted[i]
    e.link[before].after = <int32_t>(e.n + 1)
    e.link[e.n + 1].before = before
    find_middle(e, side, e.sorted, k)


cdef inline void unlink(Link* link, int64_t p) noexcept nogil:
    cdef Link own = link[p]
    link[own.before].after = own.after
    link[own.after].before = own.before


cdef inline int64_t distance(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t d = a - b
    cdef int64_t sign = d >> 63
    return (d ^ sign) - sign


cdef inline int64_t choose(bint first, int64_t a, int64_t b) noexcept nogil:
    """a or b, without a branch."""
    return b + (-<int64_t>first & (a - b))


cdef inline void take_out(const int64_t* y, Ordered* o, int64_t p) noexcept nogil:
    """Take a place out, of rows that weigh 1 each. No branch depends on it.

    Of an odd number the middle one is a median before and after, of an even number the one that
    stays in the middle.
    """
    cdef int64_t m = o.middle
    cdef Link at
    if o.weight & 1:
        at = o.link[m]
        o.errors -= distance(y[p], y[m])
        o.middle = choose(p < m, m, at.before)
        o.upper = choose(p > m, m, at.after)
    else:
        m = choose(p <= m, o.upper, m)
        o.errors -= distance(y[p], y[m])
        o.middle = o.upper = m
    o.weight -= 1
    unlink(o.link, p)


cdef inline void take_weight_out(const AbsoluteErrors* e, Ordered* o, int64_t p,
                                 int shift) noexcept nogil:
    """Take a place out, of rows of any weight. shift : `e.shift`, which may be a constant."""
    cdef Link* link = o.link
    cdef int64_t m = o.middle
    unlink(link, p)
    o.target -= e.wy[p]
    o.weight -= e.w[p]
    if p <= m:
        o.passed -= e.w[p]
        o.below -= e.wy[p]
        m = link[p].before if p == m else m
    while 2 * o.passed < o.weight:
        m = link[m].after
        o.passed += e.w[m]
        o.below += e.wy[m]
    while m > 0 and 2 * (o.passed - e.w[m]) >= o.weight:
        o.passed -= e.w[m]
        o.below -= e.wy[m]
        m = link[m].before
    o.middle = m
    see_errors(e, o, shift)


cdef inline void see_errors(const AbsoluteErrors* e, Ordered* o, int shift) noexcept nogil:
    """Of weighted rows: errors and the upper middle one, from the sums up to the lower one."""
    o.errors = (o.target - 2 * o.below
                + product_of(2 * o.passed - o.weight, e.y[o.middle], shift))
    o.upper = o.link[o.middle].after if 2 * o.passed == o.weight else o.middle


cdef inline void take_all(AbsoluteErrors* e, const Ordered* side, bint with_middles) noexcept nogil:
    """`with_middles` is a constant where this is inlined."""
    cdef const int64_t* y = e.y
    cdef const uint32_t* moved = e.moved
    cdef int64_t* of_rest = e.of_rest
    cdef int64_t* of_side = e.of_side
    cdef Ordered rest = e.node
    cdef Ordered own = side[0]
    cdef int64_t k = e.count
    cdef int64_t i
    for i in range(k):
        take_out(y, &rest, moved[i])
        of_rest[i + 1] = rest.errors
        of_side[k - i] = own.errors
        if with_middles:
            e.middle_of_rest[i + 1] = y[rest.middle] + y[rest.upper]
            e.middle_of_side[k - i] = y[own.middle] + y[own.upper]
        take_out(y, &own, moved[k - 1 - i])


cdef inline void take_all_weights(AbsoluteErrors* e, Ordered* side, int shift) noexcept nogil:
    cdef Ordered rest = e.node
    cdef Ordered own = side[0]
    cdef int64_t k = e.count
    cdef int64_t i
    for i in range(k):
        take_weight_out(e, &rest, e.moved[i], shift)
        e.of_rest[i + 1] = rest.errors
        e.of_side[k - i] = own.errors
        e.middle_of_rest[i + 1] = e.y[rest.middle] + e.y[rest.upper]
        e.middle_of_side[k - i] = e.y[own.middle] + e.y[own.upper]
        take_weight_out(e, &own, e.moved[k - 1 - i], shift)


cdef void tell_sides(AbsoluteErrors* e, bint with_middles) noexcept nogil:
    """Errors of the side and of the rest for each of the counts 1 .. count of moved places, and
    twice the medians."""
    cdef Ordered side
    order_side(e, &side)
    if e.weighted and e.shift == 0:
        take_all_weights(e, &side, 0)
    elif e.weighted:
        take_all_weights(e, &side, e.shift)
    elif with_middles:
        take_all(e, &side, True)
    else:
        take_all(e, &side, False)
    put_back(e)


cdef void tell_last(AbsoluteErrors* e) noexcept nogil:
    """The same of all that have moved."""
    cdef Ordered rest = e.node
    cdef Ordered side
    cdef int64_t i
    order_side(e, &side)
    for i in range(e.count):
        if e.weighted:
            take_weight_out(e, &rest, e.moved[i], e.shift)
        else:
            take_out(e.y, &rest, e.moved[i])
    e.of_side[e.count] = side.errors
    e.of_rest[e.count] = rest.errors
    e.middle_of_side[e.count] = e.y[side.middle] + e.y[side.upper]
    e.middle_of_rest[e.count] = e.y[rest.middle] + e.y[rest.upper]
    put_back(e)


cdef void put_back(AbsoluteErrors* e) noexcept nogil:
    """Put the places that have moved back between those of the node."""
    cdef Link* link = e.node.link
    cdef int64_t i, p
    if 4 * e.count > e.n:
        link_all(link, e.n)
        return
    for i in range(e.count - 1, -1, -1):
        p = e.moved[i]
        link[link[p].before].after = <int32_t>p
        link[link[p].after].before = <int32_t>p
