"""Boosted models of several training sets of one table, from one coding, side by side.

    TrainingTable(X, y, weights) ──once──▶ codes, codes by row
    set of rows ─▶ weights, 0 outside ─▶ what a fit to them begins with ─┐
                                                                         ├─▶ threads, a model each
    codes ───────────────────────────────────────────────────────────────┘

The model of a set is that of a fit in which the rows outside of the set weigh nothing: the same
steps make it, from the target (`boosted_start`) to the attributes. Derivatives of models differ
after their first tree, so sums are not shared, as those of trees are. What is shared is the table:
its codes, in columns and by row, which all models read in place. On a cluster they are shared by
the models of a worker, or by all of them, where each worker has some rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.outputs import raw_by_output
from dtrees.coding.target import SpreadTarget, Target
from dtrees.core.grow.lockstep import Grow, Model, Turns, boost_together
from dtrees.core.membership.resampling import Resampling
from dtrees.core.predict.raw import raw_before
from dtrees.estimators.boosted_elsewhere import begin_elsewhere
from dtrees.estimators.boosted_start import CodedTable, Start, sides_of, start_of
from dtrees.estimators.boosted_stopping import Iterations
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import FittedSets, Walks
from dtrees.estimators.prediction import offsets_of, side_by_side
from dtrees.exceptions import ClusterError
from dtrees.parallel import (
    CodedPartitions,
    FitStatistics,
    SavedTrees,
    SpreadModel,
    boost_apart,
    boost_partitioned,
    place_of_boosting,
    place_of_rows,
    threaded,
)
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.estimators.training_sets import TrainingTable

MOST_AT_ONCE, LEAST_AT_ONCE = 32, 8  # iterations whose steps are held
CELLS_AT_ONCE = 2**16  # of these: fewer iterations of many rows, which stay in the cache
TREES_OF_A_TASK = 4  # that rows go down, where there are threads for them

Fit = Generator[Any, Any, Any]  # of a model, which asks for its trees


@dataclass(frozen=True, eq=False)
class FittedBoosts(FittedSets):
    """Boosted models of several training sets.

    `offset`, float64 (n_rows, n_values), is what the raw predictions of rows begin with, if given;
    it may be a `LazyColumn`.
    """

    offset: Any = None

    def first_raw(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """Raw predictions of rows before the first iteration, float64 (n, n_values)."""
        own = None if self.offset is None else self.offset[rows]
        return raw_before(model._initial, len(rows), own)

    def walks(self, model: Any) -> Walks:
        """What is to be known of rows for what a model says of them; sums go by value."""
        trees, n_values = model.forest_.trees, model.n_trees_per_iteration_
        if not self._adds_values(model):
            return [(trees, None)]
        return [(trees[k::n_values], float(model._initial[k])) for k in range(n_values)]

    def _adds_values(self, model: Any) -> bool:
        """Whether sums of trees by value are asked for, where rows are elsewhere."""
        return self.offset is None and model.n_trees_per_iteration_ == len(model._initial)

    def alone(self, number: int, has_trees: bool) -> Self:
        """The model of a set without the table, as `FittedSets.alone`."""
        return replace(super().alone(number, has_trees), offset=None)

    def values_of(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """What a model says of rows: shares of classes, or a number."""
        found: np.ndarray = model._predictor().values_of(self.raw_of(model, rows))
        return found

    def scores_of(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """Raw predictions as ``decision_function``, float64 (n,) or (n, n_classes)."""
        found: np.ndarray = model._predictor().scores_of(self.raw_of(model, rows))
        return found

    def raw_of(self, model: Any, rows: np.ndarray, run: Runner | None = None) -> np.ndarray:
        """Raw predictions of rows, float64 (n, n_values); `run` as for `stages_of`."""
        if not self.coded_rows.is_here and self._adds_values(model):
            sums = [
                self.coded_rows.sums(trees, rows, serial, start or 0.0)
                for trees, start in self.walks(model)
            ]
            return np.concatenate(sums, axis=1)
        raw = self.first_raw(model, rows)
        for block in self.blocks_of_stages(model, rows, run):
            raw = np.ascontiguousarray(block[-1].T)
        return raw

    def stages_of(
        self, model: Any, rows: np.ndarray, run: Runner | None = None
    ) -> Iterator[np.ndarray]:
        """Raw predictions of rows after 1, 2, ... iterations.

        `run` is for the walk; None: the threads of the model. The bits are those of
        ``staged_decision_function``: steps are added in the same order.
        """
        for block in self.blocks_of_stages(model, rows, run):
            yield from (np.ascontiguousarray(raw.T) for raw in block)

    def blocks_of_stages(
        self, model: Any, rows: np.ndarray, run: Runner | None = None
    ) -> Iterator[np.ndarray]:
        """Raw predictions after some iterations at a time, (n_iterations, n_values, n_rows)."""
        lookup, trees = self.coded_rows, model.forest_.trees
        run, n_trees = run or threaded(model.n_jobs), model.n_trees_per_iteration_
        raw = self.first_raw(model, rows).T
        at_once = CELLS_AT_ONCE // max(1, raw.size)
        at_once = max(LEAST_AT_ONCE, min(MOST_AT_ONCE, at_once)) * n_trees
        of_a_task = TREES_OF_A_TASK if lookup.is_here and run is not serial else at_once
        for first in range(0, len(trees), at_once):
            some = trees[first : first + at_once]
            parts = [some[at : at + of_a_task] for at in range(0, len(some), of_a_task)]
            found = run([partial(lookup.means, part, rows) for part in parts])
            block = np.concatenate(found).reshape(len(some) // n_trees, *raw.shape)
            block[0] += raw
            for before, after in pairwise(block):  # in the order of the trees
                after += before
            yield block
            raw = block[-1]


def fit_boosted(estimator: BaseBoosting, table: TrainingTable, sets: Resampling) -> FittedBoosts:
    """Fit a clone of an estimator, which is not fitted itself, to each training set.

    Cells of the sets are known. Where a fit fails, its error stands in the place of the model.
    ``fit_report_`` of all models is that of the growth; ``models_together`` counts those that were
    grown in it.

    ValueError: a parameter or the table is not what it should be. ClusterError: a cluster is in
    force, or asked for by ``regime``, and cannot be used. TableTooLargeError: codes do not fit
    where they have to be.
    """
    estimator._check_parameters()
    place = place_of_boosting(estimator.regime)
    plan = FitPlan(clone(estimator))
    run = threaded(estimator.n_jobs)
    codes = table.coded(plan, run, sets)  # the same draws for all sets, and growths of a search
    values, target, seed = codes.values, codes.target, codes.seed
    place, coded = place_of_rows(place, codes.coded)
    is_elsewhere = isinstance(target, SpreadTarget)
    if not is_elsewhere:
        sets = sets.here()
    there: Any = coded
    offset = table.init_score
    if offset is not None:
        n_values = sum(raw_by_output(target))
        if is_elsewhere:
            columns = table.rows_elsewhere(plan).columns
            of_part = partial(_offsets_of_part, n_values)
            columns.asked(of_part, lambda ask: ask(len), stats=table.stats)  # what is wrong is told
            offset = columns.column(of_part, "offsets", table.stats)
        else:
            offset = offsets_of(offset, coded.n_rows, n_values)
    y = side_by_side(values) if isinstance(values, list) else values
    common = CodedTable(table.X, y, codes.book, coded, seed, offset)
    models: list[Any] = [None] * sets.n_sets
    missing = coded.missing_columns() if isinstance(coded, CodedMatrix) else None
    stats, saved = codes.stats.continued(), None
    if table.saved is not None:
        about = codes.book, codes.coded, target, seed
        saved = table.saved.of_growth(plan.estimator, about, sets, stats, offset=offset)

    def begin(number: int, model: Any) -> Start:
        """Where a model begins; the target of its rows is not kept while it grows."""
        if is_elsewhere:
            rows = table.rows_elsewhere(plan, sets, number)
            sides, begun = begin_elsewhere(model, rows, seed, False, stats)
            about = replace(common, offset=None)
            return start_of(model, about, rows.target, sides, begun=begun)
        own = _target_of(model, target, values, table.sample_weight, sets.rows(number))
        return start_of(model, common, own, sides_of(model, y, own, seed))

    def fit(number: int, grow: Callable[..., Fit]) -> Fit:
        model = clone(plan.estimator)
        try:
            start = begin(number, model)
            trees = yield from grow(model, start, None if saved is None else saved.some([number]))
            of_all = there.facts.has_missing if missing is None else missing
            model._learn(start.learned, trees, start.watch, of_all)
        except (MemoryError, OSError, ClusterError):  # of a checkpoint, or where rows are
            raise
        except Exception as error:  # of a fit: who asked for the models decides what it is worth
            model = error
        models[number] = model

    def fit_here(number: int, grow: Grow) -> Turns:
        def trees_of(model: Any, start: Start, mine: SavedTrees | None) -> Fit:
            watch: Any = start.watch
            if mine is not None:
                watch = Iterations(model, start, [], (), there, mine.trees()[0], mine)
                start = watch.begin(start)
            trees = yield from grow(Model(start.rows, start.growing, watch))
            return trees if mine is None else watch.fit.trees

        yield from fit(number, trees_of)

    stats.regime, stats.reason = place.regime, place.reason
    with stats.phase("growth"), nullcontext() if saved is None else saved.saving():
        if isinstance(coded, CodedMatrix):
            boost_together(
                coded,
                [partial(fit_here, number) for number in range(sets.n_sets)],
                codes.book.thresholds,
                run.led if sets.n_sets == 1 else run,  # a thread that waits costs a twentieth
                run.n_threads,
                run.cancelled.is_set,
                min_rows=int(estimator.min_samples_leaf),
            )
        else:
            fits = [fit(number, _asked) for number in range(sets.n_sets)]
            _grow_elsewhere(fits, coded, codes.book.thresholds, stats)
    fitted = [model for model in models if not isinstance(model, Exception)]
    stats.counts["models_together"] += len(fitted)
    for model in fitted:
        model._fit_report = stats.report()
    told = table.told_of(plan, codes, sets)
    return FittedBoosts(models, codes.book, target, codes.rows, *told, offset)


def _offsets_of_part(
    n_values: int, y: Any, sample_weight: Any, init_score: Any, first_row: int
) -> np.ndarray:
    """`FittedBoosts.offset` of the rows of a partition."""
    return offsets_of(init_score, len(y), n_values)


def _asked(*about: Any) -> Fit:
    """Ask for the trees of a model, whoever grows them."""
    return (yield about)


def _grow_elsewhere(
    fits: Sequence[Fit], coded: CodedPartitions, thresholds: Any, stats: FitStatistics
) -> None:
    """Grow models on the workers of a cluster."""
    begun: list[tuple[Fit, Iterations]] = []
    models: list[SpreadModel] = []
    for fit in fits:
        for model, start, saved in islice(fit, 1):  # nothing, where it has failed
            scores = None if start.watch is None else start.watch.elsewhere()
            there = [] if saved is None else saved.trees()[0]
            heard = Iterations(model, start, [], (), None, there, saved)
            about = start.rows, start.growing, thresholds, start.begun.held, scores
            models.append(SpreadModel(coded, *about, heard.earlier, start.begun.elsewhere))
            begun.append((fit, heard))
    if not models:
        return
    errors: dict[int, Exception] = {}
    is_apart = coded.regime == "replicated" and len(models) > 1  # and begins anew
    grow = boost_apart if is_apart else boost_partitioned
    with closing(grow(models, stats)) as grown:
        for number, trees, told in grown:
            heard = begun[number][1]
            if isinstance(trees, Exception):
                errors[number] = trees
                continue
            if heard.watch is not None and told is not None:
                heard.watch.hear(told)
            if not is_apart and heard.n_heard < len(heard.earlier):
                heard.replay(heard.earlier)
            heard.replay(trees)
    for number, (fit, heard) in enumerate(begun):
        with suppress(StopIteration):  # they end with that
            if number in errors:
                fit.throw(errors[number])
            fit.send(heard.fit.trees)


def _target_of(
    model: BaseBoosting, target: Target, values: Any, sample_weight: Any, rows: np.ndarray
) -> Target:
    """What a fit makes of `y`, where the rows outside of a set weigh nothing.

    `target` is that of all rows, whose units depend on no row where all weigh the same.
    """
    if rows.all():
        return target
    are_alike = sample_weight is None and model.class_weight is None
    if are_alike and rows.any():
        return target.only(rows)
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
    return FitPlan(model).target(values, weight * rows)
