"""How a boosted model is fitted; what a fitted one answers stands in `fitted_boosting`.

    X ──────────▶ codebook, codes ─┐
    y, weights ─▶ numbers, codes ──┴──▶ boost ──▶ trees of steps ──▶ forest_
    loss ───────▶ its beginning ────────────────────────────────▶ _initial

Rows without weight are left out before anything is grown; of the others, early stopping holds some
out (`dtrees.estimators.boosted_stopping`). Attributes are set in one go when all
trees stand; a fit that fails leaves the estimator as it was.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from dtrees.callbacks import BoostingFit, Callback, ProgressBar, check_callbacks, listening
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import BoostingRules
from dtrees.core.data.scale import units_of
from dtrees.core.grow.boosting import BoostedRows, Growing
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.estimators.boosted_listening import (
    Iterations,
    Kept,
    check_goes_on,
    in_memory,
    kept_forest,
)
from dtrees.estimators.boosted_stopping import Held, Watch, is_wanted, scored, split
from dtrees.estimators.column_rules import directions_of, interactions_of
from dtrees.estimators.constraints import (
    COLUMN_RULES,
    ArrayLike,
    CallableObject,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RandomState,
    RealIn,
)
from dtrees.estimators.fit_plan import TablePlan
from dtrees.estimators.fitted_boosting import FittedBoosting
from dtrees.estimators.growing_forest import all_or_nothing
from dtrees.estimators.training import CodedTable, Start
from dtrees.estimators.tree_view import columns_with_missing, read_only
from dtrees.parallel import (
    REGIMES,
    BoostedWork,
    Choice,
    FitStatistics,
    LocalRunner,
    admitted,
    boost_in_place,
    codes_in_one_place,
    place_of_boosting,
    threaded,
)


class BaseBoosting(FittedBoosting):
    """What boosted models of classes and of numbers share; not meant to be used itself."""

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "learning_rate": (RealIn(0, math.inf, "()"),),
        "max_iter": (IntegerIn(1),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "max_depth": (IntegerIn(1), Nothing()),
        "min_samples_leaf": (IntegerIn(1),),
        "l2_regularization": (RealIn(0, math.inf, "[)"),),
        "subsample": (RealIn(0, 1, "(]"),),
        "max_features": (RealIn(0, 1, "(]", integers=False),),
        "max_bins": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        **COLUMN_RULES,
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
        "category_penalty": (RealIn(0, math.inf, "[)"),),
        "early_stopping": (OneOf(("auto",)), InstanceOf(bool, "bool")),
        "scoring": (InstanceOf(str, "str"), CallableObject(), Nothing()),
        "validation_fraction": (IntegerIn(1), RealIn(0, 1, "()", integers=False), Nothing()),
        "n_iter_no_change": (IntegerIn(1),),
        "tol": (RealIn(0, math.inf, "[)"),),
        "warm_start": (InstanceOf(bool, "bool"),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(REGIMES), Nothing()),
        "random_state": (RandomState(),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }

    loss: Any
    learning_rate: float
    max_iter: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2_regularization: float
    subsample: float
    max_features: float
    max_bins: int | None
    categorical_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    handle_unknown: str
    category_penalty: float
    early_stopping: str | bool
    scoring: Any
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    warm_start: bool
    verbose: int
    regime: str | None
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _loss(self) -> Loss | OwnLoss:
        """The loss that the parameters name."""

    @abstractmethod
    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        """`y` and the weights as integers."""

    @abstractmethod
    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        """Raw predictions before the first tree, float64 (n_values,), of rows that all count.

        y : float64 (n_rows,), as the loss wants it
        weight : float64 (n_rows,) or None
        """

    @abstractmethod
    def _learned(self, target: Target) -> dict[str, Any]:
        """Attributes that only classifiers or only regressors have."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        callbacks: Sequence[Callback] | None = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`. Codes of a Dask collection come to this process.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. None: every row has weight one.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every iteration in this thread, and may stop the fit; the iterations so far are
            then the model. In the replicated regime they hear when all iterations are grown.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be; the estimator is then as it was.
        TypeError
            `callbacks` are no callbacks, or a scorer asks for rows of a Dask collection.
        dtrees.exceptions.ClusterError
            A Dask cluster is asked for by ``regime``, or has the collection, and cannot be used.
        dtrees.exceptions.TableTooLargeError
            The codes of a Dask collection do not fit one place.

        Notes
        -----
        Costs one coding of the table and, for each tree, about O(rows x columns x log leaves).
        """
        self._check_parameters()
        callbacks, name = check_callbacks(callbacks), type(self).__name__
        place, stats = place_of_boosting(self.regime, name), FitStatistics()
        if self.verbose > 0:
            callbacks = [ProgressBar(), *callbacks]
        there = kept_forest(self)
        plan, run = TablePlan(self), threaded(self.n_jobs)
        X, y, sample_weight = admitted(X, {"y": y, "sample_weight": sample_weight}, stats)
        table, values = plan.read(X, y)
        target = self._encode_target(values, sample_weight)
        seed = plan.seed() if there is None else self._fit_seed
        with stats.phase("coding"):
            book, codes = plan.code(table, seed, run, stats)
            coded = codes_in_one_place(codes, name)
        kept = None
        if there is not None:
            check_goes_on(self, book, target.classes, self._loss())
            kept = Kept(there, self._initial, book, in_memory(table))
        given = CodedTable(X, values, book, coded, CodedRows(coded), seed)
        start = self._start(
            given, target, None if kept is None else (kept.initial, kept.raw_of(run))
        )
        watch, growing = start.watch, start.growing
        n_there = 0 if kept is None else self.n_iter_
        is_over = kept is not None and watch is not None and kept.shown_to(watch, run)
        growing = replace(
            growing,
            n_iterations=0 if is_over else self.max_iter - n_there,
            first=n_there,
            n_there=n_there * len(growing.initial),
        )
        fit = BoostingFit(
            self,
            range(n_there, n_there + growing.n_iterations),
            [] if kept is None else list(kept.forest.trees),
            len(growing.initial),
            [] if watch is None else watch.scores,
        )
        with all_or_nothing(self):
            iterations = Iterations(fit, callbacks, watch, growing, start.rows)
            return self._grow(start.learned, iterations, run, place, stats)

    def _start(
        self,
        given: CodedTable,
        target: Target,
        kept: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Start:
        """What a fit knows before its first tree; `kept` are raw predictions that it goes on from.

        kept : float64 (n_values,), and (n_values, n_rows)
            Before the first tree of all, and by the trees that are there.
        """
        loss, book = self._loss(), given.book
        of_loss = np.ascontiguousarray(
            target.y if target.kind == "classification" else given.y, dtype=np.float64
        )
        counted = _counted(target)
        loss.check(of_loss[counted])  # before rows are held out: of the parts it is not asked
        train, held = self._sides(target, counted, given.seed)
        rules = self._rules(book, target, given.seed)
        rows, growing = self._rows_of(target, of_loss, given.coded, loss, rules, train)
        growing = replace(growing, seed=given.seed)
        if kept is not None:
            rows = replace(rows, raw=kept[1])
            growing = replace(growing, initial=kept[0])
        learned = {
            **self._learned(target),
            "n_features_in_": book.n_columns,
            "n_trees_per_iteration_": len(growing.initial),
            "do_early_stopping_": held is not None,
            "codebook_": book,
            "_initial": growing.initial,
            "_fit_loss": growing.loss,
            "_fit_seed": given.seed,
        }
        if book.feature_names is not None:
            learned["feature_names_in_"] = book.feature_names
        watch = None
        if held is not None:
            watch = self._watch(learned, self._held(given, of_loss, target, held), given.walked)
        return Start(learned, rows, growing, watch)

    def _grow(
        self,
        learned: dict[str, Any],
        iterations: Iterations,
        run: LocalRunner,
        place: Choice,
        stats: FitStatistics,
    ) -> Any:
        """Grow the iterations that are missing, and become the model."""
        fit, growing, rows = iterations.fit, iterations.growing, iterations.rows
        with listening(fit, iterations.callbacks):
            trees = list(fit.trees)
            n_kept = len(trees)
            if growing.n_iterations > 0:
                work = BoostedWork(rows, growing, learned["codebook_"].thresholds)
                told = iterations if iterations.is_heard else None
                found = boost_in_place(work, place, run, told, iterations.ends, stats)
                trees += found if place.regime == "local" else iterations.replay(found)
            saw_missing = columns_with_missing(trees, rows.coded)
            if n_kept > 0:
                saw_missing = read_only(saw_missing | self._saw_missing)
            self._learn(learned, trees, fit.scores, saw_missing)
            self._fit_report = stats.report()
        return self

    def _learn(
        self,
        learned: dict[str, Any],
        trees: Sequence[Tree],
        scores: list[float],
        saw_missing: np.ndarray,
    ) -> None:
        """Become the model of these trees; scores are those of early stopping."""
        found, none = np.array(scores), np.array([])
        is_apart = self.validation_fraction is not None
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(
            learned,
            codebook_=learned["codebook_"].without_values(),  # the trees have their thresholds
            forest_=Forest(tuple(trees)),
            _saw_missing=saw_missing,
            train_score_=none if is_apart else found,
            validation_score_=found if is_apart else none,
        )

    def _sides(
        self, target: Target, counted: np.ndarray | slice, seed: int
    ) -> tuple[np.ndarray | slice, np.ndarray | slice | None]:
        """Rows that are grown from, and rows that are scored; None: no early stopping."""
        numbers = np.arange(target.n_rows)[counted]
        if not is_wanted(self.early_stopping, len(numbers)):
            return counted, None
        if self.validation_fraction is None:
            return counted, counted
        labels = target.y[counted] if target.kind == "classification" else None
        return split(numbers, labels, self.validation_fraction, seed)

    def _held(
        self, given: CodedTable, of_loss: np.ndarray, target: Target, rows: np.ndarray | slice
    ) -> Held:
        """The rows that are scored."""
        units = units_of(target)
        weight = None if units is None else units[rows] * target.weight_unit
        numbers = np.arange(target.n_rows)[rows]
        return Held(given.X, numbers, given.y[rows], of_loss[rows], weight)

    def _watch(self, learned: dict[str, Any], held: Held, walked: LeafLookup) -> Watch:
        """What scores each iteration on some rows."""
        model = copy.copy(self)
        model.__dict__.update(learned, forest_=Forest(()))
        predictor = model._predictor()
        score = scored(model, predictor, held, self.scoring)
        numbers = int(self.n_iter_no_change), float(self.tol)
        return Watch(predictor, walked, held.rows, score, *numbers)

    def _rules(self, book: CodeBook, target: Target, seed: int) -> BoostingRules:
        """The rules of all trees."""
        return BoostingRules(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=int(self.min_samples_leaf),
            l2=float(self.l2_regularization),
            category_penalty=float(self.category_penalty),
            handle_unknown="majority" if self.handle_unknown == "majority" else "missing",
            monotonic=directions_of(self.monotonic_cst, book, target),
            interactions=interactions_of(self.interaction_cst, book),
            max_features=float(self.max_features),
            seed=seed,
        )

    def _rows_of(
        self,
        target: Target,
        y: np.ndarray,
        coded: CodedMatrix,
        loss: Loss | OwnLoss,
        rules: BoostingRules,
        rows: np.ndarray | slice,
    ) -> tuple[BoostedRows, Growing]:
        """The rows that are grown from, and what is grown; `y` is as the loss wants it."""
        units = units_of(target)
        if units is not None:
            units = np.ascontiguousarray(units, dtype=np.int64)
        own = target if isinstance(rows, slice) else target.take(rows)
        weight = None if units is None else units[rows] * target.weight_unit
        if weight is not None and (weight == 1).all():
            units = weight = None  # rows without weight are not there
        initial = self._begin(loss, own, y[rows], weight)
        growing = Growing(
            loss.with_width(y[rows], initial[0], weight),
            initial,
            rules,
            float(self.learning_rate),
            int(self.max_iter),
            subsample=float(self.subsample),
        )
        chosen = None if isinstance(rows, slice) else rows.astype(np.uint32)
        return BoostedRows(coded, y, units, target.weight_unit, chosen), growing


def _counted(target: Target) -> np.ndarray | slice:
    """Rows that have a weight."""
    units = units_of(target)
    return slice(None) if units is None or (units > 0).all() else np.flatnonzero(units > 0)
