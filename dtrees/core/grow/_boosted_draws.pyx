"""Rows that an iteration of a boosted model is grown from, and columns that a node searches.

A row is drawn by (seed, iteration, its number), each for itself. So the rows of an iteration do not
depend on their order, on other rows, or on who draws. Where none is drawn, the one that came
nearest is.

The others take the steps of the leaves in which the finished tree finds them. What it says of codes
that no drawn row has is known as soon as a split is recorded.

A node searches a share of the columns that it may use::

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
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from dtrees._random cimport STREAM_BOOTSTRAP, hash64, philox_draw
from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, Totals
from dtrees.core.grow._node_buffer cimport Record, words_of_subset
from dtrees.core.search._parameters cimport may_use
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns


cdef int64_t draw_rows(const uint32_t* chosen, int64_t n_rows, uint64_t seed, uint64_t iteration,
                       double share, uint32_t* rows, uint32_t* scratch) noexcept nogil:
    """Rows that are drawn, ascending, and the others behind them; returns how many are drawn.

    chosen : (n_rows,), ascending. rows : (n_rows,), OUT. scratch : (n_rows,)
    """
    cdef uint64_t least = 0xFFFFFFFFFFFFFFFF
    cdef uint64_t key = philox_draw(seed, STREAM_BOOTSTRAP, 0, iteration)
    cdef uint64_t draw
    cdef int64_t nearest = 0
    cdef int64_t n = 0
    cdef int64_t rest = 0
    cdef int64_t i
    cdef bint is_drawn
    for i in range(n_rows):
        draw = hash64(key, chosen[i])
        if draw < least:
            least = draw
            nearest = i
        is_drawn = <double>(draw >> 11) < share * 2.0**53
        rows[n] = chosen[i]
        scratch[rest] = chosen[i]
        n += is_drawn
        rest += 1 - is_drawn
    if n == 0:
        memmove(scratch + 1, scratch, nearest * sizeof(uint32_t))
        scratch[0] = chosen[nearest]
    memcpy(rows + n, scratch, rest * sizeof(uint32_t))
    return max(n, <int64_t>1)


cdef class RowDraws:
    """Draws rows of a table, iteration after iteration.

    Parameters
    ----------
    n_rows : int
    chosen : uint32 (n_rows,) or None
        Rows of a table, ascending, by whose numbers they are drawn. None: 0, 1, 2, ...

    Attributes
    ----------
    n_drawn : int
        How many were drawn last; all of them before the first draw.
    """

    def __cinit__(self, int64_t n_rows, chosen=None):
        self.n_rows = self.n_drawn = n_rows
        self.chosen = np.arange(n_rows, dtype=np.uint32) if chosen is None else chosen
        assert self.chosen.shape[0] == n_rows
        self.rows = np.array(self.chosen)
        self.scratch = np.empty(n_rows, dtype=np.uint32)

    def draw(self, uint64_t seed, uint64_t iteration, double share):
        """Draw the rows of an iteration. O(rows).

        Parameters
        ----------
        seed, iteration : int
        share : float
            How likely a row is drawn.
        """
        with nogil:
            self.n_drawn = draw_rows(&self.chosen[0], self.n_rows, seed, iteration, share,
                                     &self.rows[0], &self.scratch[0])

    @property
    def drawn(self):
        """The rows that were drawn last, ascending: uint32 (n_drawn,)."""
        return np.asarray(self.rows)[:self.n_drawn]

    @property
    def others(self):
        """The others, ascending: uint32 (n_rows - n_drawn,)."""
        return np.asarray(self.rows)[self.n_drawn:]


cdef void add_drawn(RowDraws draws, const uint64_t* derivatives, Totals* totals) noexcept nogil:
    """Sums of the hessians and gradients of the rows that were drawn, OUT. O(rows)."""
    cdef int64_t i
    cdef uint64_t both
    totals.weight = 0
    totals.target = 0
    for i in range(draws.n_drawn):
        both = derivatives[draws.rows[i]]
        totals.weight += <int64_t>(both & <uint64_t>0xFFFFFFFF)
        totals.target += <int64_t>both >> 32


cdef Route route_of_others(Record* record, const Column* column,
                           const uint64_t* words) noexcept nogil:
    """Which codes of a column a tree sends left, of rows that it was not grown from.

    They may hold codes that the others lack. So a threshold is put next to the code below it, not
    in the middle of a gap that only the others have.
    """
    cdef Route route = Route(NULL, 0, 0, column.n_ordered, record.missing_left)
    if record.test == IN_SUBSET:
        route.subset = words + record.subset
        route.subset_words = words_of_subset(column)
    elif record.test != AT_MOST:
        record.beyond = record.boundary + 1
        route.low = record.boundary
    elif record.beyond != 0:        # otherwise all ordered codes go left
        record.beyond = record.boundary + 1
        route.high = record.boundary
    return route


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
