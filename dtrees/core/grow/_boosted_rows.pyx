"""The rows of a boosted fit: what a loss says of them, and which of them an iteration draws.

Raw predictions and derivatives are worked out by the threads of a team. Stretches of rows are
chunks of a job. Sums of integers and maxima do not depend on the order of the stretches, so it does
not matter which thread works on which.

The impurity by which many categories pay is the sum of the squares of gradients of a node's rows.
A sum has 128 bits, so nothing is lost and the order of the rows does not matter. A square is
divided by the weight of its row, so a row of weight two adds what two rows add::

    weight    packed gradient    adds, weights are counts    adds, the heaviest row weighs 1.5
    1         g                  g * g                       g * g * 1.5
    2         2 g                2 * (g * g)
    1.5       1.5 g                                          1.5 * (1.5 * g * g)

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
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from dtrees._random cimport STREAM_BOOTSTRAP, hash64, philox_draw
from dtrees.core.data._columns cimport Column, words_of_subset
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, Totals, int128_t
from dtrees.core.grow._node_buffer cimport Record
from dtrees.core.grow._team cimport Team, lead
from dtrees.core.losses._derivatives cimport GIVEN, LossRows, derive_rows, scratch_of
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport may_use
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns

# ---------------------------------------------------------------------------------------------
# derivatives

cdef enum:
    STRETCH = 1 << 13           # rows

cdef struct Pass:
    const LossRows* rows
    int64_t* sums
    double* largest             # or NULL
    double* scratch             # by stretch
    int64_t n_scratch


cdef void derive_stretch(void* job, int64_t number) noexcept nogil:
    cdef Pass* work = <Pass*>job
    cdef int64_t begin = number * STRETCH
    cdef int64_t K = work.rows.n_classes
    derive_rows(work.rows, begin, min(begin + STRETCH, work.rows.n_chosen),
                work.scratch + number * work.n_scratch, work.sums + 2 * K * number,
                NULL if work.largest == NULL else work.largest + 2 * number)


cdef class RowDerivatives:
    """The rows of a table as a loss sees them.

    Parameters
    ----------
    loss : dtrees.core.losses.losses.Loss
    initial : float64 (n_values,)
        Raw predictions that all rows begin with; trees of an iteration.
    y : float64 or uint8 (n_rows,)
        Numbers; of classes, their codes.
    weight : float64 (n_rows,) or None
    team : Team
    are_counts : bool, default=True
        Whether weights are small whole numbers, so that a row of weight two is two rows.
    chosen : uint32 (n_chosen,) or None, default=None
        The rows of the fit, ascending; of others nothing is derived. None: all of them.
    raw, packed : float64 and uint64 (n_values, n_rows), default=None
        Where they are to be; None: in arrays of their own.

    Attributes
    ----------
    raw : float64 (n_values, n_rows)
    packed : uint64 (n_values, n_rows)
        ``gradient << 32 | hessian``, see `dtrees.core.losses._derivatives`.
    largest : (float, float)
        The largest absolute gradient and the largest hessian of all rows, without weights, when
        they were measured last.
    """

    def __cinit__(self, loss, initial, y, weight, Team team not None,
                  bint are_counts=True, chosen=None, raw=None, packed=None):
        cdef const double[::1] of_y
        cdef const uint8_t[::1] of_classes
        cdef const double[::1] of_weight
        cdef double[:, ::1] of_raw
        cdef uint64_t[:, ::1] of_packed
        cdef const uint32_t[::1] of_chosen
        cdef int64_t n_stretches
        assert len(y) > 0
        self.team = team
        self.n_rows = len(y)
        self.n_values = len(initial)
        self.y, self.weight, self.chosen = y, weight, chosen
        shape = self.n_values, self.n_rows
        self.raw = np.empty(shape) if raw is None else raw
        self.raw[:] = np.asarray(initial)[:, None]
        self.packed = np.empty(shape, dtype=np.uint64) if packed is None else packed
        of_raw, of_packed = self.raw, self.packed
        assert self.raw.shape == self.packed.shape == shape
        self.rows.kind = loss.kind
        self.rows.level = loss.level or loss.power or 0.0
        self.rows.n_rows = self.rows.n_chosen = self.n_rows
        self.rows.n_classes = self.n_values
        self.rows.are_counts = are_counts
        self.rows.raw = &of_raw[0, 0]
        self.rows.packed = &of_packed[0, 0]
        if y.dtype == np.uint8:
            of_classes = y
            self.rows.classes = &of_classes[0]
        else:
            of_y = y
            self.rows.y = &of_y[0]
        if weight is not None:
            of_weight = weight
            assert of_weight.shape[0] == self.n_rows
            self.rows.weight = &of_weight[0]
        if chosen is not None:
            of_chosen = chosen
            self.rows.n_chosen = of_chosen.shape[0]
            if self.rows.n_chosen > 0:  # a member may have none
                assert of_chosen[of_chosen.shape[0] - 1] < self.n_rows
                self.rows.chosen = &of_chosen[0]
        n_stretches = max(1, (self.rows.n_chosen + STRETCH - 1) // STRETCH)
        self.sums = np.zeros((n_stretches, 2 * self.n_values), dtype=np.int64)
        self.of_stretch = np.zeros((n_stretches, 2))
        self.largest = 0.0, 0.0
        self.scratch = np.empty((n_stretches, scratch_of(&self.rows)))

    def give(self, const double[:, ::1] gradient not None, const double[:, ::1] hessian not None):
        """Take the derivatives of a loss that is given by them, float64 (n_values, n_chosen)."""
        assert gradient.shape[0] == hessian.shape[0] == self.n_values
        assert gradient.shape[1] == hessian.shape[1] == self.rows.n_chosen
        self.rows.n_given = self.rows.n_chosen
        self.given = gradient, hessian
        if self.rows.n_chosen > 0:
            self.rows.gradient = &gradient[0, 0]
            self.rows.hessian = &hessian[0, 0]

    def bound(self, double level):
        """Bound the gradients of Huber's loss."""
        self.rows.level = level

    def derive(self, double gradient_scale, double hessian_scale, bint measures=False):
        """Pack the derivatives of all rows.

        Scales are powers of two. `measures` says whether to find `largest`, of a loss of one value
        that is not given. Returns sums of gradients and of hessians, int64 (n_values, 2).
        """
        cdef Pass work
        cdef int64_t i, k
        assert self.rows.kind != GIVEN or self.given is not None
        assert not measures or (self.rows.kind != GIVEN and self.n_values == 1)
        self.rows.gradient_scale = gradient_scale
        self.rows.hessian_scale = hessian_scale
        work.rows = &self.rows
        work.sums = &self.sums[0, 0]
        work.largest = &self.of_stretch[0, 0] if measures else NULL
        work.scratch = &self.scratch[0, 0]
        work.n_scratch = self.scratch.shape[1]
        with nogil:
            lead(&self.team.jobs, derive_stretch, &work, self.sums.shape[0], False)
            for i in range(1, self.sums.shape[0]):
                for k in range(2 * self.n_values):
                    self.sums[0, k] += self.sums[i, k]
                if measures:
                    for k in range(2):
                        self.of_stretch[0, k] = max(self.of_stretch[0, k], self.of_stretch[i, k])
        if measures:
            self.largest = self.of_stretch[0, 0], self.of_stretch[0, 1]
        return np.array(self.sums[0]).reshape(self.n_values, 2)


cdef class RowSquares:
    """The weights of the rows of a table, for squares of their gradients.

    `heaviest` is the largest weight of the rows that trees are grown from. `are_counts` says
    whether weights are small whole numbers, so that a row of weight two is two rows.
    """

    def __cinit__(self, weight, double heaviest, bint are_counts):
        cdef const double[::1] of_row
        self.weight = weight
        self.are_counts = are_counts
        self.heaviest = 1.0
        if weight is not None:
            of_row = weight
            self.of_row = &of_row[0]
            if not are_counts:
                self.heaviest = heaviest

    cdef int128_t sum_of(self, const uint64_t* derivatives, const uint32_t* rows, int64_t n,
                         int shift) noexcept nogil:
        """Of packed gradients, times the heaviest weight where weights are no counts. O(n).

        shift : bits that are cut off each square, of outputs in finer units
        """
        cdef int128_t sum = 0
        cdef int64_t i, g, w
        cdef double light
        for i in range(n):
            g = <int32_t>(derivatives[rows[i]] >> 32)
            if self.of_row == NULL:
                sum += g * g >> shift
            elif self.are_counts:
                w = <int64_t>self.of_row[rows[i]]
                g = g // w
                sum += (g * g >> shift) * w
            else:
                light = self.heaviest / self.of_row[rows[i]]
                sum += <int64_t>(<double>g * <double>g * light) >> shift
        return sum

    def of_rows(self, const uint64_t[::1] derivatives not None, rows):
        """Sum of the squares of packed gradients, each divided by the weight of its row.

        derivatives : uint64 (n_rows,), ``gradient << 32 | hessian``. rows : uint32 (n,)
        """
        cdef const uint32_t[::1] some = np.asarray(rows, dtype=np.uint32)
        return <double>self.sum_of(&derivatives[0], &some[0], some.shape[0], 0) / self.heaviest


cdef void bind_categories(Criterion* criterion, RowSquares squares, rules,
                          double row_hessian) noexcept:
    """What many categories pay in a tree; nothing without squares.

    rules : dtrees.core.data.rules.BoostingRules. row_hessian : the mean, in units
    """
    criterion.category_penalty = criterion.square_unit = 0.0
    criterion.row_hessian = row_hessian
    if squares is not None and row_hessian > 0:
        criterion.category_penalty = rules.category_penalty
        criterion.square_unit = 1.0 / (squares.heaviest * row_hessian)


# ---------------------------------------------------------------------------------------------
# draws

cdef int64_t draw_rows(const uint32_t* chosen, const uint64_t* numbers, int64_t n_rows,
                       uint64_t seed, uint64_t iteration, double share, uint32_t* rows,
                       uint32_t* scratch, uint64_t* least, int64_t* nearest) noexcept nogil:
    """Rows that are drawn, ascending, and the others behind them; returns how many are drawn.

    chosen : (n_rows,), ascending. numbers : (n_rows,), by which they are drawn; NULL: `chosen`.
    rows : (n_rows,), OUT. scratch : (n_rows,). least, nearest : IN, OUT, the least of the draws so
    far, and where it is
    """
    cdef uint64_t key = philox_draw(seed, STREAM_BOOTSTRAP, 0, iteration)
    cdef uint64_t draw
    cdef int64_t n = 0
    cdef int64_t rest = 0
    cdef int64_t i
    cdef bint is_drawn
    for i in range(n_rows):
        draw = hash64(key, chosen[i] if numbers == NULL else numbers[i])
        if draw < least[0]:
            least[0] = draw
            nearest[0] = i
        is_drawn = <double>(draw >> 11) < share * 2.0**53
        rows[n] = chosen[i]
        scratch[rest] = chosen[i]
        n += is_drawn
        rest += 1 - is_drawn
    memcpy(rows + n, scratch, rest * sizeof(uint32_t))
    return n


cdef class RowDraws:
    """Draws rows of a table, iteration after iteration.

    Rows are drawn by their numbers: those of `chosen`, uint32 (n_rows,), ascending; None: 0, 1, 2,
    ... `n_drawn` is how many were drawn last; all of them before the first draw. `numbers`, uint64
    (n_rows,), are those of the rows in a table of which these are some; None: the same.
    """

    def __cinit__(self, int64_t n_rows, chosen=None, numbers=None):
        self.n_rows = self.n_drawn = n_rows
        self.chosen = np.arange(n_rows, dtype=np.uint32) if chosen is None else chosen
        self.numbers = numbers
        assert self.chosen.shape[0] == n_rows
        assert numbers is None or self.numbers.shape[0] == n_rows
        self.rows = np.array(self.chosen)
        self.scratch = np.empty(n_rows, dtype=np.uint32)

    def draw(self, uint64_t seed, uint64_t iteration, double share, members=None):
        """Draw the rows of an iteration, at least one. O(rows).

        Parameters
        ----------
        seed, iteration : int
        share : float
            How likely a row is drawn.
        members : dtrees.typing.Members or None, default=None
            Those that have other rows.
        """
        cdef const uint64_t* numbers = NULL
        cdef uint64_t least = 0xFFFFFFFFFFFFFFFF
        cdef int64_t nearest = 0
        cdef double own
        if self.n_rows > 0:  # a member may have none
            if self.numbers is not None:
                numbers = &self.numbers[0]
            with nogil:
                self.n_drawn = draw_rows(&self.chosen[0], numbers, self.n_rows, seed, iteration,
                                         share, &self.rows[0], &self.scratch[0], &least, &nearest)
        own = -<double>(least >> 11)
        of_all, best = np.array([self.n_drawn]), np.array([own])
        if members is not None:
            members.sum(of_all)
        if of_all[0] > 0:
            return
        if members is not None:
            members.largest(best)
        if best[0] == own:
            front = np.asarray(self.rows)[:nearest + 1]
            front[:] = np.roll(front, 1)
            self.n_drawn = 1

    @property
    def drawn(self):
        """The rows that were drawn last, ascending: uint32 (n_drawn,)."""
        return np.asarray(self.rows)[:self.n_drawn]

    @property
    def others(self):
        """The others, ascending: uint32 (n_rows - n_drawn,)."""
        return np.asarray(self.rows)[self.n_drawn:]


cdef void add_drawn(RowDraws draws, const uint64_t* derivatives, Totals* totals) noexcept nogil:
    """The rows that were drawn, and sums of their hessians and gradients, OUT. O(rows)."""
    cdef int64_t i
    cdef uint64_t both
    totals.n = draws.n_drawn
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


cdef enum:
    KEY_OF_TREE = 3     # of the draws of a tree: 1 and 2 are those of a node's children


cdef class ColumnDraws:
    """Draws for each tree, and from these for the two children of a node at a time.

    Shares are from 0, which stands for one column, to 1: nothing is drawn.
    """

    def __cinit__(self, int64_t n_columns, double share, double share_of_tree=1.0):
        self.share = share
        self.share_of_tree = share_of_tree
        self.order = np.zeros(n_columns, dtype=np.int32)
        self.drawn = np.zeros((2, n_columns), dtype=np.uint8)
        self.of_tree = np.ones(n_columns, dtype=np.uint8)

    cdef void begin_tree(self, const TrainParameters* params) noexcept nogil:
        """Draw the columns of a tree. O(columns)."""
        cdef int64_t i
        if self.share_of_tree >= 1 or self.order.shape[0] == 0:
            return
        for i in range(self.order.shape[0]):
            self.of_tree[i] = may_use(&params.limits, NULL, <int>i)
        self.keep_share(params, hash64(0, KEY_OF_TREE), self.share_of_tree, &self.of_tree[0])

    cdef void keep_share(self, const TrainParameters* params, uint64_t path, double share,
                         uint8_t* allowed) noexcept nogil:
        """Keep a share of the columns that are allowed, a byte each, drawn by `path`."""
        cdef int64_t n = self.order.shape[0]
        cdef int64_t n_left = 0
        cdef int64_t i
        for i in range(n):
            self.order[i] = <int>i
            n_left += allowed[i]
        draw_columns(params, path, &self.order[0], NULL, 0, n)
        n_left = max(<int64_t>1, <int64_t>ceil(share * <double>n_left))
        for i in range(n):
            if n_left == 0:
                allowed[self.order[i]] = 0
            n_left -= allowed[self.order[i]]

    cdef const uint8_t* draw(self, const TrainParameters* params, const OpenNode* node,
                             int which) noexcept nogil:
        """A byte for each column, 1 where the node searches it; NULL: all that it may use.

        It stands until the next draw for the same child. O(columns).
        """
        cdef int64_t n = self.order.shape[0]
        cdef int64_t i
        cdef uint8_t* drawn
        if min(self.share, self.share_of_tree) >= 1 or n == 0 or node == NULL:
            return NULL
        drawn = &self.drawn[which, 0]
        for i in range(n):
            drawn[i] = self.of_tree[i] and may_use(&params.limits, node.above.sets, <int>i)
        if self.share < 1:
            self.keep_share(params, node.path, self.share, drawn)
        return drawn
