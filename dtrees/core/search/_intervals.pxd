"""Declarations of the bounds of intervals; see _intervals.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._search cimport Search

cdef enum:
    MOST_CLASSES = 64       # of targets whose intervals have bounds

cdef struct Bounds:
    # Of the intervals that occur in a node, by bin.
    double lowest           # least and greatest target of a row of the node, for its weight
    double highest
    double at_end[MOST_INTERVALS + 1]   # score of the boundary behind the interval, if permitted
    double inside[MOST_INTERVALS + 1]   # no boundary inside of it has a higher score
    double corner[MOST_INTERVALS + 1]   # scratch
    double end[MOST_INTERVALS + 2]
    double w[MOST_INTERVALS + 2]
    double s[MOST_INTERVALS + 2]

cdef bint has_bounds_for(const Criterion* criterion) noexcept nogil
cdef void bound_intervals(const Search* q, const uint32_t* last, Bounds* bounds) noexcept nogil
cdef double lowest_best(double best) noexcept nogil
