"""Declarations of the bounds of intervals; see _intervals.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._search cimport Search

cdef enum:
    MOST_CLASSES = 64       # of targets whose intervals have bounds

cdef struct Bounds:
    # Of the intervals of a column, by number; 0 is that of missing values.
    double lowest           # least and greatest target of a row of the node, for its weight
    double highest
    double least            # scores below are of no use: Poisson's are not worked out
    double at_end[MOST_INTERVALS + 1]   # score of the boundary behind the interval, if permitted
    double inside[MOST_INTERVALS + 1]   # no boundary inside of it has a higher score
    int64_t n[MOST_INTERVALS + 2]       # sums up to each interval, of one number per row
    int64_t weight[MOST_INTERVALS + 2]
    int64_t target[MOST_INTERVALS + 2]

cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil
cdef void bound_intervals(const Search* q, const uint32_t* last, int64_t count,
                          Bounds* bounds) noexcept nogil
cdef double lowest_best(double best) noexcept nogil
cdef double least_at_end(const Search* q, const Bounds* bounds, double at_end) noexcept nogil
