"""Which columns of a node are worth an exact look, by squared errors in floats.

A scan of integers that is exact to the last bit takes three times as long as one of floats, whose
roundings are bounded (`first_look.h`). So the floats go first, over all columns, and mostly leave a
single one. O(entries).
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport ALL_ORDERED, SQUARED, PresortedFeature
from dtrees.core.histogram._layout cimport SUM
from dtrees.core.search._search cimport Search, is_bound

cdef extern from "search/first_look.h" nogil:
    float distances(const int64_t*, const uint32_t*, int64_t, float*) noexcept
    void fill_shape(int64_t, int64_t, float*) noexcept
    float best_of_column(const uint32_t*, int64_t, const float*, const float*) noexcept

cdef enum:
    MOST_ROWS = 4096        # of a node: roundings of more rows leave too many columns
    MOST_COLUMNS = 256


cdef bint may_look(const Search* q, int64_t n_features) noexcept nogil:
    """Whether floats tell anything of a node of narrow buffers."""
    return (is_wide and q.kind == SUM and q.criterion.impurity == SQUARED and not is_bound(q)
            and 1 < n_features <= MOST_COLUMNS and q.totals.n <= MOST_ROWS)


cdef void first_look(const Search* q, const uint32_t* entries, const PresortedFeature* features,
                     int64_t n_features, const uint32_t* rows, float* away, float* shape,
                     uint8_t* worth) noexcept nogil:
    """Fill `worth`, by feature: a `Worth`. Columns with missing values, categories, or rows without
    an entry are worth a look.

    rows : of the node. away, shape : scratch, by row of the buffers, and for each row of the node.
    """
    cdef float[256] best    # MOST_COLUMNS
    cdef const uint32_t* e
    cdef int64_t n = q.totals.n
    cdef int64_t r
    cdef float most = 0
    cdef float lost = distances(q.of_row.target, rows, n, away)
    fill_shape(n, max(q.min_rows, q.min_weight, 1), shape)
    for r in range(n_features):
        e = entries + features[r].offset
        best[r] = INFINITY
        if (features[r].length == n and features[r].last_ordered == ALL_ORDERED
                and e[0] >> 16 != 0):
            best[r] = best_of_column(e, n, away, shape)
            most = max(most, best[r])
    for r in range(n_features):
        worth[r] = (CONSTANT if best[r] < 0 else HOPELESS if best[r] < most - 2 * lost else WORTH)
