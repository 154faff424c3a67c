"""What the rows of a node add up to: rows, weight, target, and what purity and impurity need."""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.histogram._layout cimport Layout


cdef inline int64_t weight_of(const RowStatistics* of_row, int64_t row) noexcept nogil:
    if of_row.times != NULL:
        return of_row.times[row]
    return 1 if of_row.weight == NULL else of_row.weight[row]


cdef void sum_rows(const RowStatistics* of_row, const Layout* layout, const uint32_t* rows,
                   int64_t n, Totals* totals, int64_t* class_totals) noexcept nogil:
    """Totals of n rows. class_totals, if not NULL: (n_classes,), overwritten."""
    cdef int64_t i
    cdef Totals t
    clear_totals(&t)
    if class_totals != NULL:
        memset(class_totals, 0, layout.n_classes * sizeof(int64_t))
    for i in range(n):
        add_to_totals(of_row, layout, rows[i], &t, class_totals)
    totals[0] = t


cdef void add_to_totals(const RowStatistics* of_row, const Layout* layout, int64_t row,
                        Totals* totals, int64_t* class_totals) noexcept nogil:
    """Add a row to sums. class_totals : (n_classes,); NULL for regression."""
    cdef int64_t w = weight_of(of_row, row)
    cdef int64_t y
    if class_totals != NULL:
        add_label(totals, class_totals, of_row.label[row], w)
        return
    y = of_row.value[row]
    add_value(totals, layout, y, w, w * y if of_row.times != NULL else of_row.target[row])


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
