"""What a fitted estimator predicts with: trees, their codebook and the labels of the classes.

An estimator that is asked for something makes a predictor and passes the question on. A table in
memory is answered at once, a Dask collection block by block, through `dtrees.parallel`. A predictor
holds what was learned and no parameters, is never changed, and does not know where it runs::

    tree_ or forest_ --+
    codebook_ ---------+--> predictor --> leaves of rows (apply)
    classes_ ----------+              --> values of leaves: shares of classes, or a number
                                      --> labels, logarithms, paths

Prediction intervals of forests come from the rows out of their bags. A fit that predicts rows out
of its bags leaves how far off these predictions are, a number per row. Which trees have not seen a
row is drawn anew from the seed of the bags, when intervals are asked for. Nothing is fitted, and
the table is not needed::

    fit      y, out-of-bag predictions, spread of the trees ──▶ errors (n_rows,)
    asked    seed ──▶ bags: rows x trees ──┐
             X ──▶ values of the trees ────┴──▶ `dtrees.core.predict.intervals`
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from dtrees._forks import cached_property
from dtrees._warnings import warn
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import shares_by_output
from dtrees.coding.tables import Table
from dtrees.core.losses.outputs import AnyLoss, OutputLosses, losses_by_output
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.intervals import (
    Calibration,
    floor_of,
    least_rows,
    one_blas_thread,
    ranks,
    spread_in_nodes,
)
from dtrees.core.predict.packed_forest import FEW_ROWS
from dtrees.core.predict.raw import (
    apply,
    decision_path,
    forest_apply,
    forest_blocks,
    forest_values,
    raw_predictions,
    staged_raw_predictions,
)
from dtrees.inspection.shap import Explainer
from dtrees.parallel import Answer, Model, is_lazy, map_rows, threaded
from dtrees.typing import Runner, serial


@dataclass(eq=False)
class Predictor(Model):
    """What trees and forests answer alike."""

    book: CodeBook
    classes: Any  # an array; None: regression; of several targets, a list of an array for each
    estimator: str  # name for messages

    @abstractmethod
    def _leaves(self, table: Table, run: Runner) -> np.ndarray:
        """Leaves of a table's rows."""

    @abstractmethod
    def _values(self, table: Table, run: Runner) -> np.ndarray:
        """Shares of classes or a number for a table's rows, float64 (n_rows, n_classes or 1)."""

    @abstractmethod
    def _paths(self, leaves: np.ndarray) -> csr_matrix:
        """Nodes on the way to leaves."""

    @property
    @abstractmethod
    def _trees(self) -> tuple[Tree, ...]:
        """The trees."""

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        n_values = self._trees[0].n_values
        if self._trees[0].n_outputs > 1:
            return self._answer_of_outputs(method)
        if method in ("predict_proba", "predict_log_proba"):
            return Answer(np.empty((0, n_values)), columns=self.classes)
        if method in ("apply", "decision_path"):
            return self._answer_of_leaves(method)
        if self.classes is None:
            return Answer(np.empty(0))
        return Answer(np.empty(0, dtype=self.classes.dtype), labels=self.classes)

    def _answer_of_leaves(self, method: str) -> Answer:
        if method == "decision_path":
            n_nodes = sum(tree.node_count for tree in self._trees)
            return Answer(csr_matrix((0, n_nodes), dtype=np.int64))
        empty = self._leaves_of_none()
        return Answer(empty, columns=range(empty.shape[1]) if empty.ndim == 2 else None)

    def _answer_of_outputs(self, method: str) -> Answer:
        """As `answer`, of several targets; ValueError: what is answered is a list."""
        if method not in ("predict", "apply", "decision_path"):
            raise ValueError(
                f"{method} of several targets is a list of arrays, which no Dask collection is. "
                "Give it the partitions one by one, or a table in memory."
            )
        if method in ("apply", "decision_path"):
            return self._answer_of_leaves(method)
        empty = self.labels_of(np.empty((0, self._n_values)))
        return Answer(empty, columns=range(empty.shape[1]))

    @property
    def _n_values(self) -> int:
        """Numbers that are said of a row: shares of the classes of all targets, or theirs."""
        return self._trees[0].n_values

    def _leaves_of_none(self) -> np.ndarray:
        return np.empty(0, dtype=np.intp)

    def apply(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Leaves of the rows, intp (n_rows,) or (n_rows, n_trees)."""
        return self._leaves(self.check(X, run), run)

    def predict(self, X: Any, run: Runner = serial) -> np.ndarray:
        """A label or a number for every row; of equally likely labels, the first."""
        return self.labels_of(self._values(self.check(X, run), run))

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """Labels or numbers of rows or nodes, (n,), from their values (n, n_classes or 1).

        Of several targets, (n, n_outputs).
        """
        if self.classes is None:
            return values[:, 0] if values.shape[1] == 1 else values
        if isinstance(self.classes, list):
            return labels_of_outputs(self.classes, self._by_output(values))
        return self.classes.take(values.argmax(axis=1))

    def _by_output(self, values: np.ndarray) -> list[np.ndarray]:
        """Shares of the classes of each of several targets."""
        return shares_by_output(values, list(map(len, self.classes)))

    def predict_proba(self, X: Any, run: Runner = serial) -> Any:
        """Shares of the classes, float64 (n_rows, n_classes); of several targets, a list."""
        return self.shares_of(self._values(self.check(X, run), run))

    def shares_of(self, values: np.ndarray) -> Any:
        """Shares of classes, as `predict_proba`, of the values of all classes of all targets."""
        if isinstance(self.classes, list):
            return [np.ascontiguousarray(own) for own in self._by_output(values)]
        return values

    def predict_log_proba(self, X: Any, run: Runner = serial) -> Any:
        """Logarithms of the shares; -inf for 0."""
        return logarithms_of(self.predict_proba(X, run))

    def decision_path(self, X: Any, run: Runner = serial) -> csr_matrix:
        """Nodes that the rows pass, tree behind tree; csr (n_rows, nodes of all trees)."""
        return self._paths(self.apply(X, run))


def labels_of_outputs(classes: Sequence[np.ndarray], shares: Sequence[np.ndarray]) -> np.ndarray:
    """Likeliest labels, (n, n_outputs): objects where no type holds those of all targets."""
    columns = [own.take(each.argmax(axis=1)) for own, each in zip(classes, shares, strict=True)]
    return side_by_side(columns)


def logarithms_of(shares: Any) -> Any:
    """Logarithms of shares of classes, or of a list of them; -inf for 0."""
    with np.errstate(divide="ignore"):
        return [np.log(own) for own in shares] if type(shares) is list else np.log(shares)


def side_by_side(columns: list[np.ndarray]) -> np.ndarray:
    """Labels of several targets, (n, n_outputs): objects where no type holds all of them."""
    kinds = {"n" if column.dtype.kind in "biuf" else column.dtype.kind for column in columns}
    if len(kinds) == 1:
        return np.column_stack(columns)
    found = np.empty((len(columns[0]), len(columns)), dtype=object)
    for output, column in enumerate(columns):  # NumPy makes integers of dates
        found[:, output] = list(column) if column.dtype.kind in "mM" else column
    return found


@dataclass(eq=False)
class TreePredictor(Predictor):
    """The answers of one tree."""

    tree: Tree

    @property
    def _trees(self) -> tuple[Tree, ...]:
        return (self.tree,)

    def _leaves(self, table: Table, run: Runner) -> np.ndarray:
        return apply(self.tree, self.book, table, run)

    def _values(self, table: Table, run: Runner) -> np.ndarray:
        return self.tree.value_of(self._leaves(table, run))

    def _paths(self, leaves: np.ndarray) -> csr_matrix:
        return decision_path(self.tree, leaves)

    def spread(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Spread of the targets in the leaf of every row, float64 (n_rows,); of numbers.

        Of several targets (n_rows, n_outputs).
        """
        return spread_in_nodes(self.tree).take(self.apply(X, run), axis=0)

    def predict(self, X: Any, run: Runner = serial) -> np.ndarray:
        """A label or a number for every row; labels of nodes or of rows, whichever are fewer."""
        leaves = self.apply(X, run)
        by_row = len(leaves) < self.tree.node_count
        answers = self.labels_of(self.tree.value_of(leaves) if by_row else self.tree.value)
        return answers if by_row else answers.take(leaves, axis=0)


@dataclass(eq=False)
class ForestPredictor(Predictor):
    """The answers of many trees: the mean of their values."""

    forest: Forest

    @property
    def _trees(self) -> tuple[Tree, ...]:
        return self.forest.trees

    def _leaves(self, table: Table, run: Runner) -> np.ndarray:
        return forest_apply(self.forest, self.book, table, run)

    def _leaves_of_none(self) -> np.ndarray:
        return np.empty((0, len(self.forest)), dtype=np.intp)

    def _values(self, table: Table, run: Runner) -> np.ndarray:
        return forest_values(self.forest, self.book, table, run)

    def _paths(self, leaves: np.ndarray) -> csr_matrix:
        paths = [decision_path(tree, leaves[:, i]) for i, tree in enumerate(self.forest.trees)]
        return hstack(paths, format="csr")

    @cached_property
    def _every_tree(self) -> list[Calibration]:
        """What tells the spread of all trees, for each target."""
        trees, unseen = self._trees, np.ones((1, len(self.forest)), dtype=bool)
        floors = [
            sum(floor_of(tree, output=k) for tree in trees) / len(trees)
            for k in range(trees[0].n_outputs)
        ]
        return [Calibration(np.empty(0), unseen, floor=np.array([floor])) for floor in floors]

    def spread(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Spread of the trees for every row, float64 (n_rows,); of numbers.

        Of several targets (n_rows, n_outputs).
        """
        table, every = self.check(X, run), self._every_tree
        found = np.empty((table.n_rows, len(every)))
        for k, own in enumerate(every):

            def see(first: int, end: int, values: np.ndarray, k: int = k, own: Any = own) -> None:
                found[first:end, k] = own.spreads(values)[:, 0]

            of_trees = [tree.value[:, k] for tree in self._trees]
            forest_blocks(self.forest, self.book, table, run, see, of_trees)
        return found if len(every) > 1 else found[:, 0]


@dataclass(eq=False)
class BoostedPredictor(ForestPredictor):
    """The answers of a boosted model: the sum of the steps of its trees."""

    initial: np.ndarray  # raw predictions before the first tree, float64 (n_values,)
    loss: AnyLoss

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        if isinstance(self.loss, OutputLosses):
            is_number = self.classes is None and method == "decision_function"
            return self._answer_of_outputs("predict" if is_number else method)
        n_classes = 0 if self.classes is None else len(self.classes)
        if method in ("predict_proba", "predict_log_proba") or (
            method == "decision_function" and len(self.initial) > 1
        ):
            return Answer(np.empty((0, n_classes)), columns=self.classes)
        if method == "decision_function":
            return Answer(np.empty(0))
        return super().answer(method)

    def raw(
        self, table: Table, run: Runner = serial, offset: np.ndarray | None = None
    ) -> np.ndarray:
        """Raw predictions of a table's rows, float64 (n_rows, n_values); `offset` has this form."""
        return raw_predictions(self.forest, self.initial, self.book, table, run, offset)

    def staged(
        self, table: Table, run: Runner = serial, offset: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """The same after each iteration."""
        yield from staged_raw_predictions(self.forest, self.initial, self.book, table, run, offset)

    def first(self, n_trees: int) -> BoostedPredictor:
        """The same of the first trees."""
        return replace(self, forest=Forest(self.forest.trees[:n_trees]))

    def _values(self, table: Table, run: Runner) -> np.ndarray:
        return self.values_of(self.raw(table, run))

    def of_raw(self, method: str, raw: np.ndarray) -> Any:
        """What a method answers of raw predictions."""
        if method == "decision_function":
            return self.scores_of(raw)
        values = self.values_of(raw)
        if method == "predict":
            return self.labels_of(values)
        shares = self.shares_of(values)
        return logarithms_of(shares) if method == "predict_log_proba" else shares

    def begun(self, method: str, X: Any, rows: Any, run: Runner = serial) -> Any:
        """A method's answer for rows that begin with raw predictions."""
        table = self.check(X, run)
        offset = offsets_of(rows, table.n_rows, len(self.initial))
        return self.of_raw(method, self.raw(table, run, offset))

    def values_of(self, raw: np.ndarray) -> np.ndarray:
        """Shares of classes or a number of raw predictions, float64 (n_rows, n_classes or 1).

        Of several targets those of all of them, side by side.
        """
        losses = losses_by_output(self.loss, raw.shape[1])
        if self.classes is None:
            found = [
                loss.predictions(np.ascontiguousarray(raw[:, at.start])) for loss, at in losses
            ]
            return np.stack(found, axis=1)
        classes = self.classes if isinstance(self.classes, list) else [self.classes]
        shares = [
            loss.shares(raw[:, at]) if len(own) > 1 else np.ones((len(raw), 1))
            for (loss, at), own in zip(losses, classes, strict=True)
        ]
        return shares[0] if len(shares) == 1 else np.hstack(shares)

    def scores_of(self, raw: np.ndarray) -> np.ndarray:
        """Raw predictions as users get them, float64 (n_rows,) or (n_rows, n_classes)."""
        return raw[:, 0] if raw.shape[1] == 1 else np.ascontiguousarray(raw)

    def decision_function(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Raw predictions, float64 (n_rows,) or (n_rows, n_classes)."""
        return self.scores_of(self.raw(self.check(X, run), run))

    @property
    def _n_values(self) -> int:
        n_classes = [] if self.classes is None else map(len, self.classes)
        return sum(n_classes) or len(self.initial)


def offsets_of(init_score: Any, n_rows: int, n_values: int, name: str = "init_score") -> np.ndarray:
    """Raw predictions that rows begin with, float64 (n_rows, n_values).

    ValueError: they are no numbers, or of another shape.
    """
    found = np.asarray(init_score)
    shape = (n_rows,) if n_values == 1 else (n_rows, n_values)
    if found.shape not in (shape, (n_rows, n_values)):
        raise ValueError(f"{name} must have the shape {shape}. Got {found.shape} instead.")
    if found.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers. Got an array of {found.dtype} instead.")
    found = found.reshape(n_rows, n_values).astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} contains NaN or infinity. Give a finite number for each row.")
    return found


def answered(predictor: Model | Explainer, method: str, X: Any, n_jobs: int | None) -> Any:
    """A predictor's answer for a table; for a Dask collection a lazy one."""
    is_valid = n_jobs is None or (type(n_jobs) is int and n_jobs > 0)
    if is_valid and type(X) is np.ndarray and X.ndim == 2 and len(X) <= FEW_ROWS:
        return getattr(predictor, method)(X)  # not worth the question how many threads there are
    if is_lazy(X):
        return map_rows(predictor, method, X)
    return getattr(predictor, method)(X, threaded(n_jobs))


ENDS = ("lower", "upper")  # columns in a data frame


def scaled_errors(
    y: Any, mean: np.ndarray, spread: np.ndarray, counts: np.ndarray | None = None
) -> np.ndarray:
    """How far targets are from predictions, in units of a spread; float64, as `mean`.

    inf: every bag has the row. nan: the row has no weight, and does not calibrate. `counts` says
    which rows have one; None: all.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        errors: np.ndarray = (np.asarray(y).reshape(mean.shape).astype(np.float64) - mean) / spread
    errors[~np.isfinite(errors)] = np.inf
    if counts is not None:
        errors[~counts] = np.nan
    return errors


def warn_of_infinite(errors: np.ndarray, confidence: float, apart: bool) -> None:
    """Warn where all ends are infinite, as too few rows calibrate; `apart` is as for `ranks`."""
    n, known = len(errors), np.count_nonzero(np.isfinite(errors))
    high = ranks(confidence, n, apart)[1]
    if high > known:
        more = " Rows that are in every bag have none: fit more trees." if known < n else ""
        warn(
            f"All ends of intervals are infinite: confidence={confidence} needs the errors of "
            f"{max(high, least_rows(confidence, apart))} rows, and there are {known}.{more}"
        )


@dataclass(eq=False)
class IntervalPredictor(ForestPredictor):
    """The answers of a forest, and intervals."""

    bags: Bags
    errors: np.ndarray  # as `scaled_errors`
    confidence: float
    is_scaled: bool = True  # not in models of older versions

    @classmethod
    def of(
        cls, predictor: ForestPredictor, learned: Mapping[str, Any], confidence: float
    ) -> IntervalPredictor:
        """What a forest predicts intervals with; `learned` is what it has learned.

        Raises ValueError where it has not predicted the rows out of its bags.
        """
        errors = learned.get("_oob_scaled_errors", learned.get("_oob_errors"))
        name = learned.get("_fit_bags")
        if errors is None or name is None:
            raise ValueError(
                f"prediction_interval of this {predictor.estimator} needs the errors of the rows "
                "out of its bags. Fit it with bootstrap=True and oob_score=True. Intervals of any "
                "regressor: call cross_validate(..., return_estimator=True) of "
                "dtrees.model_selection, and the prediction_interval of its result."
            )
        bags = Bags.of_digest(name, learned.get("_oob_keys"), learned.get("_oob_means"))
        if bags.n_rows != len(errors):
            raise ValueError("The bags of this forest are not of the rows that it was fitted to.")
        forest = predictor.forest
        return cls(
            *(predictor.book, None, predictor.estimator, forest, bags, errors, float(confidence)),
            is_scaled="_oob_scaled_errors" in learned,
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The rows that have a weight, and out of which bags they are; O(n_rows x n_trees)."""
        counts = ~np.isnan(self.errors)
        unseen = np.zeros((len(counts), len(self.forest)), dtype=bool)
        floor = np.zeros(len(counts))
        for number in range(len(self.forest)):
            times = self.bags.multiplicity(number, None if counts.all() else counts)
            rows = self.bags.rows_out(times)
            unseen[rows, number] = True
            floor[rows] += floor_of(self.forest.trees[number])  # in the order of the fit
        floor = (floor / np.maximum(unseen.sum(axis=1), 1))[counts]
        least = floor if self.is_scaled else None
        return Calibration(self.errors[counts], unseen[counts], floor=least)

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        if method == "prediction_interval":
            return Answer(np.empty((0, 2)), columns=ENDS)
        return super().answer(method)

    def prediction_interval(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Lower and upper ends of every row, float64 (n_rows, 2)."""
        table = self.check(X, run)
        found = np.empty((table.n_rows, 2))
        calibration = self.calibration

        def see(first: int, end: int, values: np.ndarray) -> None:
            found[first:end] = calibration.ends(values, self.confidence)

        with one_blas_thread():  # blocks are what has threads
            forest_blocks(self.forest, self.book, table, run, see)
        return found


@dataclass(eq=False)
class IntervalsOfTargets(Model):
    """Intervals of a forest of several targets."""

    of_targets: list[IntervalPredictor]

    def answer(self, method: str) -> Answer:
        """Type and dtype of the answer."""
        return Answer(np.empty((0, len(self.of_targets), 2)))

    def check_columns(self, names: np.ndarray | None, n_columns: int | None) -> None:
        """Raise when a table of these columns is not one of those that were fitted."""
        self.of_targets[0].check_columns(names, n_columns)

    def of_block(self, method: str, block: Any, rows: Any = None) -> np.ndarray:
        """The ends for the rows of a block."""
        return np.stack([own.of_block(method, block) for own in self.of_targets], axis=1)

    def prediction_interval(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Lower and upper ends of every row, float64 (n_rows, n_outputs, 2)."""
        return np.stack([own.prediction_interval(X, run) for own in self.of_targets], axis=1)
