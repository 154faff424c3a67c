"""How a boosted model is fitted, and what a fitted one answers.

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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.sparse_positions import check_sparse
from dtrees.coding.tables import Table
from dtrees.coding.target import Target
from dtrees.core.data.rules import BoostingRules
from dtrees.core.data.scale import units_of
from dtrees.core.grow.boosting import BoostedRows, Growing, boost
from dtrees.core.losses.losses import Loss
from dtrees.core.model.tree import Forest
from dtrees.core.predict.binned import CodedRows
from dtrees.estimators.boosted_stopping import Held, Watch, is_wanted, scored, split
from dtrees.estimators.constraints import (
    ArrayLike,
    CallableObject,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RandomState,
    RealIn,
    check_parameters,
)
from dtrees.estimators.fit_plan import TablePlan
from dtrees.estimators.prediction import BoostedPredictor
from dtrees.inspection.importance import impurity_importances, normalized
from dtrees.parallel import is_lazy, map_rows, threaded


class BaseBoosting(BaseEstimator, ABC):
    """What boosted models of classes and of numbers share; not meant to be used itself."""

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "learning_rate": (RealIn(0, math.inf, "()"),),
        "max_iter": (IntegerIn(1),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "max_depth": (IntegerIn(1), Nothing()),
        "min_samples_leaf": (IntegerIn(1),),
        "l2_regularization": (RealIn(0, math.inf, "[)"),),
        "max_bins": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
        "early_stopping": (OneOf(("auto",)), InstanceOf(bool, "bool")),
        "scoring": (InstanceOf(str, "str"), CallableObject(), Nothing()),
        "validation_fraction": (IntegerIn(1), RealIn(0, 1, "()", integers=False), Nothing()),
        "n_iter_no_change": (IntegerIn(1),),
        "tol": (RealIn(0, math.inf, "[)"),),
        "random_state": (RandomState(),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }

    loss: str
    learning_rate: float
    max_iter: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2_regularization: float
    max_bins: int | None
    categorical_features: Any
    handle_unknown: str
    early_stopping: str | bool
    scoring: Any
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss that the parameters name."""

    @abstractmethod
    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        """`y` and the weights as integers."""

    @abstractmethod
    def _begin(self, target: Target, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Raw predictions before the first tree, float64 (n_values,), of rows that all count.

        y : float64 (n_rows,), as the loss wants it
        weight : float64 (n_rows,) or None
        """

    @abstractmethod
    def _learned(self, target: Target) -> dict[str, Any]:
        """Attributes that only classifiers or only regressors have."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`, but in memory.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. None: every row has weight one.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be; the estimator is then as it was.
        TypeError
            `X` is a Dask collection.

        Notes
        -----
        Costs one coding of the table and, for each tree, about O(rows x columns x log leaves).
        """
        check_parameters(
            self._constraints,
            {name: getattr(self, name) for name in self._constraints},
            type(self).__name__,
        )
        if any(map(is_lazy, (X, y, sample_weight))):
            raise TypeError(
                f"{type(self).__name__} fits tables in memory, and X, y or sample_weight is a Dask "
                "collection. Compute it before the fit; predictions may be lazy."
            )
        plan, run = TablePlan(self), threaded(self.n_jobs)
        loss = self._loss()
        table, values = plan.read(X, y)
        target = self._encode_target(values, sample_weight)
        seed = plan.seed()
        book, coded = plan.code(table, seed, run)
        assert isinstance(coded, CodedMatrix)  # the table is in memory
        of_loss = target.y if target.kind == "classification" else values
        of_loss = np.ascontiguousarray(of_loss, dtype=np.float64)
        counted = _counted(target)
        loss.check(of_loss[counted])  # before rows are held out: of the parts it is not asked
        train, held = self._sides(target, counted, seed)
        rows, growing = self._rows_of(target, of_loss, coded, loss, train)
        learned = {
            **self._learned(target),
            "n_features_in_": book.n_columns,
            "n_trees_per_iteration_": len(growing.initial),
            "do_early_stopping_": held is not None,
            "codebook_": book,
            "_initial": growing.initial,
            "_fit_loss": loss,
        }
        watch = None
        if held is not None:
            held_rows = self._held(X, values, of_loss, target, held)
            watch = self._watch(learned, held_rows, coded)
        trees = boost(
            rows, growing, book.thresholds, run, run.n_threads, run.cancelled.is_set, watch
        )
        scores = np.array([] if watch is None else watch.scores)
        is_apart = self.validation_fraction is not None
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(
            learned,
            forest_=Forest(tuple(trees)),
            train_score_=np.array([]) if is_apart else scores,
            validation_score_=scores if is_apart else np.array([]),
        )
        if book.feature_names is not None:
            self.feature_names_in_ = book.feature_names
        return self

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
        self,
        X: Any,
        y: np.ndarray,
        of_loss: np.ndarray,
        target: Target,
        rows: np.ndarray | slice,
    ) -> Held:
        """The rows that are scored."""
        units = units_of(target)
        weight = None if units is None else units[rows] * target.weight_unit
        return Held(X, np.arange(target.n_rows)[rows], y[rows], of_loss[rows], weight)

    def _watch(self, learned: dict[str, Any], held: Held, coded: CodedMatrix) -> Watch:
        """What scores each iteration on some rows."""
        model = copy.copy(self)
        model.__dict__.update(learned, forest_=Forest(()))
        predictor = model._predictor()
        score = scored(model, predictor, held)
        numbers = int(self.n_iter_no_change), float(self.tol)
        return Watch(predictor, CodedRows(coded), held.rows, score, *numbers)

    def _rows_of(
        self,
        target: Target,
        y: np.ndarray,
        coded: CodedMatrix,
        loss: Loss,
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
        initial = self._begin(own, y[rows], weight)
        rules = BoostingRules(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=int(self.min_samples_leaf),
            l2=float(self.l2_regularization),
            handle_unknown="majority" if self.handle_unknown == "majority" else "missing",
        )
        growing = Growing(loss, initial, rules, float(self.learning_rate), int(self.max_iter))
        chosen = None if isinstance(rows, slice) else rows.astype(np.uint32)
        return BoostedRows(coded, y, units, target.weight_unit, chosen), growing

    def _predictor(self) -> BoostedPredictor:
        return BoostedPredictor(
            self.codebook_,
            getattr(self, "classes_", None),
            type(self).__name__,
            self.forest_,
            self._initial,
            self._fit_loss,
        )

    def _answer(self, method: str, X: Any) -> Any:
        """The predictor's answer for a table; for a Dask collection a lazy one."""
        check_is_fitted(self)
        predictor = self._predictor()
        if is_lazy(X):
            return map_rows(predictor, method, X)
        return getattr(predictor, method)(X, threaded(self.n_jobs))

    def _stages(self, X: Any) -> tuple[BoostedPredictor, Iterator[np.ndarray]]:
        """The predictor, and raw predictions after each iteration; the table is checked at once."""
        check_is_fitted(self)
        check_sparse(X=X)
        run = threaded(self.n_jobs)
        predictor = self._predictor()
        table: Table = predictor.check(X, run)
        return predictor, predictor.staged(table, run)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class, or the number, of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The most likely class, of equal ones the first; or a number.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("predict", X)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit, in memory.

        Yields
        ------
        y : array of shape (n_rows,)
            As `predict` of a model of 1, 2, ... iterations.
        """
        predictor, stages = self._stages(X)
        return (predictor.labels_of(predictor.values_of(raw)) for raw in stages)

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        check_is_fitted(self)
        return len(self.forest_) // self.n_trees_per_iteration_

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in what splits take off the loss, float64 (n_features_in_,)."""
        check_is_fitted(self)
        of_trees = [impurity_importances(tree, normalize=False) for tree in self.forest_.trees]
        return normalized(np.sum(of_trees, axis=0))

    def __sklearn_is_fitted__(self) -> bool:
        return "forest_" in self.__dict__

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _counted(target: Target) -> np.ndarray | slice:
    """Rows that have a weight."""
    units = units_of(target)
    if units is None or (units > 0).all():
        return slice(None)
    return np.flatnonzero(units > 0)
