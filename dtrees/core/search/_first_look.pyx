"""Which columns of a node are worth an exact look, by squared errors in floats.

A scan of integers that is exact to the last bit takes three times as long as one of floats, whose
roundings are bounded (`first_look.h`). So the floats go first, over all columns, and mostly leave a
single one. O(entries).
"""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport ALL_ORDERED, NO_RANK, SQUARED, PresortedFeature
from dtrees.core.histogram._layout cimport SUM
from dtrees.core.search._search cimport Search, is_bound

cdef extern from "search/first_look.h" nogil:
    ctypedef struct Distances:
        pass
    Distances distances(const int64_t*, const uint32_t*, int64_t, float*) noexcept
    float lost_in(const Distances*, int64_t, float) noexcept
    void fill_shape(int64_t, int64_t, float*) noexcept
    float best_of_column(const uint32_t*, int64_t, const float*, const float*, float*) noexcept

cdef enum:
    MOST_ROWS = 4096        # of a node: stretches of larger ones are passed over as fast


cdef inline bint can_be_told(const PresortedFeature* feature, const uint32_t* entries,
                             int64_t n) noexcept nogil:
    """Whether a column has an entry for each row of a node, and numbers only."""
    return (feature.length == n and feature.last_ordered == ALL_ORDERED
            and entries[feature.offset] >> 16 != 0)


cdef bint may_look(const Search* q, const uint32_t* entries, const PresortedFeature* features,
                   int64_t n_features) noexcept nogil:
    """Whether floats tell columns of a node of narrow buffers apart, if it may use all of them."""
    cdef int64_t n_told = 0
    cdef int64_t r
    if not (is_wide and q.kind == SUM and q.criterion.impurity == SQUARED and not is_bound(q)
            and n_features <= MOST_COLUMNS and q.totals.n <= MOST_ROWS):
        return False
    for r in range(n_features):
        n_told += can_be_told(features + r, entries, q.totals.n)
        if n_told == 2:
            return True
    return False


cdef void first_look(const Search* q, const uint32_t* entries, const PresortedFeature* features,
                     int64_t n_features, const uint32_t* rows, float* away, float* shape,
                     uint8_t* worth) noexcept nogil:
    """Fill `worth`, by feature: a `Worth`. Columns with missing values, categories, or rows without
    an entry are worth a look.

    rows : of the node. away, shape : scratch, by row of the buffers, and for each row of the node.
    """
    cdef float[MOST_COLUMNS] best
    cdef float[MOST_COLUMNS] lost
    cdef int64_t n = q.totals.n
    cdef int64_t r
    cdef float most, reach = 0
    cdef Distances of_node = distances(q.of_row.target, rows, n, away)
    fill_shape(n, max(q.min_rows, q.min_weight, 1), shape)
    for r in range(n_features):
        best[r] = INFINITY
        lost[r] = 0
        if can_be_told(features + r, entries, n):
            best[r] = best_of_column(entries + features[r].offset, n, away, shape, &most)
            lost[r] = lost_in(&of_node, n, most)
            reach = max(reach, best[r] - lost[r])
    for r in range(n_features):
        if best[r] < 0:
            worth[r] = CONSTANT
        else:
            worth[r] = HOPELESS if best[r] + lost[r] < reach else WORTH


# ---------------------------------------------------------------------------------------------
# Python's view

def worth_of(const int64_t[::1] target, const uint32_t[:, ::1] entries, int64_t min_rows=1):
    """What a first look at the columns of a node says of each.

    Parameters
    ----------
    target : int64 (n_rows,)
        Of rows that weigh one each.
    entries : uint32 (n_columns, n_rows)
        Rank and row, by ascending rank; at most 4,096 columns.
    min_rows : int, default=1
        Of both sides of a split.

    Returns
    -------
    uint8 (n_columns,) or None
        0: no boundary is permitted, 1: it cannot win, 2: worth an exact look. None where there are
        no registers of 256 bits.
    """
    cdef int64_t n_columns = entries.shape[0]
    cdef int64_t n = entries.shape[1]
    cdef uint32_t[::1] own = np.append(entries, np.zeros(8, dtype=np.uint32)).astype(np.uint32)
    cdef uint32_t[::1] rows = np.arange(n, dtype=np.uint32)
    cdef int64_t[::1] targets = np.array(target)
    cdef float[::1] away = np.empty(n, dtype=np.float32)
    cdef float[::1] shape = np.empty(n + 1, dtype=np.float32)
    cdef uint8_t[::1] worth = np.empty(n_columns, dtype=np.uint8)
    cdef PresortedFeature[MOST_COLUMNS] features
    cdef Search q
    cdef int64_t r
    if not is_wide:
        return None
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"{n_columns} columns")
    memset(&q, 0, sizeof(Search))
    q.of_row.target = &targets[0]
    q.totals.n = n
    q.min_rows = min_rows
    for r in range(n_columns):
        features[r] = PresortedFeature(r * n, n, r, NO_RANK, NO_RANK, ALL_ORDERED, False)
    first_look(&q, &own[0], features, n_columns, &rows[0], &away[0], &shape[0], &worth[0])
    return np.asarray(worth)
