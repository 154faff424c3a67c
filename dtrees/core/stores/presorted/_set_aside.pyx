"""Nodes whose test narrower limits do not allow: copies, before rows and entries are partitioned.

Growth under narrower limits has the same nodes down to here (`dtrees.core.grow._variants`). It goes
on from the copy, whose entries are in order, as those of the node, and whose rows keep their
numbers::

    leaves of at least      1        5, 10        20
    the test gives          30 | 3                leaves of 20: the node, of 33 rows, is a leaf
                            goes on  copied
"""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dtrees.core.stores.presorted._buffers cimport excerpt


cdef bint set_aside(SetAside* aside, Buffers* w, const TrainParameters* params,
                    const OpenNode* node) noexcept nogil:
    """Copy a node of narrow buffers, which inherits nothing, if some limits want another test, and
    allow any; False without memory.

    The sides of its rows are marked.
    """
    cdef size_t n_bytes = params.layout.n_classes * sizeof(int64_t)
    cdef const uint32_t* rows = w.rows + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t n_left = 0
    cdef int64_t i
    cdef int level = 0
    if n < 2 * aside.least_rows[0]:
        return True
    for i in range(n):
        n_left += w.side[rows[i]]
    while level < aside.n_limits and aside.least_rows[level] <= min(n_left, n - n_left):
        level += 1
    if level == aside.n_limits or n < 2 * aside.least_rows[level]:
        return True
    aside.level = level
    aside.node = node[0]
    aside.node.parent = aside.node.record = -1
    aside.node.above.sets = NULL
    aside.node.class_totals = NULL
    if node.class_totals != NULL:
        aside.node.class_totals = <int64_t*>malloc(n_bytes)
        if aside.node.class_totals == NULL:
            return False
        memcpy(aside.node.class_totals, node.class_totals, n_bytes)
    aside.rows = excerpt(w, &aside.node)
    if aside.rows == NULL:
        free(aside.node.class_totals)
        return False
    return True
