"""What the rows of a node add up to: rows, weight, target, and what purity and impurity need."""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._fixed_point cimport moment_of
from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._layout cimport Layout


cdef inline int64_t weight_of(const RowStatistics* of_row, int64_t row) noexcept nogil:
    if of_row.times != NULL:
        return of_row.times[row]
    return 1 if of_row.weight == NULL else of_row.weight[row]


cdef inline void add_value(Totals* t, const RowStatistics* of_row, const Layout* layout,
                           int64_t row) noexcept nogil:
    """Regression: the sums."""
    cdef int64_t y = of_row.value[row]
    cdef int64_t w = weight_of(of_row, row)
    cdef int64_t wy = w * y if of_row.times != NULL else of_row.target[row]
    t.weight += w
    t.target += wy
    t.moment += moment_of(layout.impurity, layout.fixed_point, w, wy, y)


cdef void sum_rows(const RowStatistics* of_row, const Layout* layout, const uint32_t* rows,
                   int64_t n, Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of n rows. class_totals, if not NULL: (n_classes,), overwritten."""
    cdef int64_t i, w
    cdef int k
    cdef Totals t
    memset(&t, 0, sizeof(Totals))
    t.n = n
    if class_totals != NULL:
        for k in range(layout.n_classes):
            class_totals[k] = 0
        for i in range(n):
            w = weight_of(of_row, rows[i])
            class_totals[of_row.label[rows[i]]] += w
            t.weight += w
        t.target = class_totals[1] if layout.n_classes > 1 else 0
    else:
        range_of_rows(of_row, rows, n, &t)
        for i in range(n):
            add_value(&t, of_row, layout, rows[i])
    totals[0] = t


cdef void clear_totals(Totals* totals) noexcept nogil:
    """Sums that `add_to_totals` may add to."""
    memset(totals, 0, sizeof(Totals))
    totals.lowest = 0x7FFFFFFFFFFFFFFF
    totals.highest = -0x7FFFFFFFFFFFFFFF


cdef void add_to_totals(const RowStatistics* of_row, const Layout* layout, int64_t row,
                        Totals* totals, int64_t* class_totals) noexcept nogil:
    """Add a row to sums. class_totals : (n_classes,); NULL for regression."""
    cdef int64_t w, y
    totals.n += 1
    if class_totals != NULL:
        w = weight_of(of_row, row)
        y = of_row.label[row]
        class_totals[y] += w
        totals.weight += w
        totals.target += w if y == 1 else 0
        return
    y = of_row.value[row]
    totals.lowest = y if y < totals.lowest else totals.lowest
    totals.highest = y if y > totals.highest else totals.highest
    add_value(totals, of_row, layout, row)


cdef void range_of_rows(const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                        Totals* totals) noexcept nogil:
    """Least and greatest y of n rows."""
    cdef int64_t lowest = 0x7FFFFFFFFFFFFFFF
    cdef int64_t highest = -0x7FFFFFFFFFFFFFFF
    cdef int64_t i, y
    for i in range(n):
        y = of_row.value[rows[i]]
        lowest = y if y < lowest else lowest
        highest = y if y > highest else highest
    totals.lowest = lowest
    totals.highest = highest
