"""Rows held in one place: a coded matrix and a target as the kernels see them.

A `Dataset` binds the arrays to C structs and chooses what a row adds to the statistics (`CellKind`)
and which formula scores them. Whole trees are grown from it (`dtrees.core.grow._single_tree`), and
rounds ask it which split is the best for a histogram, and have its rows counted and partitioned
(`dtrees.core.stores.blocks`).

Scales (of x log x, of the least gain) come from all rows of all blocks, so that the same node has
the same gain, bit for bit, wherever its rows are.
"""
from functools import lru_cache

import numpy as np

from libc.stdint cimport int8_t, int64_t, uint16_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport columns_of, pointer
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport (
    ABSOLUTE, BY_FUNCTION, ENTROPY, GINI, POISSON, SQUARED, SQUARED_OUTPUTS, RowStatistics
)
from dtrees.core.histogram._layout cimport (
    CLASSES, COUNT, OUTPUTS, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, words_of
)
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._output_scan cimport MOST_LANES
from dtrees.core.search._parameters cimport Limits

from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.rules import sets_of_columns
from dtrees.core.data.scale import gain_unit_of
from dtrees.core.search._criterion import side_score, xlogx_table

small_table = lru_cache(1)(xlogx_table)  # serves all growths of a search

SMALL_TABLE = 2**17      # rows whose table of x log x is kept: 1 MB
LANES = 4                # doubles of a register
LEAST_BY_ROW = 8         # columns below which a row of 32 codes is mostly empty
MOST_BY_ROW = 16         # columns that are read by row for each that is drawn

MOST_WEIGHT = 2.0**62    # no node weighs more

cdef int64_t UNLIMITED = 0x7FFFFFFFFFFFFFFF


cdef bint is_zero_one(target):
    """Whether rows count once or not at all, in units in which a weight of one is nothing."""
    if target.w is None or target.class_multiplier is not None:
        return False
    if target.w_exponent != 0 or target.wy_exponent != target.y_exponent:
        return False
    return bool(target.w.max(initial=0) <= 1)


cdef bind_constraints(Limits* limits, rules, list alive):
    """Set what nodes inherit; returns the sets of each column, or None. alive : gets arrays."""
    cdef object sets = None
    if rules.column_weights is not None:
        weights = np.asarray(rules.column_weights, dtype=np.int64)
        assert len(weights) == limits.n_columns
        limits.column_weights = <const int64_t*>pointer(alive, weights, np.int64)
        limits.heaviest_column = weights.max()
    if rules.monotonic is not None:
        directions = np.asarray(rules.monotonic, dtype=np.int8)
        assert len(directions) == limits.n_columns
        limits.monotonic = <const int8_t*>pointer(alive, directions, np.int8)
        limits.scores_by_values = True
    if rules.interactions is not None:
        sets = sets_of_columns(rules.interactions, limits.n_columns)
        limits.sets_of_column = <const uint64_t*>pointer(alive, sets.ravel(), np.uint64)
        limits.n_set_words = sets.shape[1]
    return sets


cdef take_logarithms(double[:, ::1] numbers):
    """Let numbers that are not negative be their logarithms, and zeros stay."""
    cdef int64_t i, o
    for i in range(numbers.shape[0]):
        for o in range(numbers.shape[1]):
            if numbers[i, o] > 0:
                numbers[i, o] = natural_log(numbers[i, o])


cdef class Dataset:
    """Rows in one place.

    Parameters
    ----------
    coded : CodedMatrix
    target : Target
    rules : GrowthRules
    scale : Scale or None, default=None
        From the rows of all blocks; None: nothing is searched, rows are partitioned and counted
        (`dtrees.core.stores.blocks`).
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, needed for random splits.
    single : bool, default=False
        Whether one tree grows from this dataset.
    alone : bool, default=False
        Whether it holds all rows of its nodes. Weights that are 0 or 1 are then left out. Where
        histograms of several blocks are added, their cells have to be of one kind.

    Attributes
    ----------
    rows_only : bool
        Columns are drawn, so all that a tree keeps is the rows of its nodes (`_column_loader`).
    is_weighted : bool
        Rows add their weights; otherwise each that is live counts once.
    """
    def __init__(self, coded, target, rules, scale=None, values=None,
                 bint single=False, bint alone=False):
        cdef bint counts = scale is None
        self.alive = []
        draws = rules.random_splits or (rules.max_features is not None
                                        and rules.max_features < coded.n_columns)
        self.rows_only = draws and single
        self.n_rows = coded.n_rows
        self.bound = columns_of(coded)
        self.columns = self.bound.columns
        self.params.columns = self.columns
        if draws and not counts:
            self.params.lists = self.bound.row_lists(coded)
        self.params.limits.n_columns = self.bound.n_columns
        self.bind_target(target, rules, alone and is_zero_one(target))
        fixed_point = 1.0 if counts else scale.fixed_point
        self.params.criterion.fixed_point = fixed_point
        if target.kind == "classification":
            self.params.criterion.gain_unit = gain_unit_of(
                rules.criterion, target.most_classes, target.weight_unit, fixed_point,
                target.n_outputs)
        if rules.criterion == "entropy":
            if self.of_row.weight == NULL and not counts:
                own = small_table if self.n_live < SMALL_TABLE else xlogx_table
                table = own(self.n_live + 1, fixed_point)
                self.params.criterion.xlogx = <const int64_t*>pointer(self.alive, table, np.int64)
                self.params.criterion.xlogx_size = self.n_live + 1
        self.bind_limits(target, rules, 1.0 if counts else scale.total_weight)
        if rules.random_splits and not counts:
            flat, first = values
            if (is_wide and LEAST_BY_ROW <= coded.u8.shape[1]
                    <= MOST_BY_ROW * self.params.limits.max_features):
                self.params.row_codes = self.bound.row_codes(coded, flat, first)
            self.params.values = <const double*>pointer(self.alive, flat, np.float64)
            self.params.first_value = <const int64_t*>pointer(self.alive, first, np.int64)
        self.params.layout.n_classes = self.params.criterion.n_classes
        self.params.layout.impurity = self.params.criterion.impurity
        self.params.layout.fixed_point = self.params.criterion.fixed_point
        self.params.layout.n_words = words_of(self.params.layout.kind, self.params.layout.n_classes)
        self.params.layout.shift = self.params.criterion.shift_of_products
        if (self.params.limits.max_features >= self.params.limits.n_columns
                and CRITERIA[rules.criterion].has_sums):
            self.params.count_rule.n_words = self.params.layout.n_words

    cdef bind_target(self, target, rules, bint zero_one):
        cdef Criterion* criterion = &self.params.criterion
        classification = target.kind == "classification"
        has_logarithms = rules.criterion == "poisson" and target.n_outputs > 1
        is_function = CRITERIA[rules.criterion].is_function or has_logarithms
        has_outputs = target.n_outputs > 1 or (is_function and not classification)
        weight = target.w
        live = np.ones(self.n_rows, dtype=np.uint8)
        if weight is not None:
            live = (weight > 0).view(np.uint8)
            if zero_one:
                weight = None
            elif (weight.dtype != np.uint16 or target.class_multiplier is not None
                    or not self.rows_only or has_outputs):
                weight = np.asarray(weight, dtype=np.int64)
        if classification:
            if target.class_multiplier is not None:
                of_label = np.asarray(target.class_multiplier, dtype=np.int64)[target.y]
                weight = of_label if weight is None else weight * of_label
                live &= weight > 0
        self.live = live
        self.n_live = int(np.count_nonzero(live))
        self.is_weighted = weight is not None
        memset(criterion, 0, sizeof(Criterion))
        criterion.n_classes = target.n_classes if classification else 0
        criterion.n_outputs = target.n_outputs
        criterion.value_field = 1
        criterion.has_logarithms = has_logarithms
        criterion.weight_unit = target.weight_unit
        criterion.value_unit = 1.0 if classification else target.value_unit
        criterion.fixed_point = 1.0
        criterion.category_penalty = rules.category_penalty
        criterion.in_bags = rules.in_bags
        self.params.n_statistics = target.n_statistics
        if is_function:
            self.side_score = side_score(rules.criterion, rules.score)
            criterion.impurity = BY_FUNCTION
            criterion.score_of_sides = self.side_score.function
            criterion.context = self.side_score.context
            criterion.category_penalty = 0.0
        if has_outputs:
            self.bind_outputs(target, rules, weight, classification)
        else:
            self.bind_statistics(target, rules, weight, classification)

    cdef bind_limits(self, target, rules, double total_weight):
        cdef Limits* limits = &self.params.limits
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
        limits.unseen_by_majority = rules.handle_unknown == "majority"
        limits.random_splits = rules.random_splits
        limits.random_ties = rules.random_ties
        self.sets_of_column = bind_constraints(limits, rules, self.alive)

    cdef bind_statistics(self, target, rules, weight, bint classification):
        """Point the row statistics at the target's arrays; choose kind and formula.

        weight : of the rows; None: one of each that is live.
        """
        cdef Criterion* criterion = &self.params.criterion
        cdef RowStatistics of_row
        memset(&of_row, 0, sizeof(RowStatistics))
        unit = target.weight_unit
        if weight is not None and weight.dtype == np.uint16:
            of_row.times = <uint16_t*>pointer(self.alive, weight, np.uint16)
        elif weight is not None:
            of_row.weight = <int64_t*>pointer(self.alive, weight, np.int64)
        if classification:
            assert target.n_classes <= 65535, target.n_classes
            of_row.label = <uint16_t*>pointer(self.alive, target.y, np.uint16)
            if rules.criterion == "entropy":
                criterion.impurity = ENTROPY
            elif criterion.impurity != BY_FUNCTION:
                criterion.impurity = SQUARED if target.n_classes <= 2 else GINI
            if criterion.impurity != SQUARED:
                self.params.layout.kind = CLASSES if weight is None else WEIGHTED_CLASSES
            elif weight is None:
                self.params.layout.kind = COUNT
            else:
                self.params.layout.kind = WEIGHTED_SUM
            if of_row.weight != NULL and self.params.layout.kind == WEIGHTED_SUM:
                of_row.target = <int64_t*>pointer(self.alive, weight * target.y, np.int64)
        else:
            of_row.value = <int64_t*>pointer(self.alive, target.y, np.int64)
            of_row.target = of_row.value
            if of_row.weight != NULL:
                sums = weight * target.y if target.wy is None else target.wy
                of_row.target = <int64_t*>pointer(self.alive, sums, np.int64)
            self.params.layout.kind = SUM if weight is None else WEIGHTED_SUM
            criterion.wy_unit = target.wy_unit
            criterion.one_scale = target.wy_exponent == target.y_exponent and unit <= 1.0
            if rules.criterion == "poisson":
                criterion.impurity = POISSON
                criterion.gain_unit = target.wy_unit
            elif rules.criterion == "absolute_error":
                criterion.gain_unit = target.wy_unit
                self.order = self.bind_medians(target, weight, target.y)
            else:
                criterion.impurity = SQUARED
                criterion.gain_unit = target.wy_unit * (target.wy_unit / unit)
        self.of_row = of_row

    cdef bind_medians(self, target, weight, y):
        """Returns the rows in the order of y, uint32 (n_rows,)."""
        cdef Criterion* criterion = &self.params.criterion
        criterion.impurity = ABSOLUTE
        criterion.shift_of_products = target.y_exponent + target.w_exponent - target.wy_exponent
        # sums of rounded products depend on which of equal numbers are up to a median
        is_rounded = weight is not None and criterion.shift_of_products > 0
        order = np.lexsort((weight, y)) if is_rounded else np.argsort(y)
        return order.astype(np.uint32)

    cdef bind_outputs(self, target, rules, weight, bint classification):
        """As `bind_statistics`, of several outputs, or of numbers whose squares are summed, too."""
        cdef Criterion* criterion = &self.params.criterion
        cdef RowStatistics* of_row = &self.of_row
        memset(of_row, 0, sizeof(RowStatistics))
        of_row.n_outputs = m = target.n_outputs
        self.params.layout.kind = OUTPUTS
        if weight is not None:
            of_row.weight = <int64_t*>pointer(self.alive, weight, np.int64)
        criterion.of_classes = (classification and rules.criterion == "gini"
                                and target.most_classes <= 2)
        if classification and not criterion.of_classes:
            of_row.label = <uint16_t*>pointer(self.alive, target.fields.ravel(), np.uint16)
            if criterion.impurity == BY_FUNCTION:
                ends = np.cumsum([own.n_classes for own in target.of_outputs])
                criterion.ends = <const int64_t*>pointer(self.alive, ends, np.int64)
            else:
                criterion.impurity = ENTROPY if rules.criterion == "entropy" else GINI
            return
        if classification:
            last = np.cumsum([own.n_classes for own in target.of_outputs]) - 1
            target = target.as_numbers()
        outputs = target.of_outputs if m > 1 else (target,)
        exponents = np.array([own.y_exponent for own in outputs], dtype=np.int64)
        finer, coarsest = exponents - exponents.min(), int(np.argmin(exponents))
        value = target.y.reshape(-1, m)
        sums = value
        if weight is not None:
            sums = weight[:, None] * value if target.wy is None else target.wy.reshape(-1, m)
        if criterion.impurity == BY_FUNCTION:
            order = target.order if criterion.has_logarithms else np.arange(m)
            value, sums = self.bind_second(target, outputs, weight, value, sums, order)
            order = np.concatenate([order, m + order])
            finer = np.concatenate([finer, np.full(m, 2000)])   # a scale of zero
        else:
            order = target.order
            criterion.impurity = SQUARED_OUTPUTS
        if rules.criterion == "absolute_error":
            y, w = target.y[self.rows()].T[order], None if weight is None else weight[self.rows()]
            self.orders = np.hstack([self.bind_medians(target, w, own) for own in y])
        place = last[order] if classification else order
        is_plain = sums is value
        value, finer = np.take(value, order, axis=1), finer[order]
        sums = value if is_plain else np.take(sums, order, axis=1)
        of_row.n_outputs = criterion.n_classes = len(order)
        criterion.sums_numbers, criterion.value_field = True, 0
        if criterion.impurity == ABSOLUTE:  # weights times medians, and errors
            criterion.n_classes = 2 * m
        scale = pointer(self.alive, np.ldexp(1.0, -finer), np.float64)
        shift = pointer(self.alive, np.minimum(2 * finer, 126), np.int64)
        criterion.scale = <const double*>scale
        criterion.shift = of_row.shift = <const int64_t*>shift
        criterion.place = <const int64_t*>pointer(self.alive, place, np.int64)
        if (is_wide and criterion.impurity == SQUARED_OUTPUTS and m <= MOST_LANES
                and not rules.random_splits):
            numbers = np.zeros((self.n_rows, -(-target.n_outputs // LANES) * LANES))
            np.multiply(sums, np.ldexp(1.0, -finer), out=numbers[:, :target.n_outputs])
            of_row.n_lanes = numbers.shape[1]
            of_row.largest = max(numbers.max(), -numbers.min())
            of_row.numbers = <double*>pointer(self.alive, numbers.ravel(), np.float64)
        if classification:  # totals say what is pure, and need no moments
            of_row.label = <uint16_t*>pointer(self.alive, value.ravel(), np.uint16)
            of_row.zero_one = True
            return
        of_row.target = <int64_t*>pointer(self.alive, sums.ravel(), np.int64)
        of_row.value = <int64_t*>pointer(self.alive, value.ravel(), np.int64)
        criterion.value_unit = outputs[coarsest].value_unit
        criterion.wy_unit = outputs[coarsest].wy_unit
        criterion.one_scale = (target.wy_exponent == target.y_exponent
                               and target.weight_unit <= 1.0)
        if criterion.impurity == BY_FUNCTION:
            criterion.gain_unit = 1.0
        elif criterion.impurity == ABSOLUTE:
            criterion.gain_unit = criterion.wy_unit / m
        else:
            criterion.gain_unit = (criterion.wy_unit * (criterion.wy_unit / target.weight_unit)
                                   / target.n_outputs)

    cdef tuple bind_second(self, target, outputs, weight, value, sums, order):
        """Values and sums with second fields of the outputs behind them: squares, or y log y of
        Poisson. Binds the units that a function is told of.

        A second field is y times a factor, y itself or its logarithm, in a fixed point in which it
        is no larger than y.
        """
        cdef bint has_logarithms = self.params.criterion.has_logarithms
        factor = value.astype(np.float64, order="C")
        if has_logarithms:
            take_logarithms(np.multiply(factor, [own.value_unit for own in outputs], out=factor))
        bits = (target.log_bits if has_logarithms
                else np.frexp(np.abs(factor).max(axis=0, initial=0))[1].astype(np.int64))
        factor = np.ldexp(factor, -bits)
        second = np.rint(value * factor).astype(np.int64)
        of_row = second
        if weight is not None and (target.wy is None or target.w_exponent == 0
                                   and target.wy_exponent == target.y_exponent):
            of_row = weight[:, None] * second
        elif weight is not None:
            of_row = np.rint(sums * factor).astype(np.int64)
        units = [1.0 if has_logarithms else own.value_unit for own in outputs]
        told = [(outputs[o].offset, outputs[o].wy_unit,
                 np.ldexp(outputs[o].wy_unit * units[o], bits[o])) for o in order]
        self.params.criterion.told = <const double*>pointer(self.alive, np.ravel(told), np.float64)
        return np.hstack([value, second]), np.hstack([sums, of_row])

    def raise_error(self):
        """Raise what a user's criterion has raised during growth."""
        if self.side_score is not None:
            self.side_score.raise_error()

    def rows(self):
        """Rows of positive weight, ascending; uint32 (n_live,)."""
        return np.flatnonzero(np.asarray(self.live)).astype(np.uint32)
