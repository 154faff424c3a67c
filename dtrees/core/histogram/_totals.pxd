"""What the rows of a node add up to; see _totals.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._layout cimport Layout


cdef void clear_totals(Totals* totals) noexcept nogil
cdef void add_to_totals(const RowStatistics* of_row, const Layout* layout, int64_t row,
                        Totals* totals, int64_t* class_totals) noexcept nogil
cdef void sum_rows(const RowStatistics* of_row, const Layout* layout, const uint32_t* rows,
                   int64_t n, Totals* totals, int64_t* class_totals) noexcept nogil
cdef void range_of_rows(const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                        Totals* totals) noexcept nogil


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
