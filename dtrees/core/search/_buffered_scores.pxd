"""Scores of many boundaries together, so that their divisions run side by side."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.data._structs cimport GINI, GRADIENT, SQUARED
from dtrees.core.search._criterion cimport gradient_score, poisson_score
from dtrees.core.search._search cimport NONE, Search, constrain_buffered, is_bound, offer


cdef inline void flush(Search* q, bint down, bint classes, bint unit_weights,
                       int64_t shift) noexcept nogil:
    """Score the buffered boundaries together, so that the divisions run side by side.

    unit_weights : every row weighs 1; the left weight of the boundary `at` is at + shift.
    Otherwise both weights are in the buffer, and enough (`heavy_enough`).
    """
    cdef int64_t j
    cdef double D, w, rest, l2
    cdef double W = q.W
    cdef double S = q.S
    cdef double* bw = q.boundaries.w
    cdef double* br = q.boundaries.rest
    cdef double* ba = q.boundaries.a
    cdef double* bb = q.boundaries.b
    cdef double* score = q.boundaries.score
    cdef const int32_t* at = q.boundaries.at
    cdef double best = q.best
    cdef double moved = <double>shift
    if unit_weights:
        for j in range(q.buffered):
            w = <double>at[j] + moved
            bw[j] = w
            br[j] = W - w
    if classes:
        if q.criterion.impurity == GINI:
            for j in range(q.buffered):
                w = bw[j]
                rest = br[j]
                score[j] = (ba[j] * rest + bb[j] * w) / (w * rest)
        else:
            for j in range(q.buffered):
                score[j] = ba[j]
    elif q.criterion.impurity == SQUARED:
        for j in range(q.buffered):
            w = bw[j]
            D = W * ba[j] - w * S
            score[j] = D * D / (w * br[j])
    elif q.criterion.impurity == GRADIENT:
        l2 = q.criterion.l2
        for j in range(q.buffered):
            score[j] = gradient_score(S, bw[j], br[j], ba[j], l2)
    else:
        for j in range(q.buffered):
            score[j] = poisson_score(S, bw[j], br[j], ba[j])
    if unit_weights and q.min_weight > 1:
        for j in range(q.buffered):
            if bw[j] < q.min_weight or br[j] < q.min_weight:
                score[j] = 2 * NONE
    if is_bound(q):
        constrain_buffered(q)
    for j in range(q.buffered):
        if score[j] >= best:
            offer(q, score[j], at[j], down)
            best = q.best
    q.buffered = 0
