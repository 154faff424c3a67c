"""Rows held in one place: a coded matrix and a target as the kernels see them.

A `Shard` binds the arrays to C structs and chooses what a row adds to the statistics (`Mode`) and
which formula scores them. Whole trees are grown from it (`dtrees.core._levels`), and rounds ask it
which split is the best for a histogram, and have its rows counted and parted
(`dtrees.core._rounds`).

Scales (of x log x, of the least gain) come from all rows of all shards, so that the same node has
the same gain, bit for bit, wherever its rows are.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core._columns cimport columns_of, last_ordered, pointer
from dtrees.core._criterion cimport Criterion
from dtrees.core._cuts cimport search_random
from dtrees.core._drawn cimport draw_columns
from dtrees.core._histogram cimport groups_of_histogram, search_histogram, stride_of
from dtrees.core._nodes cimport describe, sum_rows
from dtrees.core._plan cimport Limits, gains_enough
from dtrees.core._search cimport Search, begin_node, finish_node, free_search, new_search
from dtrees.core._structs cimport (
    CLASSES, COUNT, ENTROPY, GINI, IN_SUBSET, LEAF, POISSON, SQUARED,
    SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Payload, Totals, int128_t
)
from dtrees.core._workspace cimport OpenNode

from dtrees.core._criterion import xlogx_table
from dtrees.core.frontier import FoundSplit, Sums

BLOCK_ROWS = 1 << 16
LEAST_LANES = 8          # columns below which a row of 32 codes is mostly empty
MOST_LANES = 16          # columns that are read by row for each that is drawn

MOST_WEIGHT = 2.0**62    # no node weighs more

cdef int64_t UNLIMITED = 0x7FFFFFFFFFFFFFFF


cdef bint is_zero_one(target):
    """Whether rows count once or not at all, in units in which a weight of one is nothing."""
    if target.w is None or target.class_multiplier is not None:
        return False
    if target.w_exponent != 0 or target.wy_exponent != target.y_exponent:
        return False
    return bool(target.w.max(initial=0) <= 1)


cdef class Shard:
    """Rows in one place.

    Parameters
    ----------
    coded : CodedMatrix
    target : Target
    rules : GrowthRules
    scale : Scale
        From the rows of all shards.
    values : (float64, int64 (n_columns + 1,)) or None
        `CodeBook.code_values`, needed for random cuts.
    n_threads : int or None, default=None
        That grow trees from this shard; None: it searches histograms.
    counts : bool, default=False
        Whether its rows are only to be parted and counted (`dtrees.core._rounds`).
    alone : bool, default=False
        Whether it holds all rows of its nodes. Weights that are 0 or 1 are then left out. Where
        histograms of several shards are added, their cells have to be of one kind.

    Attributes
    ----------
    rows_only : bool
        Columns are drawn and one thread grows the tree: all that it keeps is the rows of its
        nodes (`_bag`).
    is_weighted : bool
        Rows add their weights; otherwise each that is live counts once.
    """
    def __init__(self, coded, target, rules, scale, values=None, n_threads=None, bint counts=False,
                 bint alone=False):
        self.alive = []
        draws = rules.random_cuts or (rules.max_features is not None
                                      and rules.max_features < coded.n_columns)
        self.rows_only = draws and n_threads is not None and (n_threads == 1 or rules.random_cuts)
        self.n_rows = coded.n_rows
        self.bound = columns_of(coded)
        self.columns = self.bound.columns
        self.plan.columns = self.columns
        if draws and not counts:
            self.plan.lists = self.bound.row_lists(coded)
        self.plan.limits.n_columns = self.bound.n_columns
        self.bind_target(target, rules, alone and is_zero_one(target))
        self.plan.criterion.fixed_point = scale.fixed_point
        if rules.criterion == "entropy":
            self.plan.criterion.gain_unit = target.weight_unit / (scale.fixed_point * np.log(2.0))
            if self.payload.weight == NULL and not counts:
                table = xlogx_table(self.n_live + 1, scale.fixed_point)
                self.plan.criterion.xlogx = <const int64_t*>pointer(self.alive, table, np.int64)
                self.plan.criterion.xlogx_size = self.n_live + 1
        self.bind_limits(target, rules, scale.total_weight)
        if rules.random_cuts and not counts:
            flat, first = values
            if (self.plan.mode in (COUNT, WEIGHTED_SUM) and target.kind == "classification"
                    and self.payload.weight == NULL and LEAST_LANES <= coded.u8.shape[1]
                    <= MOST_LANES * self.plan.limits.max_features):
                self.plan.row_codes = self.bound.row_codes(coded, flat, first)
            self.plan.values = <const double*>pointer(self.alive, flat, np.float64)
            self.plan.first_value = <const int64_t*>pointer(self.alive, first, np.int64)
        self.plan.stride = stride_of(self.plan.mode, self.plan.criterion.n_classes)
        if self.plan.limits.max_features >= self.plan.limits.n_columns:
            self.plan.count_rule.stride = self.plan.stride

    cdef bind_target(self, target, rules, bint zero_one):
        cdef Criterion* criterion = &self.plan.criterion
        classification = target.kind == "classification"
        weight = target.w
        live = np.ones(self.n_rows, dtype=np.uint8)
        if weight is not None:
            live = (weight > 0).view(np.uint8)
            if zero_one:
                weight = None
            elif weight.dtype != np.uint16 or target.class_multiplier is not None \
                    or not self.rows_only:
                weight = np.asarray(weight, dtype=np.int64)
        if classification:
            if target.class_multiplier is not None:
                of_row = np.asarray(target.class_multiplier, dtype=np.int64)[target.y]
                weight = of_row if weight is None else weight * of_row
                live &= weight > 0
        self.live = live
        self.n_live = int(np.count_nonzero(live))
        self.is_weighted = weight is not None
        memset(criterion, 0, sizeof(Criterion))
        criterion.n_classes = target.n_classes if classification else 0
        criterion.weight_unit = target.weight_unit
        criterion.value_unit = 1.0 if classification else target.value_unit
        criterion.fixed_point = 1.0
        criterion.category_penalty = rules.category_penalty
        self.plan.n_statistics = target.n_statistics
        self.bind_payload(target, rules, weight, classification)

    cdef bind_limits(self, target, rules, double total_weight):
        cdef Limits* limits = &self.plan.limits
        limits.max_depth = UNLIMITED if rules.max_depth is None else rules.max_depth
        limits.min_samples_split = rules.min_samples_split
        limits.min_rows = rules.min_samples_leaf
        least = np.ceil(rules.min_weight_leaf / target.weight_unit)
        limits.min_weight = int(min(least, MOST_WEIGHT))
        limits.min_decrease = rules.min_impurity_decrease
        limits.total_weight = total_weight
        limits.max_features = (limits.n_columns if rules.max_features is None
                               else rules.max_features)
        limits.seed = rules.seed
        limits.tree = rules.tree
        limits.unseen_by_majority = rules.unseen == "majority"
        limits.random_cuts = rules.random_cuts
        limits.random_ties = rules.random_ties

    cdef bind_payload(self, target, rules, weight, bint classification):
        """Point the payload to the arrays of the target; choose mode and formula.

        weight : of the rows; None: one of each that is live.
        """
        cdef Criterion* criterion = &self.plan.criterion
        cdef Payload payload
        memset(&payload, 0, sizeof(Payload))
        unit = target.weight_unit
        if weight is not None and weight.dtype == np.uint16:
            payload.times = <uint16_t*>pointer(self.alive, weight, np.uint16)
        elif weight is not None:
            payload.weight = <int64_t*>pointer(self.alive, weight, np.int64)
        if classification:
            assert target.n_classes <= 65535, target.n_classes
            payload.label = <uint16_t*>pointer(self.alive, target.y, np.uint16)
            criterion.gain_unit = unit
            if rules.criterion == "entropy":
                criterion.impurity = ENTROPY
            elif target.n_classes <= 2:
                criterion.impurity = SQUARED
                criterion.gain_unit = 2 * unit
            else:
                criterion.impurity = GINI
            if criterion.impurity != SQUARED:
                self.plan.mode = CLASSES if weight is None else WEIGHTED_CLASSES
            elif weight is None:
                self.plan.mode = COUNT
            else:
                self.plan.mode = WEIGHTED_SUM
            if payload.weight != NULL and self.plan.mode == WEIGHTED_SUM:
                payload.target = <int64_t*>pointer(self.alive, weight * target.y, np.int64)
        else:
            payload.value = <int64_t*>pointer(self.alive, target.y, np.int64)
            payload.target = payload.value
            if payload.weight != NULL:
                sums = weight * target.y if target.wy is None else target.wy
                payload.target = <int64_t*>pointer(self.alive, sums, np.int64)
            self.plan.mode = SUM if weight is None else WEIGHTED_SUM
            criterion.wy_unit = target.wy_unit
            criterion.one_scale = target.wy_exponent == target.y_exponent and unit <= 1.0
            if rules.criterion == "poisson":
                criterion.impurity = POISSON
                criterion.gain_unit = target.wy_unit
            else:
                criterion.impurity = SQUARED
                criterion.gain_unit = target.wy_unit * (target.wy_unit / unit)
        self.payload = payload

    # -----------------------------------------------------------------------------------------
    # rounds

    def rows(self):
        """Rows of positive weight, ascending; uint32 (n_live,)."""
        return np.flatnonzero(np.asarray(self.live)).astype(np.uint32)

    def total(self):
        """What all rows of positive weight add up to; O(rows), a block of them at a time."""
        total = None
        for start in range(0, self.n_rows, BLOCK_ROWS):
            live = np.asarray(self.live[start:start + BLOCK_ROWS])
            sums = self.sums((np.flatnonzero(live) + start).astype(np.uint32))
            total = sums if total is None else total + sums
        return total

    def sums(self, const uint32_t[::1] rows):
        """What the rows of a node add up to; O(rows)."""
        cdef Totals totals
        cdef int64_t[::1] classes = np.zeros(self.plan.criterion.n_classes + 1, dtype=np.int64)
        cdef int64_t n = len(rows)
        cdef bint classification = self.plan.criterion.n_classes > 0
        with nogil:
            sum_rows(&self.payload, &self.plan, &rows[0] if n > 0 else NULL, n, &totals,
                     &classes[0] if classification else NULL)
        return Sums(
            n=totals.n, weight=totals.weight, target=totals.target,
            moment=(int(<int64_t>(totals.moment >> 64)) << 64)
            | int(<uint64_t>(totals.moment & <uint64_t>0xFFFFFFFFFFFFFFFF)),
            lowest=totals.lowest, highest=totals.highest,
            classes=(np.asarray(classes)[:self.plan.criterion.n_classes].copy()
                     if classification else None),
        )

    def describe(self, sums, int64_t depth):
        """(impurity, is a leaf) of a node with these sums."""
        cdef OpenNode node
        cdef int64_t[::1] classes
        open_sums(sums, &node)
        if sums.classes is not None:
            classes = np.ascontiguousarray(sums.classes, dtype=np.int64)
            node.class_totals = &classes[0]
        node.depth = depth
        describe(&node, &self.plan)
        return node.impurity, node.is_leaf

    def histogram_sizes(self):
        """Cells of every column's histogram; int64 (n_columns,)."""
        n_codes = np.array([self.columns[j].n_codes for j in range(self.plan.limits.n_columns)],
                           dtype=np.int64)
        return (n_codes + 1) * self.plan.stride

    def columns_at(self, uint64_t path, int64_t first, int64_t count):
        """Draws first .. first+count of a node's columns, in their order; int32 (<= count,)."""
        cdef int64_t n_columns = self.plan.limits.n_columns
        cdef int32_t[::1] order = np.arange(n_columns, dtype=np.int32)
        if first + count > n_columns:
            count = n_columns - first
        if self.plan.limits.max_features < n_columns:
            draw_columns(&self.plan, path, &order[0], NULL, 0, first + count)
        return np.asarray(order)[first:first + count].copy()

    def search(self, const int64_t[::1] histogram, const int32_t[::1] columns, sums, uint64_t path,
               bint one_by_one):
        """The best split of a node, from the histogram of all its rows.

        Parameters
        ----------
        histogram : int64
            Of some columns, one behind the other.
        columns : int32 (k,)
        sums : Sums
        path : int
        one_by_one : bool
            Whether the first column that can be split is the last one to be looked at.

        Returns
        -------
        found : FoundSplit or None
            None: there is no split, or it gains too little.
        can_be_split : bool
        """
        cdef int64_t[::1] classes
        cdef OpenNode node
        cdef Search* q
        cdef int64_t i, at = 0
        cdef int32_t j
        open_sums(sums, &node)
        if sums.classes is not None:
            classes = np.ascontiguousarray(sums.classes, dtype=np.int64)
            node.class_totals = &classes[0]
        q = new_search(&self.plan.criterion, self.plan.mode, self.payload, &self.plan.limits)
        try:
            begin_node(q, &node.totals, node.class_totals, path)
            for i in range(len(columns)):
                j = columns[i]
                if self.plan.limits.random_cuts:
                    groups_of_histogram(q, &histogram[at], self.columns[j].n_codes)
                    if q.groups.count > 1:
                        search_random(q, j, last_ordered(&self.columns[j]),
                                      self.plan.values + self.plan.first_value[j])
                else:
                    search_histogram(q, &histogram[at], self.columns[j].n_codes, j,
                                     last_ordered(&self.columns[j]))
                at += self.cells_of(j)
                if one_by_one and q.split.test != LEAF:
                    break
            finish_node(q)
            if q.split.test == LEAF or not gains_enough(&self.plan.limits, q.split.gain):
                return None, q.split.test != LEAF
            at = 0
            for i in range(len(columns)):
                if columns[i] == q.split.column:
                    break
                at += self.cells_of(columns[i])
            return self.found(q, &histogram[at]), True
        finally:
            free_search(q)

    cdef int64_t cells_of(self, int32_t column):
        """Numbers of the histogram of a column."""
        return (self.columns[column].n_codes + <int64_t>1) * self.plan.stride

    def counts_of(self, const int64_t[::1] histogram):
        """Rows and weight of each code of a column; int64 (2, n_codes + 1)."""
        cells = np.asarray(histogram).reshape(-1, self.plan.stride)
        if self.plan.mode == COUNT:
            n = cells[:, 0] >> 32
            return np.stack([n, n])
        if self.plan.mode == SUM:
            return np.stack([cells[:, 0], cells[:, 0]])
        if self.plan.mode == WEIGHTED_SUM:
            return np.stack([cells[:, 0], cells[:, 1]])
        if self.plan.mode == CLASSES:
            n = cells.sum(axis=1)
            return np.stack([n, n])
        return np.stack([cells[:, 0], cells[:, 1:].sum(axis=1)])

    cdef found(self, Search* q, const int64_t* histogram):
        """The chosen split as a Python object, with the codes of its column."""
        cdef int64_t g
        subset = None
        if q.split.test == IN_SUBSET:
            groups_of_histogram(q, histogram, self.columns[q.split.column].n_codes)
            subset = {}
            for g in range(q.groups.count):
                rank = int(q.groups.rank[g])
                subset[rank] = bool((q.split_subset[rank >> 6] >> (rank & 63)) & 1)
        return FoundSplit(
            column=q.split.column, test=q.split.test, boundary=q.split.boundary,
            beyond=q.split.beyond, missing_left=bool(q.split.missing_left),
            saw_missing=bool(q.split.saw_missing), gain=q.split.gain, subset=subset,
        )


def child_path(uint64_t path, bint is_left):
    """Key of a child's draws from that of its parent."""
    return hash64(path, 1 if is_left else 2)


cdef open_sums(sums, OpenNode* node):
    """The totals of a node without rows."""
    memset(node, 0, sizeof(OpenNode))
    node.totals.n = sums.n
    node.totals.weight = sums.weight
    node.totals.target = sums.target
    node.totals.moment = (<int128_t><int64_t>(sums.moment >> 64)) << 64
    node.totals.moment |= <uint64_t>(sums.moment & 0xFFFFFFFFFFFFFFFF)
    node.totals.lowest = sums.lowest
    node.totals.highest = sums.highest
