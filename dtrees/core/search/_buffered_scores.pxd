"""Scores of many boundaries together, so that their divisions run side by side."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.data._structs cimport GINI, GRADIENT
from dtrees.core.search._criterion cimport gradient_score, poisson_score
from dtrees.core.search._search cimport Search, constrain_buffered, is_bound, offer


cdef inline void flush(Search* q, bint down, bint classes) noexcept nogil:
    """Score the buffered boundaries together, so that the divisions run side by side.

    Both weights are enough (`heavy_enough`). Squared errors are not buffered: most of them need no
    division (`most_of_difference`).
    """
    cdef int64_t j
    cdef double w, rest, l2
    cdef double S = q.S
    cdef double* bw = q.boundaries.w
    cdef double* br = q.boundaries.rest
    cdef double* ba = q.boundaries.a
    cdef double* bb = q.boundaries.b
    cdef double* score = q.boundaries.score
    cdef const int32_t* at = q.boundaries.at
    cdef double best = q.best
    if classes:
        if q.criterion.impurity == GINI:
            for j in range(q.buffered):
                w = bw[j]
                rest = br[j]
                score[j] = (ba[j] * rest + bb[j] * w) / (w * rest)
        else:
            for j in range(q.buffered):
                score[j] = ba[j]
    elif q.criterion.impurity == GRADIENT:
        l2 = q.criterion.l2
        for j in range(q.buffered):
            score[j] = gradient_score(S, bw[j], br[j], ba[j], l2)
    else:
        for j in range(q.buffered):
            score[j] = poisson_score(S, bw[j], br[j], ba[j])
    if is_bound(q):
        constrain_buffered(q)
    for j in range(q.buffered):
        if score[j] >= best:
            offer(q, score[j], at[j], down)
            best = q.best
    q.buffered = 0
