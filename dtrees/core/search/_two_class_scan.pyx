"""Scan of two classes whose rows weigh one each, 16 entries at a time.

In buffers of 32-bit entries rows of class 0 have the lowest numbers (`stores.presorted._buffers`).
So 16 labels are a comparison of 16 numbers with one, and no label is looked up::

    rows of 16 entries     7 31 12 40 41 9 ...          class 1 from row 30 on
    classes                0  1  0  1  1 0 ...          a bit each
    boundaries             .  x  x  x  .  x             where neighbours differ, if ranks all do

Bounds and scores are those of `_number_scan`, which does the same where there are no registers of
256 bits, and from the end of a column. O(entries / 16), and what is looked at of stretches that may
win.
"""
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.search._number_scan cimport least_reaching, look_at
from dtrees.core.search._search cimport NONE, Search

cdef extern from "search/two_classes.h" nogil:
    ctypedef struct TwoClasses:
        double W                # sums of the node
        double S
        double reach            # what a score has to reach
        bint bounded            # there is something to reach
        int64_t n               # rows of the side before the first entry
        int64_t s               # rows of class 1 of the side
        uint32_t ones           # the least row of class 1
    int64_t next_boundary(TwoClasses*, const uint32_t*, int64_t, int64_t, bint) noexcept

cdef enum:
    STRETCH = 16            # entries that are read at once


cdef void scan_two_classes(Search* q, const uint32_t* entries, int64_t begin, int64_t end,
                           uint32_t ones, bint distinct) noexcept nogil:
    """Scan entries begin..end of a column upwards, and offer the boundaries between them.

    distinct : no two entries of the feature have the same rank. ones : as in `search_feature`.
    """
    cdef const uint32_t* e = entries + begin
    cdef int64_t m = end - begin
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef bint by_label = distinct and q.min_rows == 1 and q.min_weight <= 1
    cdef int64_t i
    cdef TwoClasses t
    t.W = q.W
    t.S = q.S
    t.n = q.n
    t.s = q.s
    t.ones = ones
    t.reach = least_reaching(q)
    t.bounded = t.reach > NONE
    for i in range(first):
        t.s += (e[i] & 0xFFFF) >= ones
    i = next_boundary(&t, e, first, stop, by_label)
    while i < stop:
        if look_at(q, entries, begin + i, q.n + i, t.s, False, by_label):
            t.reach = least_reaching(q)
            t.bounded = True
        t.s += (e[i] & 0xFFFF) >= ones
        i = next_boundary(&t, e, i + 1, stop, by_label)
    q.n += m
    q.w = q.n
    q.s = t.s


# ---------------------------------------------------------------------------------------------
# Python's view

def reaching_boundaries(const uint8_t[::1] label, const uint16_t[::1] rank, double reach, *,
                        int64_t before=0, bint by_label=False):
    """Boundaries of two classes whose scores reach, as 16 entries at a time are looked at.

    Parameters
    ----------
    label : uint8 (n,)
        Classes 0 and 1 of rows that weigh one each, by ascending rank.
    rank : uint16 (n,)
    reach : float
        At most `NONE`: everything reaches.
    before : int, default=0
        How many rows of class 0 lie before the first one.
    by_label : bool, default=False
        Neighbours of one class are no boundary, and all ranks differ.

    Returns
    -------
    list of (row behind the boundary, rows of class 1 before it) or None
        None where there are no registers of 256 bits.
    """
    cdef int64_t n = label.shape[0]
    cdef int64_t ones = n - np.sum(label)
    cdef uint32_t[::1] entries = np.zeros(n + STRETCH, dtype=np.uint32)
    cdef int64_t[2] place
    cdef int64_t i
    cdef TwoClasses t
    if not is_wide:
        return None
    place[0] = 0
    place[1] = ones
    for i in range(n):
        entries[i] = <uint32_t>rank[i] << 16 | <uint32_t>place[label[i]]
        place[label[i]] += 1
    t = TwoClasses(n + before, n - ones, reach, reach > NONE, before, label[0], <uint32_t>ones)
    found = []
    i = next_boundary(&t, &entries[0], 1, n, by_label)
    while i < n:
        found.append((i, t.s))
        t.s += label[i]
        i = next_boundary(&t, &entries[0], i + 1, n, by_label)
    return found
