"""What the rows of a node add up to; see _totals.pyx."""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._fixed_point cimport moment_of
from dtrees.core.data._structs cimport RowStatistics, Totals, int128_t
from dtrees.core.histogram._layout cimport Layout


cdef void add_to_totals(const RowStatistics* of_row, const Layout* layout, int64_t row,
                        Totals* totals, int64_t* class_totals) noexcept nogil
cdef void sum_rows(const RowStatistics* of_row, const Layout* layout, const uint32_t* rows,
                   const uint32_t* orders, int64_t n, Totals* totals,
                   int64_t* class_totals) noexcept nogil
cdef bint are_alike(const RowStatistics* of_row, int64_t row, int64_t other) noexcept nogil
cdef void range_of_rows(const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                        Totals* totals) noexcept nogil


cdef inline void clear_totals(Totals* totals) noexcept nogil:
    """Sums of no rows."""
    memset(totals, 0, sizeof(Totals))
    totals.lowest = 0x7FFFFFFFFFFFFFFF
    totals.highest = -0x7FFFFFFFFFFFFFFF


cdef inline void add_label(Totals* totals, int64_t* class_totals, int64_t label,
                           int64_t w) noexcept nogil:
    """Classification: add a row of weight w. class_totals : (n_classes,)."""
    totals.n += 1
    totals.weight += w
    totals.target += w if label == 1 else 0
    class_totals[label] += w


cdef inline void add_value(Totals* totals, const Layout* layout, int64_t y, int64_t w,
                           int64_t wy) noexcept nogil:
    """Regression: add a row. wy : its weighted target."""
    totals.n += 1
    totals.weight += w
    totals.target += wy
    totals.moment += moment_of(layout.impurity, layout.fixed_point, w, wy, y)
    totals.lowest = y if y < totals.lowest else totals.lowest
    totals.highest = y if y > totals.highest else totals.highest


cdef struct Median:
    # Of rows in the order of y, one after the other: the weight of all is known before.
    int64_t weight
    int64_t passed          # weight up to the lower middle one
    int64_t below           # and weighted target
    int64_t target          # of all rows
    int64_t lower
    int64_t upper           # the same, unless just half of the weight has passed
    bint found


cdef inline void pass_row(Median* m, int64_t y, int64_t w, int64_t wy) noexcept nogil:
    m.target += wy
    if 2 * m.passed < m.weight:
        m.passed += w
        m.below += wy
        m.lower = y
        m.upper = y
    elif not m.found:
        m.found = True
        if 2 * m.passed == m.weight:
            m.upper = y


cdef inline int64_t product_of(int64_t w, int64_t y, int shift) noexcept nogil:
    """w * y in units of weighted targets, rounded to nearest."""
    return <int64_t>((<int128_t>w * y + ((<int128_t>1 << shift) >> 1)) >> shift)


cdef inline int64_t errors_about(const Median* m, int shift) noexcept nogil:
    """The absolute errors about the median, in units of weighted targets."""
    return m.target - 2 * m.below + product_of(2 * m.passed - m.weight, m.lower, shift)


cdef inline void tell_median(const Median* m, int shift, Totals* totals) noexcept nogil:
    totals.target = product_of(m.weight, m.lower + m.upper, shift + 1)
    totals.moment = errors_about(m, shift)


cdef inline void weigh_totals(Totals* totals, int64_t* class_totals, const int64_t* of_class,
                              int64_t n_classes) noexcept nogil:
    """Classification: multiply sums of rows by the weights of their classes."""
    cdef int64_t k
    totals.weight = 0
    for k in range(n_classes):
        class_totals[k] *= of_class[k]
        totals.weight += class_totals[k]
    totals.target = class_totals[1] if n_classes > 1 else 0


cdef inline void weigh_row(const RowStatistics* of_row, const int64_t* of_class, int64_t row,
                           RowStatistics* to, int64_t at) noexcept nogil:
    """Classification: what a row weighs by these class weights, and its weighted class where there
    is room for targets, to place `at`."""
    cdef int64_t weight = of_class[of_row.label[row]]
    if of_row.weight != NULL:
        weight *= of_row.weight[row]
    to.weight[at] = weight
    if to.target != NULL:
        to.target[at] = weight * of_row.label[row]


cdef inline void add_totals(Totals* to, const Totals* one) noexcept nogil:
    """Sums of two sets of rows."""
    to.n += one.n
    to.weight += one.weight
    to.target += one.target
    to.moment += one.moment
    to.lowest = one.lowest if one.lowest < to.lowest else to.lowest
    to.highest = one.highest if one.highest > to.highest else to.highest


cdef inline void subtract_totals(const Totals* all, const Totals* some,
                                 Totals* rest) noexcept nogil:
    """What the other rows add up to; their range stays unknown."""
    rest.n = all.n - some.n
    rest.weight = all.weight - some.weight
    rest.target = all.target - some.target
    rest.moment = all.moment - some.moment
