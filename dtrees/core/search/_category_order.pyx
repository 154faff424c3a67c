"""An order for the categories of a column when there are several classes.

With two classes the best subset is a prefix in the order of the shares of class 1. With more, each
category is a point, its class shares, and prefixes are tried in the order of the first principal
component of these points ([CT] "Optimal partitioning"). The subset found need not be the best.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from dtrees.core.search._search cimport Bins, Search, enlarge

cdef enum:
    POWER_STEPS = 64        # of the power iteration

cdef struct Share:
    # A class that a bin holds.
    int32_t bin             # counted from the first category
    int32_t label
    double weight           # of the class in the bin


cdef int64_t collect_shares(Search* q, int64_t first, int64_t count) noexcept nogil:
    """The shares that are not zero, behind 3 K numbers of q.component; returns how many,
    -1 without memory."""
    cdef Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t most = count * K if count * K < q.totals.n else q.totals.n
    cdef int64_t size = 3 * K * sizeof(double) + most * sizeof(Share)
    cdef int64_t n_shares = 0
    cdef int64_t i, a, t
    cdef Share* shares
    if size > q.component_size:
        if not enlarge(q, <void**>&q.component, size):
            return -1
        q.component_size = size
    shares = <Share*>(q.component + 3 * K)
    for i in range(count):
        for a in range(K):
            t = g.target[(first + i) * K + a]
            if t != 0:
                shares[n_shares].bin = <int32_t>i
                shares[n_shares].label = <int32_t>a
                shares[n_shares].weight = <double>t
                n_shares += 1
    return n_shares


cdef inline void project_shares(Bins* g, int64_t first, int64_t count, const Share* shares,
                                int64_t n_shares, const double* axis) noexcept nogil:
    """Keys: projections of the class shares of the bins on an axis."""
    cdef int64_t i
    for i in range(count):
        g.order[i].key = 0
    for i in range(n_shares):
        g.order[shares[i].bin].key += shares[i].weight * axis[shares[i].label]
    for i in range(count):
        g.order[i].key = g.order[i].key / <double>g.weight[first + i]


cdef bint order_by_component(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Keys: projections of the class shares on their first principal component.

    A power iteration with a fixed number of steps from the class of the largest variance, all in
    one order of operations. The covariance C of the shares p of the bins, of weights w, is never
    formed:

        C v = sum w (p - mean) ((p - mean) . v)

    Only shares that are not zero are looked at; there are at most as many as rows. O(count * K +
    steps * (shares + K)). Returns False without memory.
    """
    cdef Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t n_shares = collect_shares(q, first, count)
    cdef double* mean = q.component
    cdef double* axis = mean + K
    cdef double* image = axis + K
    cdef const Share* shares = <const Share*>(image + K)
    cdef int64_t i, a, b, _step
    cdef double w, x, shift, norm, total = 0
    if n_shares < 0:
        return False
    memset(q.component, 0, 3 * K * sizeof(double))
    for i in range(count):
        g.order[i].bin = first + i
        total += <double>g.weight[first + i]
    for i in range(n_shares):
        mean[shares[i].label] += shares[i].weight
    for a in range(K):
        mean[a] = mean[a] / total
    for i in range(first, g.count):
        w = <double>g.weight[i]
        for a in range(K):
            x = <double>g.target[i * K + a] / w - mean[a]
            image[a] += w * x * x
    b = 0
    for a in range(1, K):
        if image[a] > image[b]:
            b = a
    axis[b] = 1.0
    for _step in range(POWER_STEPS):
        project_shares(g, first, count, shares, n_shares, axis)
        shift = 0
        for a in range(K):
            shift += mean[a] * axis[a]
        total = 0
        for i in range(count):
            g.order[i].key -= shift
            total += <double>g.weight[first + i] * g.order[i].key
        for a in range(K):
            image[a] = -total * mean[a]
        for i in range(n_shares):
            image[shares[i].label] += shares[i].weight * g.order[shares[i].bin].key
        norm = 0
        for a in range(K):
            norm += image[a] * image[a]
        if norm <= 0:
            break
        norm = sqrt(norm)
        for a in range(K):
            axis[a] = image[a] / norm
    project_shares(g, first, count, shares, n_shares, axis)
    return True
