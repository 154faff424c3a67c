"""Columns that a node of a boosted tree searches: a share of those that it may use.

    columns             0  1  2  3  4  5  6  7
    keyed permutation   5  2  7  0  6  1  4  3      of (seed, tree, path of the node)
    may be used         x     x  x  x     x         sets that interact (`_open_node`)
    drawn, half         5     7  0                  three of five, rounded up

A draw is a function of the node, so it depends on no thread and on no order in which leaves are
split. Unlike the nodes of a forest, a node whose columns cannot be split stays a leaf. Both are as
in scikit-learn.
"""
import numpy as np

from libc.math cimport ceil
from libc.stdint cimport int64_t

from dtrees.core.search._parameters cimport may_use
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns


cdef class ColumnDraws:
    """Draws for the two children of a node at a time.

    Parameters
    ----------
    n_columns : int
    share : float
        From 0, which stands for one column, to 1: nothing is drawn.
    """

    def __cinit__(self, int64_t n_columns, double share):
        self.share = share
        self.order = np.zeros(n_columns, dtype=np.int32)
        self.drawn = np.zeros((2, n_columns), dtype=np.uint8)

    cdef const uint8_t* draw(self, const TrainParameters* params, const OpenNode* node,
                             int which) noexcept nogil:
        """A byte for each column, 1 where the node searches it; NULL: all that it may use.

        It stands until the next draw for the same child. O(columns).
        """
        cdef int64_t n = self.order.shape[0]
        cdef int64_t n_left = 0
        cdef int64_t i
        cdef uint8_t* drawn
        if self.share >= 1 or n == 0 or node == NULL:
            return NULL
        drawn = &self.drawn[which, 0]
        for i in range(n):
            self.order[i] = <int>i
            drawn[i] = may_use(&params.limits, node.above.sets, <int>i)
            n_left += drawn[i]
        draw_columns(params, node.path, &self.order[0], NULL, 0, n)
        n_left = max(<int64_t>1, <int64_t>ceil(self.share * <double>n_left))
        for i in range(n):
            if n_left == 0:
                drawn[self.order[i]] = 0
            n_left -= drawn[self.order[i]]
        return drawn
