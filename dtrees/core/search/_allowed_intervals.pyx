"""Intervals of codes in which constraints allow no boundary, and those that they allow at an end.

Bounds of scores (`_intervals`) hold for boundaries that are not allowed as well. Two things are
still to be done for columns along which values rise, and for nodes whose values have bounds::

    at an end    the values of both sides, as the search compares them: allowed, or no boundary
    inside       the sums of a cut lie between those at the ends, in a parallelogram of which
                 s - value * w is least and greatest at a corner: dead if no corner is allowed

Else the best boundary might be one that is not allowed, and intervals full of those would all be
looked at. Where values rise along a column, the left one is at most that of the node, and the right
one at least that. Targets whose distances from their mean are known move a sum by less than the
corners say.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport MOST_INTERVALS
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.search._bounds cimport Bounds, clear_bounds, sums_of_sides
from dtrees.core.search._monotonic cimport Monotonic
from dtrees.core.search._search cimport NONE, Bins, Search, by_class

cdef extern from "search/allowed.h" nogil:
    ctypedef struct Allowed:
        double weight
        double target
        double lowest
        double highest
        double mean
        double lower
        double upper
        double low_left
        double high_left
        double low_right
        double high_right
        double direction
        double slack
        double none

    void leave_allowed_plain(const Allowed*, const double*, const double*, const double*,
                             const double*, const double*, int64_t, double*, double*) noexcept
    void leave_allowed_wide(const Allowed*, const double*, const double*, const double*,
                            const double*, const double*, int64_t, double*, double*) noexcept

cdef double LAST_BITS = 2.0**-47        # of a sum of products


cdef void add_up_bins(const Search* q, int64_t count, Bounds* bounds) noexcept nogil:
    """Sums up to each interval, from the bins of a search; of classes those of class 1."""
    cdef const Bins* g = q.bins
    cdef int64_t K = q.n_columns_of_target
    cdef int64_t i
    cdef int64_t k = 0
    bounds.n[0] = bounds.weight[0] = bounds.target[0] = 0
    for i in range(count):
        bounds.n[i + 1] = bounds.n[i]
        bounds.weight[i + 1] = bounds.weight[i]
        bounds.target[i + 1] = bounds.target[i]
        if k < g.count and g.rank[k] == i:
            bounds.n[i + 1] += g.n[k]
            bounds.weight[i + 1] += g.weight[k]
            bounds.target[i + 1] += g.target[k * K + (K > 1)]
            k += 1


cdef Allowed allowed_in(const Search* q, const Bounds* bounds, double target) noexcept nogil:
    """What the constraints of a node allow along the column at hand. target : of the node."""
    cdef const Monotonic* m = &q.monotonic
    cdef double value = target / q.W
    cdef Allowed node
    memset(&node, 0, sizeof(Allowed))
    node.weight, node.target = q.W, target
    node.lowest = 0 if by_class(q) else bounds.lowest
    node.highest = 1 if by_class(q) else bounds.highest
    node.mean = <double>bounds.mean
    node.lower, node.upper, node.direction = m.lower, m.upper, m.direction
    # Values of rows are no bounds beyond those of the node.
    node.low_left = node.low_right = max(m.lower, node.lowest)
    node.high_left = node.high_right = min(m.upper, node.highest)
    if m.direction > 0:
        node.high_left = min(node.high_left, value)
        node.low_right = max(node.low_right, value)
    elif m.direction < 0:
        node.low_left = max(node.low_left, value)
        node.high_right = min(node.high_right, value)
    node.slack = LAST_BITS * q.W * max(abs(node.lowest), abs(node.highest))
    node.none = NONE
    return node


cdef void keep_allowed(const Search* q, Bounds* bounds, bint missing_left,
                       int64_t count) noexcept nogil:
    """Keep what constraints allow of the scores and bounds of a pass, in `bounds.kept_at_end` and
    `kept_inside`, and clear them for another pass.

    bounds : with sums up to each interval; of classes, those of class 1 are the targets.
    """
    cdef double w[MOST_INTERVALS + 1]
    cdef double s[MOST_INTERVALS + 1]
    cdef double behind[MOST_INTERVALS + 1]
    cdef double rest[MOST_INTERVALS + 1]
    cdef double away[MOST_INTERVALS + 1]
    cdef int64_t s_missing = 0 if missing_left else bounds.target[1]
    cdef int64_t target = q.class_totals[1] if by_class(q) else q.totals.target
    cdef bint has_away = bounds.has_away and not by_class(q)
    cdef const double* distances = away + 1 if has_away else NULL
    cdef Allowed node = allowed_in(q, bounds, <double>target)
    cdef int64_t i
    sums_of_sides(bounds, q.totals.weight, missing_left, count, w, s, behind)
    for i in range(count):
        rest[i] = <double>(target - (bounds.target[i + 1] - s_missing))
        away[i] = <double>bounds.away[i] if has_away else 0
        if missing_left and bounds.n[i + 1] == bounds.n[1]:
            bounds.at_end[i] = NONE  # missing values alone: known with the sides the other way
    if is_wide:
        leave_allowed_wide(&node, w, s, behind, rest, distances, count - 1, bounds.at_end + 1,
                           bounds.inside + 1)
    else:
        leave_allowed_plain(&node, w, s, behind, rest, distances, count - 1, bounds.at_end + 1,
                            bounds.inside + 1)
    for i in range(count):
        if missing_left:
            bounds.at_end[i] = max(bounds.at_end[i], bounds.kept_at_end[i])
            bounds.inside[i] = max(bounds.inside[i], bounds.kept_inside[i])
        bounds.kept_at_end[i] = bounds.at_end[i]
        bounds.kept_inside[i] = bounds.inside[i]
    clear_bounds(count, bounds)


cdef void take_allowed(Bounds* bounds, int64_t count) noexcept nogil:
    """Make what was kept the scores and bounds."""
    memcpy(bounds.at_end, bounds.kept_at_end, count * sizeof(double))
    memcpy(bounds.inside, bounds.kept_inside, count * sizeof(double))
