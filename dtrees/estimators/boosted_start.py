"""What a fit of a boosted model knows before its first tree.

    codebook, codes ─┬─▶ rules for columns ────────────────────────────────┐
    target, weights ─┴─▶ rows that are grown from, rows that are scored ───┴──▶ Start
    parameters ──▶ loss, where it begins ──────────────────────────────────┘

A fit by itself and the fits of several training sets (`boosted_sets`) begin here, with the same
steps. Rows without weight are not there: none of them is counted, held out or asked by the loss.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from dtrees.coding.category_warnings import nearly_ids
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.constraints import (
    COLUMN_RULES,
    ArrayLike,
    Boolean,
    CallableObject,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RandomState,
    RealIn,
)
from dtrees.core.data.rules import BoostingRules
from dtrees.core.data.scale import units_of
from dtrees.core.grow.boosting import BoostedRows, Growing
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.core.model.tree import Forest
from dtrees.core.predict.binned import LeafLookup, Walked
from dtrees.estimators.boosted_stopping import Held, Watch, is_wanted, scored, split
from dtrees.estimators.boosted_validation import GivenRows
from dtrees.estimators.column_rules import directions_of, interactions_of
from dtrees.estimators.fitted_boosting import FittedBoosting


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table that boosted models are fitted to.

    Attributes
    ----------
    X : table
        As given.
    y : array (n_rows,)
        As read.
    book : CodeBook
    coded : CodedMatrix
    walked : LeafLookup
        The same codes, ready to be walked.
    seed : int
        Of draws.
    """

    X: Any
    y: np.ndarray
    book: CodeBook
    coded: CodedMatrix
    walked: LeafLookup
    seed: int


@dataclass(frozen=True, eq=False)
class Sides:
    """What a loss learns from, and what it is scored on: known before the table is coded.

    Attributes
    ----------
    loss : Loss or OwnLoss
    y : float64 or uint8 (n_rows,)
        Targets of all rows, as the loss wants them.
    train : intp (n,) or slice
        Rows that are grown from.
    held : intp (n,), slice or None
        Rows of the table that are scored; None: none of them.
    """

    loss: Loss | OwnLoss
    y: np.ndarray
    train: np.ndarray | slice
    held: np.ndarray | slice | None


@dataclass(frozen=True, eq=False)
class Start:
    """What a fit of a boosted model knows before its first tree.

    Attributes
    ----------
    learned : dict
        Attributes of the fitted model, but for those that depend on its trees.
    rows : BoostedRows
    growing : Growing
    watch : Watch or None
        Scores held-out rows.
    """

    learned: dict[str, Any]
    rows: BoostedRows
    growing: Growing
    watch: Watch | None


class StartingBoosting(FittedBoosting):
    """Parameters of boosted models, and what they make of a table; not meant to be used itself."""

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "learning_rate": (RealIn(0, math.inf, "()"),),
        "max_iter": (IntegerIn(1),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "max_depth": (IntegerIn(1), Nothing()),
        "min_samples_leaf": (IntegerIn(1),),
        "min_child_weight": (RealIn(0, math.inf, "[)"),),
        "l2_regularization": (RealIn(0, math.inf, "[)"),),
        "subsample": (RealIn(0, 1, "(]"),),
        "max_features": (RealIn(0, 1, "(]", integers=False),),
        "max_bins": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        **COLUMN_RULES,
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
        "category_penalty": (RealIn(0, math.inf, "[)"),),
        "early_stopping": (OneOf(("auto",)), Boolean()),
        "scoring": (InstanceOf(str, "str"), CallableObject(), Nothing()),
        "validation_fraction": (IntegerIn(1), RealIn(0, 1, "()", integers=False), Nothing()),
        "n_iter_no_change": (IntegerIn(1),),
        "tol": (RealIn(0, math.inf, "[)"),),
        "use_best_model": (Boolean(),),
        "warm_start": (Boolean(),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(("local", "replicated"), refused_later=("partitioned",)), Nothing()),
        "random_state": (RandomState(),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }

    loss: Any
    learning_rate: float
    max_iter: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    min_child_weight: float
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
    use_best_model: bool
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

        y : float64 or uint8 (n_rows,), as the loss wants it
        weight : float64 (n_rows,) or None
        """

    @abstractmethod
    def _learned(self, target: Target) -> dict[str, Any]:
        """Attributes that only classifiers or only regressors have."""

    def _sides(self, y: np.ndarray, target: Target, seed: int, shown: bool = False) -> Sides:
        """Rows that are grown from and rows that are scored, which are others with `shown`.

        Before the table is coded: what cannot be fitted is told at once, and a draw of held-out
        rows takes more memory than codes.
        """
        loss, counted = self._loss(), _counted(target)
        of_loss = _as_the_loss_wants(loss, target, y)
        loss.check(of_loss[counted])  # before rows are held out: of the parts it is not asked
        n_counted = target.n_rows if isinstance(counted, slice) else len(counted)
        if shown or not is_wanted(self.early_stopping, n_counted):
            return Sides(loss, of_loss, counted, None)
        if self.validation_fraction is None:
            return Sides(loss, of_loss, counted, counted)
        labels = target.y[counted] if target.kind == "classification" else None
        numbers = np.arange(target.n_rows)[counted]
        return Sides(loss, of_loss, *split(numbers, labels, self.validation_fraction, seed))

    def _start(
        self,
        given: CodedTable,
        target: Target,
        sides: Sides,
        kept: tuple[np.ndarray, np.ndarray] | None = None,
        shown: GivenRows | None = None,
    ) -> Start:
        """What a fit knows before its first tree; `kept` are raw predictions that it goes on from.

        With `shown` these rows are scored, and all rows of the table are grown from.

        kept : float64 (n_values,), and (n_values, n_rows)
            Before the first tree of all, and by the trees that are there.
        """
        loss, of_loss, book, held = sides.loss, sides.y, given.book, sides.held
        rules = self._rules(given, target)
        rows, growing = self._rows_of(target, of_loss, given.coded, loss, rules, sides.train)
        growing = replace(growing, seed=given.seed)
        if kept is not None:
            rows = replace(rows, raw=kept[1])
            growing = replace(growing, initial=kept[0])
        learned = {
            **self._learned(target),
            "n_features_in_": book.n_columns,
            "n_trees_per_iteration_": len(growing.initial),
            "do_early_stopping_": shown is not None or held is not None,
            "codebook_": book,
            "_initial": growing.initial,
            "_fit_loss": growing.loss,
            "_fit_seed": given.seed,
        }
        if book.feature_names is not None:
            learned["feature_names_in_"] = book.feature_names
        watch = None
        if shown is not None:
            classes = target.classes if target.kind == "classification" else None
            own = shown.read(book, classes, loss, type(self).__name__)
            watch = self._watch(learned, *own)
        elif held is not None:
            watch = self._watch(learned, self._held(given, of_loss, target, held), given.walked)
            watch.is_apart = self.validation_fraction is not None
        return Start(learned, rows, growing, watch)

    def _held(
        self, given: CodedTable, of_loss: np.ndarray, target: Target, rows: np.ndarray | slice
    ) -> Held:
        """The rows that are scored."""
        units = units_of(target)
        weight = None if units is None else units[rows] * target.weight_unit
        numbers = np.arange(target.n_rows)[rows]
        return Held(given.X, numbers, given.y[rows], of_loss[rows], weight)

    def _watch(self, learned: dict[str, Any], held: Held, walked: Walked) -> Watch:
        """What scores each iteration on some rows."""
        model = copy.copy(self)
        model.__dict__.update(learned, forest_=Forest(()))
        predictor = model._predictor()
        score = scored(model, predictor, held, self.scoring)
        numbers = int(self.n_iter_no_change), float(self.tol)
        return Watch(predictor, walked, held.rows, score, *numbers)

    def _rules(self, given: CodedTable, target: Target) -> BoostingRules:
        """The rules of all trees."""
        book, barred = given.book, nearly_ids(given.book, given.coded.n_rows)
        return BoostingRules(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=int(self.min_samples_leaf),
            min_child_weight=float(self.min_child_weight),
            l2=float(self.l2_regularization),
            category_penalty=float(self.category_penalty),
            handle_unknown="majority" if self.handle_unknown == "majority" else "missing",
            monotonic=directions_of(self.monotonic_cst, book, target),
            interactions=interactions_of(self.interaction_cst, book, barred),
            max_features=float(self.max_features),
            seed=given.seed,
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


def _as_the_loss_wants(loss: Loss | OwnLoss, target: Target, y: np.ndarray) -> np.ndarray:
    """Targets of all rows; classes stay the bytes that they are where the loss is one of ours."""
    if target.kind != "classification":
        return np.ascontiguousarray(y, dtype=np.float64)
    if target.y.dtype == np.uint8 and isinstance(loss, Loss):
        return target.y
    return target.y.astype(np.float64)


def _counted(target: Target) -> np.ndarray | slice:
    """Rows that have a weight."""
    units = units_of(target)
    return slice(None) if units is None or (units > 0).all() else np.flatnonzero(units > 0)
