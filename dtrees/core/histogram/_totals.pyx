"""What the rows of a node add up to: rows, weight, target, and what purity and impurity need."""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp, memset

from dtrees.core.data._structs cimport ABSOLUTE, RowStatistics, Totals, int128_t
from dtrees.core.histogram._layout cimport Layout, add_outputs


cdef inline int64_t weight_of(const RowStatistics* of_row, int64_t row) noexcept nogil:
    if of_row.times != NULL:
        return of_row.times[row]
    return 1 if of_row.weight == NULL else of_row.weight[row]


cdef inline int64_t weighted_target(const RowStatistics* of_row, int64_t row) noexcept nogil:
    """Of numbers."""
    if of_row.times != NULL:
        return of_row.times[row] * of_row.value[row]
    return of_row.target[row]


cdef void sum_rows(const RowStatistics* of_row, const Layout* layout, const uint32_t* rows,
                   const uint32_t* orders, int64_t n, Totals* totals,
                   int64_t* class_totals) noexcept nogil:
    """Totals of n rows. class_totals, if not NULL: (n_classes,), overwritten.

    orders : of several medians, as in `OpenNode`; else NULL
    """
    cdef int64_t i
    cdef Totals t
    if layout.impurity == ABSOLUTE:
        sum_about_medians(of_row, layout, rows, orders, n, totals, class_totals)
        return
    clear_totals(&t)
    if class_totals != NULL:
        memset(class_totals, 0, layout.n_classes * sizeof(int64_t))
    for i in range(n):
        add_to_totals(of_row, layout, rows[i], &t, class_totals)
    totals[0] = t
    if of_row.n_outputs > 0:
        range_of_rows(of_row, rows, n, totals)


cdef void sum_about_medians(const RowStatistics* of_row, const Layout* layout,
                            const uint32_t* rows, const uint32_t* orders, int64_t n,
                            Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of n rows in the order of y, or of each output by `orders`."""
    cdef int64_t n_outputs = max(of_row.n_outputs, 1)
    cdef Median m
    cdef int64_t i, o, at
    cdef int64_t y = 0
    cdef int64_t first = 0
    totals.n = n
    totals.weight = totals.lowest = totals.highest = 0
    for i in range(n):
        totals.weight += weight_of(of_row, rows[i])
    for o in range(n_outputs):
        memset(&m, 0, sizeof(Median))
        m.weight = totals.weight
        for i in range(n):
            at = rows[i if orders == NULL else orders[o * n + i]]
            y = of_row.value[at * n_outputs + o]
            first = y if i == 0 else first
            pass_row(&m, y, weight_of(of_row, at), weighted_target(of_row, at * n_outputs + o))
        tell_median(&m, layout.shift, totals)
        if orders == NULL:
            totals.lowest, totals.highest = first, y
        else:
            class_totals[o] = totals.target
            class_totals[n_outputs + o] = <int64_t>totals.moment
            totals.highest |= y != first


cdef void add_to_totals(const RowStatistics* of_row, const Layout* layout, int64_t row,
                        Totals* totals, int64_t* class_totals) noexcept nogil:
    """Add a row to sums. class_totals : (n_classes,); NULL for regression."""
    cdef int64_t w = weight_of(of_row, row)
    if of_row.n_outputs > 0:
        add_outputs_of_row(of_row, row, w, totals, class_totals)
        return
    if class_totals != NULL:
        add_label(totals, class_totals, of_row.label[row], w)
        return
    add_value(totals, layout, of_row.value[row], w, weighted_target(of_row, row))


cdef void add_outputs_of_row(const RowStatistics* of_row, int64_t row, int64_t w, Totals* totals,
                             int64_t* fields) noexcept nogil:
    """Several outputs: add a row to sums. Moments have the unit of the coarsest output.

    Squares are rounded to it before they are weighed: a weight of two is two rows.
    """
    cdef int64_t first = row * of_row.n_outputs
    cdef int64_t o, s
    cdef int128_t y
    totals.n += 1
    totals.weight += w
    add_outputs(fields, of_row, row, w)
    for o in range(of_row.n_outputs if of_row.value != NULL else 0):
        s = of_row.target[first + o]
        y = of_row.value[first + o]
        totals.moment += w * (y * y >> of_row.shift[o]) if w * y == s else s * y >> of_row.shift[o]


cdef bint are_alike(const RowStatistics* of_row, int64_t row, int64_t other) noexcept nogil:
    """Several outputs: whether two rows have the same numbers."""
    cdef int64_t m = of_row.n_outputs
    return memcmp(of_row.value + row * m, of_row.value + other * m, m * sizeof(int64_t)) == 0


cdef void range_of_rows(const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                        Totals* totals) noexcept nogil:
    """Least and greatest y of n rows; of several outputs, whether they differ."""
    cdef int64_t lowest = 0x7FFFFFFFFFFFFFFF
    cdef int64_t highest = -0x7FFFFFFFFFFFFFFF
    cdef int64_t i, y
    if of_row.n_outputs > 0:
        totals.lowest = totals.highest = 0
        i = 1
        while of_row.value != NULL and i < n and totals.highest == 0:
            totals.highest = not are_alike(of_row, rows[0], rows[i])
            i += 1
        return
    for i in range(n):
        y = of_row.value[rows[i]]
        lowest = y if y < lowest else lowest
        highest = y if y > highest else highest
    totals.lowest = lowest
    totals.highest = highest
