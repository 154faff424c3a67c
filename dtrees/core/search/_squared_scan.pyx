"""Scan by squared error of rows that weigh one each, four entries at a time.

Bounds and scores are those of `_number_scan`, which does the same where there are no registers of
256 bits, for weighted rows, in 64-bit entries, and from the end of a column. O(entries).
"""
import numpy as np

from libc.stdint cimport int64_t, uint16_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.histogram._layout cimport SUM
from dtrees.core.search._number_scan cimport has_bounds, least_reaching, look_at
from dtrees.core.search._search cimport NONE, Search

cdef extern from "search/squared.h" nogil:
    ctypedef struct NumberScan:
        double W                # sums of the node
        double S
        double reach            # what a score has to reach
        bint bounded            # distances from the mean may be added up
        int64_t mean            # of the targets, rounded to a neighbour
        int64_t n               # rows of the side before the first entry
        int64_t s               # their sum
        const int64_t* target   # by row
    int64_t next_number(NumberScan*, const uint32_t*, int64_t, int64_t) noexcept
    int STRETCH_OF_NUMBERS


cdef inline void begin_scan(NumberScan* t, const Search* q) noexcept nogil:
    t.W = q.W
    t.S = q.S
    t.n = q.n
    t.s = q.s
    t.mean = q.totals.target // q.totals.weight
    t.target = q.of_row.target


cdef void scan_squared(Search* q, const uint32_t* entries, int64_t begin,
                       int64_t end) noexcept nogil:
    """Scan entries begin..end of a column upwards, and offer the boundaries between them.

    Rows weigh one each, and there are registers of 256 bits: without them it does not end.
    """
    cdef const uint32_t* e = entries + begin
    cdef const int64_t* target = q.of_row.target
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef bint may_bound = stop - first >= STRETCH_OF_NUMBERS and has_bounds(q)
    cdef int64_t i
    cdef NumberScan t
    begin_scan(&t, q)
    t.reach = least_reaching(q)
    t.bounded = may_bound and t.reach > NONE
    for i in range(first):
        t.s += target[e[i] & 0xFFFF]
    i = next_number(&t, e, first, stop)
    while i < stop:
        if look_at(q, entries, begin + i, q.n + i, t.s, False, False):
            t.reach = least_reaching(q)
            t.bounded = may_bound
        t.s += target[e[i] & 0xFFFF]
        i = next_number(&t, e, i + 1, stop)
    q.n += m
    q.w = q.n
    q.s = t.s


# ---------------------------------------------------------------------------------------------
# Python's view

def reaching_boundaries(const int64_t[::1] target, const uint16_t[::1] rank, double reach, *,
                        int64_t before=0):
    """Boundaries of numbers whose scores reach, as four entries at a time are looked at.

    Parameters
    ----------
    target : int64 (n,)
        Of rows that weigh one each, by ascending rank.
    rank : uint16 (n,)
    reach : float
        At most `NONE`: everything reaches.
    before : int, default=0
        How many rows with a target of 0 lie before the first one.

    Returns
    -------
    list of (row behind the boundary, sum of the targets before it) or None
        None where there are no registers of 256 bits.
    """
    cdef int64_t n = target.shape[0]
    cdef uint32_t[::1] entries = np.full(n + 4, 0xFFFFFFFF, dtype=np.uint32)
    cdef int64_t i
    cdef Search q
    cdef NumberScan t
    if not is_wide:
        return None
    for i in range(n):
        entries[i] = <uint32_t>rank[i] << 16 | <uint32_t>i
    memset(&q, 0, sizeof(Search))
    q.kind = SUM
    q.n = before
    q.totals.weight = n + before
    q.totals.target = np.sum(target)
    q.totals.lowest = min(0, np.min(target))
    q.totals.highest = max(0, np.max(target))
    q.W = <double>q.totals.weight
    q.S = <double>q.totals.target
    q.of_row.target = <int64_t*>&target[0]
    begin_scan(&t, &q)
    t.reach = reach
    t.bounded = reach > NONE and has_bounds(&q)
    found = []
    t.s = target[0]
    i = next_number(&t, &entries[0], 1, n)
    while i < n:
        found.append((i, t.s))
        t.s += target[i]
        i = next_number(&t, &entries[0], i + 1, n)
    return found
