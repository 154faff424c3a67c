"""Estimators for several training sets of one table, from one coding and one growth.

`dtrees.model_selection` asks for such models. They are those of separate fits in which the rows
outside of a set weigh nothing. What they say of rows of the table is read from its codes::

    TrainingTable(X, y, weights) --once--> codes, target
    sets of rows ----------------------------+--> _fit_sets --> trees by set --> models
                                             |                                      |
                                             +---------- codes of any rows ------> answers

Weights of a set are integers in the unit that its own fit would choose. Sets share sums where units
agree. The others grow one by one from the same codes. So do sets where the growth of a table cannot
be shared (`dtrees.core.grow.shared`). The log says so, and why, once for a table. Out-of-bag
results come from the same codes, too, when the trees have grown.

A fit chooses the unit of its integers by the rows that it has (`dtrees.coding.target`). Sets share
what rows add where their own fits would have the same integers, up to what is multiplied when sums
are read (`dtrees.core.membership.resampling`)::

    class weights            rows count the same in all sets, classes what they weigh in each
    the same units           what a row adds is the same in all sets that have it
    other units              a growth for each unit
    fractions of rows        "balanced": rows in common units, and classes what they weigh in each
    times class weights      set; of a dict: products are rounded row by row
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import joblib
import numpy as np

from dtrees.callbacks import Bar
from dtrees.coding.codebook import SAMPLE_ROWS, CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.outputs import Outputs
from dtrees.coding.tables import Table
from dtrees.coding.target import (
    GivenRows,
    SpreadTarget,
    Target,
    TargetUnits,
    class_integers,
    exact_bincount,
)
from dtrees.core.grow.shared import n_alone
from dtrees.core.membership.resampling import (
    MOST_TOTALS,
    CellsElsewhere,
    ClassWeights,
    Lacking,
    Resampling,
    of_sets,
    without_class_weights,
)
from dtrees.core.predict.binned import LeafLookup
from dtrees.estimators.base import BaseModel
from dtrees.estimators.boosted_sets import fit_boosted
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.fit_plan import Encoded, FitPlan, RowsElsewhere, Training, rows_of
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.resume import SavedGrowths, seed_of
from dtrees.parallel import (
    CodedPartitions,
    FitStatistics,
    LazyColumn,
    LocalRunner,
    PartitionedTable,
    RowColumns,
    admitted,
    tables_kept,
    threaded,
)
from dtrees.parallel.fit_statistics import SHARED

logger = logging.getLogger(__name__)

LARGEST_SUM = 2.0**62  # of the rows of all sets that share


@dataclass(eq=False)
class UnitGroup:
    """Sets that share sums.

    Attributes
    ----------
    target : Target
        What the rows of these sets add; it says nothing of other rows.
    numbers : list of int
        The sets.
    class_weights : ClassWeights or None, default=None
        Of the sets, where these have their own, in the integers of each.
    """

    target: Target
    numbers: list[int]
    class_weights: ClassWeights | None = None

    def take(self, number: int, own: Target, rows: np.ndarray) -> None:
        """Take in one more set of these rows, whose integers are in the same unit."""
        target, weighs = self.target, ClassWeights.of_target(own, 1)
        assert target.w is not None
        assert own.w is not None
        w, wy = np.where(rows, own.w, target.w), None
        if own.wy is not None and target.wy is not None:
            wy = np.where(rows, own.wy.T, target.wy.T).T
        self.target = replace(target, w=w, wy=wy)
        if weighs is not None and self.class_weights is not None:
            self.class_weights = self.class_weights.with_those(weighs)
        self.numbers.append(number)

    def divided(self, sets: Resampling) -> list[UnitGroup]:
        """A group for each of its sets."""
        found = []
        for at, number in enumerate(self.numbers):
            weighs = None if self.class_weights is None else self.class_weights.some([at])
            found.append(UnitGroup(self.target.only(sets.rows(number)), [number], weighs))
        return found


@dataclass(frozen=True, eq=False)
class Codes:
    """A table and its target as one way of coding has them."""

    # the target as it was read: (n_rows,), a list of columns, or a `LazyColumn`, whose target is a
    # `SpreadTarget`
    values: Any
    target: Target
    seed: int  # of a fit
    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    rows: LeafLookup  # the same codes, ready to be walked
    stats: FitStatistics  # what was done to make them


@dataclass(eq=False, repr=False)
class TrainingTable:
    """A table and what belongs to its rows, read once, and coded once for each way of coding.

    Estimators with other parameters share the codes, unless they ask for other ones (``max_bins``,
    ``categorical_features``, ``handle_unknown``, and the seed, where values are sampled).
    """

    X: Any  # this and the others as `admitted` makes them
    y: Any
    sample_weight: Any = None
    stats: FitStatistics = field(default_factory=FitStatistics)  # what has been done for it so far
    init_score: Any = None
    saved: SavedGrowths | None = None
    told: set[str] = field(default_factory=set, init=False)  # what was logged of it
    _read: tuple[Table | PartitionedTable, Any] | None = field(default=None, init=False)
    _seed: int | None = field(default=None, init=False)  # of all fits without a random state
    _codes: dict[Hashable, tuple[Any, ...]] = field(default_factory=dict, init=False)
    _targets: dict[Hashable, Target] = field(default_factory=dict, init=False)
    _rows: dict[Hashable, RowsElsewhere] = field(default_factory=dict, init=False)

    def saving(self) -> AbstractContextManager[None]:
        """Save what has grown at the end of this block, the outermost one."""
        return nullcontext() if self.saved is None else self.saved.checkpoint.saving()

    def coded(self, plan: FitPlan, run: LocalRunner, sets: Resampling | None = None) -> Codes:
        """What a fit to all rows grows from; made when it is asked for first.

        The target is kept for the next growth, if it depends on plain values. It stays where its
        rows are, as the codes do, where the cells of the `sets` are there, too. ValueError: an
        input is not what it should be, or the sets are of another table.
        """
        own, seed = plan.estimator, self._seed
        if seed is None or own.random_state is not None:
            seed = seed_of(own, None if self.saved is None else self.saved.checkpoint)
            if own.random_state is None:
                self._seed = seed
        stays = sets is not None and isinstance(sets.cells, CellsElsewhere)
        stays = stays and isinstance(self.y, LazyColumn)
        has_scores = own.oob_score and not own._adds_steps  # of boosting, they are a curve
        if own.keep_rows or has_scores or own.oob_tol is not None:
            stays = False  # what is asked for is as long as the table
        table, weight = self.X, self.sample_weight
        if stays:
            values, weight = self.y, self.rows_elsewhere(plan)
            target: Target = weight.target
        else:
            table, values, target = self._target_here(plan)
        is_sampled = own.max_bins is not None and table.n_rows > SAMPLE_ROWS
        coding = (
            own.max_bins,
            own.categorical_features,
            own.handle_unknown,
            seed if is_sampled else None,
        )
        are_plain = all(value is None or type(value) in (str, int) for value in coding)
        key: Hashable = coding if are_plain else str(joblib.hash(coding))  # of lists of columns
        if key not in self._codes:
            stats = self.stats.continued()
            with stats.phase("coding"):
                book, coded = plan.code(table, seed, run, stats, weight, target)
            self._codes[key] = book, coded, rows_of(coded), stats
        coded = self._codes[key][1]
        if sets is not None and len(sets.cells) != coded.n_rows:
            raise ValueError(f"X has {coded.n_rows} rows, but the sets are of {len(sets.cells)}.")
        if stays and isinstance(coded, CodedMatrix):  # they are here, after all
            _, values, target = self._target_here(plan)
        return Codes(values, target, seed, *self._codes[key])

    def _target_here(self, plan: FitPlan) -> tuple[Table | PartitionedTable, Any, Target]:
        """The table and the target as they were read, and the target of a fit."""
        if self._read is None:
            y = self.y.here() if isinstance(self.y, LazyColumn) else self.y
            self._read = plan.read(self.X, y)
        table, values = self._read
        key, is_plain = _key_of_target(plan)
        target = self._targets.get(key) if is_plain else None
        if target is None:
            target = plan.target(values, self.sample_weight)
            if is_plain:
                self._targets[key] = target
        return table, values, target

    def rows_elsewhere(
        self, plan: FitPlan, sets: Resampling | None = None, number: int = 0
    ) -> RowsElsewhere:
        """Rows that are not here, as a fit has them; those outside of a set weigh nothing.

        Kept for the next growth, as the target is.
        """
        lacks, cells = None, None
        if sets is not None:
            assert isinstance(sets.mix, Lacking)
            lacks = int(sets.mix.cell[number])
            lacks = None if lacks < 0 else lacks
        columns = {"y": self.y, "sample_weight": self.sample_weight, "init_score": self.init_score}
        if sets is not None and lacks is not None:
            cells = sets.cells
            columns["cells"] = cells.column
        own, (key, is_plain) = plan.estimator, _key_of_target(plan)
        key = key, own.max_bins is None, cells, lacks
        rows = self._rows.get(key)
        if rows is None:
            rows = RowsElsewhere.of(own, self.X, columns, self.stats, lacks)
            if is_plain:
                self._rows[key] = rows
        return rows

    def class_totals(self, plan: FitPlan, sets: Resampling) -> tuple[Target, np.ndarray]:
        """The target without class weights, and the weight of each class in each set, by cells."""
        own = plan.estimator._unfitted()
        own.class_weight = None
        plan = FitPlan(own)
        target = self.rows_elsewhere(plan).target
        return target, self._counts_of_sets(plan, sets, target.n_classes, _classes_of_rows)

    def _counts_of_sets(
        self, plan: FitPlan, sets: Resampling, n: int, of_rows: Callable[[Target], Any]
    ) -> np.ndarray:
        """How often rows of a set, by their weights, have a number below n; int64 (n_sets, n).

        `of_rows` makes numbers and weights of a target.
        """
        rows = self.rows_elsewhere(plan)
        columns = {"y": self.y, "sample_weight": self.sample_weight, "cells": sets.cells.column}
        count = partial(_counts_of_part, rows.read, rows.units, (sets.mix.shape[1], n), of_rows)
        of_all = RowColumns.of(self.X, columns, self.stats)
        of_cell = of_all.asked(count, lambda ask: np.sum(ask(np.asarray), axis=0), self.stats)
        assert isinstance(sets.mix, Lacking)
        found: np.ndarray = of_cell.sum(axis=0) - np.pad(of_cell, ((0, 1), (0, 0)))[sets.mix.cell]
        return found

    def told_of(self, plan: FitPlan, codes: Codes, sets: Resampling) -> tuple[Any, np.ndarray]:
        """`FittedSets.y`, which may be a `LazyColumn`, and rows of positive weight in each set."""
        target = codes.target
        is_elsewhere = isinstance(target, SpreadTarget)
        y: Any
        if is_elsewhere:
            y = self.rows_elsewhere(plan).y(self.stats)
        elif target.kind == "classification":
            y = target.y
        else:
            values = codes.values
            y = np.column_stack(values) if isinstance(values, list) else values
            y = y.astype(np.float64, copy=False)
        if not is_elsewhere or target.n_live == target.n_rows:
            return y, sets.totals(target.has_weight)
        return y, self._counts_of_sets(plan, sets, 1, _live_rows)[:, 0]


def _classes_of_rows(target: Target) -> tuple[np.ndarray, np.ndarray | None]:
    return target.y, target.w


def _live_rows(target: Target) -> tuple[int, np.ndarray | None]:
    has = target.has_weight
    return 0, None if has is None else has.astype(np.int64)


def _counts_of_part(
    read: Callable[..., GivenRows],
    units: TargetUnits,
    shape: tuple[int, int],
    of_rows: Callable[[Target], Any],
    y: Any,
    sample_weight: Any,
    cells: np.ndarray,
    first_row: int,
) -> np.ndarray:
    """How often each cell has each number, int64 of a shape, of the rows of a partition."""
    (n_cells, n), target = shape, units.target(read(y, sample_weight, first_row))
    numbers, weights = of_rows(target)
    return exact_bincount(cells.astype(np.int64) * n + numbers, weights, n_cells * n).reshape(shape)


def _key_of_target(plan: FitPlan) -> tuple[Hashable, bool]:
    """What the target of a table depends on, and whether these are plain values."""
    own = plan.estimator
    weight, criterion = own.class_weight, getattr(own, "criterion", None)
    is_plain = weight is None or isinstance(weight, str)
    return (
        type(own),
        criterion == "poisson",
        weight if is_plain else None,
        own.bootstrap,
    ), is_plain


def fit_sets(
    estimator: BaseModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    rows: np.ndarray,
    *,
    bar: Bar | None = None,
) -> FittedSets:
    """Fit a clone to each training set, bool (n_sets, n_rows), of a table used only here."""
    stats = FitStatistics()
    X, y, weight = admitted(X, {"y": y, "sample_weight": sample_weight}, stats)
    return fit_table(estimator, TrainingTable(X, y, weight, stats), of_sets(rows), bar=bar)


@tables_kept()
def fit_table(
    estimator: BaseModel,
    table: TrainingTable,
    sets: Resampling,
    *,
    bar: Bar | None = None,
) -> FittedSets:
    """Fit a clone of an estimator to each training set; `bar` counts the trees of all sets.

    Boosted models grow side by side (`boosted_sets`), and are not counted.

    Raises ClusterError where a Dask cluster is in force, or asked for, and cannot be used.
    ValueError: a parameter or the table is not what it should be.
    """
    if isinstance(estimator, BaseBoosting):
        return fit_boosted(estimator, table, sets)
    plan = FitPlan.of(estimator)
    run = threaded(plan.estimator.n_jobs)
    codes = table.coded(plan, run, sets)  # the same draws for all sets, and growths of a search
    if not isinstance(codes.target, SpreadTarget):
        sets = sets.here()
    encoded = plan.resolve(codes.book, codes.coded, codes.target, codes.seed)
    stats = codes.stats.continued()
    if sets.n_sets > 1:
        stats.counts.update(dict.fromkeys(SHARED, 0))  # also where that is nothing
    training = Training(encoded, table.y, run, stats=stats)
    if table.saved is not None:
        saved = table.saved.of_growth(plan.estimator, encoded.table, sets, stats)
        training = replace(training, saved=saved)
    if bar is not None:
        bar.expect(plan.n_trees * sets.n_sets)
        training = replace(training, advance=bar.advance)
        if training.saved is not None:
            there = training.saved.trees()
            bar.advance(sum(min(len(trees), plan.n_trees) for trees in there))
    with training.saving():
        models = _models_of(plan, training, codes.values, table, sets)
    for model in models:
        if not isinstance(model, Exception):
            model._fit_report = stats.report()
    told = table.told_of(plan, codes, sets)
    return FittedSets(models, encoded.book, encoded.target, codes.rows, *told)


def _models_of(
    plan: FitPlan, training: Training, values: Any, table: TrainingTable, sets: Resampling
) -> list[Any]:
    """The models of sets, or the errors of their fits; `values` are the target as it was read."""
    encoded = training.encoded
    models, groups = _grouped(plan, training, values, table, sets)
    together = []
    for group in groups:  # with what is multiplied when sums are read
        own, weighs = sets.some(group.numbers), group.class_weights
        together.append((group, own if weighs is None else own.weighing(weighs)))
    if sets.n_sets > 1 and logger.isEnabledFor(logging.INFO):
        _tell_alone(plan, encoded, table, together, models)
    for group, own in together:
        of_group = training.of_sets(group.numbers)
        if len(together) > 1 and own.n_sets == 1:
            found = [_fitted(plan, of_group, own.target_of(0, group.target))]
        else:
            common = replace(encoded, target=group.target)
            with training.stats.phase("growth"):
                found = plan.estimator._fit_sets(replace(of_group, encoded=common), own)
        for number, model in zip(group.numbers, found, strict=True):
            models[number] = model
    return models


def _grouped(
    plan: FitPlan, training: Training, values: Any, table: TrainingTable, sets: Resampling
) -> tuple[list[Any], list[UnitGroup]]:
    """Models of sets that are fitted one by one, None for the others; and the groups of these.

    `values` are the target as it was read.
    """
    models: list[Any] = [None] * sets.n_sets
    whole, weight = training.encoded.target, plan.class_weight
    first = UnitGroup(whole, [])  # of sets that have the integers of all rows
    by_unit: dict[Any, UnitGroup] = {}
    if isinstance(whole, SpreadTarget):
        targets = _targets_elsewhere(plan, training.encoded, table, sets)
    else:
        targets = _targets(plan, training.encoded, values, table.sample_weight, sets)
    for number, own in enumerate(targets):
        if own is None:
            first.numbers.append(number)
        elif not isinstance(own, Target):
            models[number] = own
            training.advance(plan.n_trees)
        elif (
            own.w is None
            or isinstance(own, SpreadTarget)
            or own.means is not None
            or (weight is not None and own.n_outputs > 1)  # weights are those of this set
            or (own.class_multiplier is not None) != (weight == "balanced")
        ):
            models[number] = _fitted(plan, training.of_sets([number]), own)
        else:  # what a row adds is a function of its weight, its y and the units
            key = own.units, _order_of(own)
            if key in by_unit:
                by_unit[key].take(number, own, sets.rows(number))
            else:
                plain = replace(own, class_multiplier=None, class_exponent=0)
                by_unit[key] = UnitGroup(plain, [number], ClassWeights.of_target(own, 1))
    weighs_sums = weight is not None and whole.w_exponent == 0 and not plan.estimator.bootstrap
    if weighs_sums and whole.n_outputs == 1 and first.numbers:
        if isinstance(whole, SpreadTarget):
            counts, totals = table.class_totals(plan, sets.some(first.numbers))
        else:
            counts = without_class_weights(whole)
            totals = sets.some(first.numbers).class_totals(counts)

        def integers(totals: list[int]) -> tuple[np.ndarray | None, int]:
            assert whole.classes is not None
            return class_integers(weight, whole.classes, totals, plan.estimator._spare_bits)

        first = UnitGroup(counts, first.numbers, ClassWeights.of_totals(totals, integers))
    found = [first] if first.numbers else []
    for group in by_unit.values():
        sums = [
            np.abs(each).sum(dtype=np.float64)
            for each in (group.target.w, group.target.wy)
            if each is not None
        ]
        overflows = max(sums) >= LARGEST_SUM / 2**plan.estimator._spare_bits
        found += group.divided(sets) if overflows else [group]
    return models, found


def _tell_alone(
    plan: FitPlan,
    encoded: Encoded,
    table: TrainingTable,
    together: list[tuple[UnitGroup, Resampling]],
    models: list[Any],
) -> None:
    """Log how many models of several sets share nothing, by reason; once for a table."""
    alone: Counter[str] = Counter()
    n_units = sum(model is not None and not isinstance(model, Exception) for model in models)
    for group, own in together:
        if own.n_sets == 1:
            n_units += len(together) > 1
        elif isinstance(encoded.coded, CodedMatrix):  # rounds are those of all sets
            count, reason = n_alone(encoded.coded, group.target, encoded.rules, own)
            alone[reason] += count
    alone[_reason_of_own_units(plan, table.sample_weight)] += n_units
    for reason, count in alone.items():
        many = f"{count} of {len(models)} " if count < len(models) else ""
        said = f"{many}models are fitted one by one: {reason}"
        if count > 0 and said not in table.told:
            table.told.add(said)
            logger.info(said)


def _reason_of_own_units(plan: FitPlan, sample_weight: Any) -> str:
    """Why the integers of a set are not those of all rows."""
    name = "y" if sample_weight is None else "sample_weight"
    if plan.class_weight is not None:
        name = "class_weight"
    if name != "y" and plan.estimator.bootstrap:
        return f"bags are drawn by {name}, which adds up to something else in each training side"
    return f"{name} is counted in other units for each training side"


def _fitted(plan: FitPlan, training: Training, target: Target) -> Any:
    """An estimator, fitted to the same codes with another target; or the error of its fit."""
    encoded = training.encoded
    if encoded.shares is not None:
        encoded = replace(encoded, rules=encoded.shares.rules(encoded.rules, target))
    own = replace(
        training,
        encoded=replace(encoded, target=target),
        run=threaded(plan.estimator.n_jobs),  # which a forest that ends early cancels
    )
    try:
        return plan.estimator._unfitted()._fit_coded(own)
    except ValueError as error:
        return error


def _targets(
    plan: FitPlan, encoded: Encoded, values: Any, sample_weight: Any, sets: Resampling
) -> Iterator[Target | Exception | None]:
    """For each set None where its target is that of all rows, less the rows outside; else its own.

    Where classes weigh what they do in each set, None says so of the target without class weights.
    The target of a set is what `fit` makes of the weights times 0 and 1.
    """
    whole = encoded.target
    weight = np.ones(whole.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    counts = sets.totals(whole.has_weight) > 0
    # with an exponent of 0 classes weigh what they do in each set
    weighs_classes = plan.class_weight is not None and (
        whole.w_exponent != 0 or whole.n_outputs > 1
    )
    is_balanced = weighs_classes and whole.class_multiplier is not None
    weighs = sample_weight is not None or plan.class_weight is not None
    same_units = not (weighs_classes or (weighs and plan.estimator.bootstrap)) and (
        whole.w is None
        or (whole.kind == "classification" and whole.w_exponent == 0 and not _order_of(whole))
    )
    if same_units and encoded.rules.criterion == "poisson":
        for y in np.atleast_2d(whole.y.T):
            counts &= sets.totals(y) > 0  # else `fit` raises
    for number, has_rows in enumerate(counts.tolist()):
        if same_units and has_rows:
            yield None
            continue
        mine = sets.rows(number)
        try:
            own = plan.target(values, weight * mine)
        except ValueError as error:
            yield error
            continue
        yield None if not is_balanced and _is_part(own, whole, mine) else own


def _targets_elsewhere(
    plan: FitPlan, encoded: Encoded, table: TrainingTable, sets: Resampling
) -> Iterator[Target | Exception | None]:
    """As `_targets`, of rows that are not here."""
    rows, whole = table.rows_elsewhere(plan), encoded.target
    # which rows count, and what they weigh, is not known by cell; but of classes it is
    is_shared = whole.n_live == whole.n_rows
    is_known = table.sample_weight is None and encoded.rules.criterion != "poisson"
    if not is_known or plan.class_weight is not None:
        is_shared = is_shared and encoded.shares is None
    if plan.class_weight is not None:
        is_few = sets.mix.shape[1] * whole.n_classes <= MOST_TOTALS
        is_known = whole.w_exponent == 0 and not plan.estimator.bootstrap and is_few
        is_shared = is_shared and is_known
    for number in range(sets.n_sets):
        if is_shared and is_known:
            yield None
            continue
        try:
            own = table.rows_elsewhere(plan, sets, number)
        except ValueError as error:
            yield error
            continue
        yield None if is_shared and own.units.are_those_of(rows.units) else own.target


def _order_of(target: Target) -> tuple[int, ...]:
    """Several targets: the order in which their scores are added up, if it matters."""
    return tuple(target.order.tolist()) if isinstance(target, Outputs) else ()


def _is_part(own: Target, whole: Target, rows: np.ndarray) -> bool:
    """Whether a target is another one whose other rows weigh nothing, in the same units."""
    if own.units != whole.units or own.class_exponent != whole.class_exponent:
        return False
    if _order_of(own) != _order_of(whole):
        return False
    if own.means is not None and not rows.all():  # other rows are drawn as if they weighed 1
        return False
    expected = whole if rows.all() else whole.only(rows)
    if expected.wy is None and own.wy is not None and expected.w is not None:
        expected = replace(expected, wy=(expected.w.astype(np.int64) * expected.y.T).T)
    names = ("y", "w", "wy", "class_multiplier", "means")
    return all(np.array_equal(getattr(own, name), getattr(expected, name)) for name in names)
