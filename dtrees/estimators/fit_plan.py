"""A fit as a plan: what an estimator's parameters say of it, before any table is read.

Estimators are fitted by their plans. So are the models of a cross-validation or a search, which
never look inside an estimator::

    estimator ──FitPlan.of──▶ parameters checked
    X, y      ──read────────▶ table, values
    table     ──code────────▶ CodeBook, codes ──┐
    values    ──────────────▶ Target ───────────┴──resolve──▶ Encoded
    Encoded, in a Training ──_fit_coded──▶ fitted estimators

A fit of many models to one table calls these steps one by one, and keeps what two fits have in
common (`dtrees.estimators.training_sets`). A fit of one model calls `encode`.

`dtrees.core.data.rules.GrowthRules` knows plain numbers only. What 0.1 or "sqrt" means is decided
here, as scikit-learn decides it: an integer is a number and a float is a share. Shares of columns
are rounded down, and are numbers from here on. Shares of rows are rounded up, once the rows of a
training set are known (`dtrees.core.membership.shares`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dtrees._forks import cached_property
from dtrees._warnings import warn
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.column_types import nearly_ids, warn_of_categories
from dtrees.coding.labels import is_missing
from dtrees.coding.outputs import columns_of_outputs, raw_by_output
from dtrees.coding.tables import Table, read_table
from dtrees.coding.target import (
    Ask,
    GivenRows,
    SpreadTarget,
    Target,
    TargetUnits,
    check_finite,
    cut_weights,
    missing_label,
    refuse_masked,
    units_of_cuts,
)
from dtrees.core.data.criteria import OF_USER, OF_USER_NUMBERS
from dtrees.core.data.rules import GrowthRules
from dtrees.core.membership.shares import Shares, rows_of_share
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.criteria import Criterion, score_of_user
from dtrees.estimators.column_rules import directions_of, interactions_of, units_of_weights
from dtrees.parallel import (
    CodedPartitions,
    FitStatistics,
    LazyColumn,
    LocalRunner,
    PartitionedRows,
    PartitionedTable,
    RowColumns,
    SavedTrees,
    check_table,
    computed,
    encode_partitions,
    is_lazy,
)
from dtrees.parallel.memory import Least

if TYPE_CHECKING:
    from dtrees.estimators.base import BaseModel

MOST_ROWS = 2**31 - 1  # a table has no more, so no limit needs to be larger


def least_rows(limit: int | float) -> int:
    """A least number of rows; 1 where it is a share, which `Encoded.shares` has."""
    return min(int(limit), MOST_ROWS) if isinstance(limit, Integral) else 1


def rows_of_split(limit: int | float, n_rows: int) -> int:
    """Least number of rows of a node that is split, in a training set of `n_rows` that count."""
    number = isinstance(limit, Integral)
    return max(2, least_rows(limit) if number else rows_of_share(limit, n_rows))


def depth_of(max_depth: int | None, max_leaf_nodes: int | None) -> int:
    """Greatest depth worth growing: a tree of k leaves is at most k - 1 deep."""
    limits = [MOST_ROWS]
    if max_depth is not None:
        limits.append(int(max_depth))
    if max_leaf_nodes is not None:
        limits.append(int(max_leaf_nodes) - 1)
    return min(limits)


def node_bytes(n_rows: int, n_classes: int, depth: int | None, least: int) -> int:
    """Bytes of the weights of the classes in all nodes of a tree, at most, while it grows.

    `depth` is the greatest one, and `least` the least number of rows of a leaf.
    """
    leaves = max(1, min(n_rows // max(1, least), 2 ** min(62 if depth is None else depth, 62)))
    return 8 * n_classes * 2 * leaves


def columns_per_split(max_features: int | float | str | None, n_columns: int) -> int:
    """Number of columns drawn at each node, at most all."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, Integral):
        return min(int(max_features), n_columns)
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_columns)))
    if max_features == "log2":
        return max(1, int(np.log2(n_columns)))
    assert not isinstance(max_features, str)
    return max(1, int(max_features * n_columns))


@dataclass(frozen=True)
class Encoded:
    """A training table as codes, and the rules of the growth of trees."""

    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    target: Target
    seed: int
    rules: GrowthRules
    shares: Shares | None  # limits of the rules that depend on the rows of a set; None: none do
    max_features: int

    @property
    def table(self) -> tuple[CodeBook, CodedMatrix | CodedPartitions, Target, int]:
        """What trees are functions of, beside the rules."""
        return self.book, self.coded, self.target, self.seed


@dataclass(frozen=True, eq=False)
class Training:
    """A coded table, and where and for whom models are fitted to it."""

    encoded: Encoded
    y: Any  # the target as given, for out-of-bag scores
    run: LocalRunner
    advance: Callable[[int], object] = lambda n_trees: None  # hears of trees that have come
    stats: FitStatistics = field(default_factory=FitStatistics)  # told what a fit did
    saved: SavedTrees | None = None  # of the sets that are fitted

    @property
    def listeners(self) -> dict[str, Any]:
        """Who hears of trees that come, by their names in `dtrees.parallel.grow_sets`."""
        return {"advance": self.advance, "stats": self.stats, "saved": self.saved}

    def of_sets(self, numbers: Sequence[int]) -> Training:
        """The training of some of the sets."""
        return self if self.saved is None else replace(self, saved=self.saved.some(numbers))

    def saving(self) -> AbstractContextManager[None]:
        """Save trees that come in this block."""
        return nullcontext() if self.saved is None else self.saved.saving()

    @cached_property
    def coded_rows(self) -> LeafLookup:
        """The table, ready to be walked."""
        return rows_of(self.encoded.coded, self.stats)


def rows_of(coded: CodedMatrix | CodedPartitions, stats: FitStatistics | None = None) -> LeafLookup:
    """Codes, ready to be walked, wherever they are; what is lost then is counted."""
    return CodedRows(coded) if isinstance(coded, CodedMatrix) else PartitionedRows(coded, stats)


A_MODEL_PER_TARGET = (
    "Fit a model per column of y, for example with sklearn.multioutput.MultiOutputClassifier or "
    "MultiOutputRegressor."
)
OF_EACH = (
    "cross_validate and searches of tables in memory do. Others are called with a column of y each."
)
MANY_CLASSES = 500
MANY_BYTES = 2**30

LARGEST_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class FitPlan:
    """How an estimator is fitted: how its table is read and coded, and what trees grow by."""

    estimator: Any  # its parameters have been checked; not changed

    @classmethod
    def of(cls, estimator: BaseModel) -> FitPlan:
        """The plan of a clone of an estimator; raises InvalidParameterError."""
        estimator._check_parameters()
        return cls(estimator._unfitted())

    @property
    def criterion(self) -> str:
        """The core's name of the criterion."""
        own = self.estimator.criterion
        if isinstance(own, Criterion):
            return OF_USER if "classes_" in self.estimator._learns else OF_USER_NUMBERS
        return self.estimator._criteria[own]

    @property
    def n_trees(self) -> int:
        """Of a fit."""
        return getattr(self.estimator, "n_estimators", 1)

    @property
    def class_weight(self) -> Any:
        """Class weights of the target, which a fit makes of the rows that it has."""
        own = self.estimator.class_weight
        # bags are drawn by weight: balanced in the table is balanced in each of them
        return "balanced" if own == "balanced_subsample" else own

    def seed(self) -> int:
        """A seed from the random state; a state that is given draws once."""
        state = self.estimator.random_state
        return _seed_of(int(state)) if isinstance(state, Integral) else _draw(state)

    def read(self, X: Any, y: Any) -> tuple[Table | PartitionedTable, Any]:
        """A table, and a target of as many rows: a list of columns, where there are several.

        ValueError: one is not what it should be. Of classifiers, numbers that are no labels are
        refused, too.
        """
        own = self.estimator
        columns = columns_of_outputs(y) if own._takes_outputs else None
        if columns is not None:
            asked = {} if own._adds_steps else self._asked_of_outputs(X)
            return self.read_outputs(X, columns, asked), columns
        table = X if isinstance(X, PartitionedTable) else read_table(X)
        reader = f"this validation of {type(own).__name__}" if own._takes_outputs else None
        values = one_target(y, type(own).__name__, reader)
        if len(values) != table.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {table.n_rows} "
                f"rows, y has {len(values)} values. Give one value of y per row of X."
            )
        if values.dtype.kind == "f" and "classes_" in self.estimator._learns:
            check_finite(values, "y")
            check_classification_targets(values)
        return table, values

    def target(self, values: Any, sample_weight: Any) -> Target:
        """What `read` says of y, and the weights, as integers."""
        own = self.estimator
        encode = own._encode_outputs if isinstance(values, list) else own._encode_target
        found: Target = encode(values, sample_weight)
        return found

    def read_outputs(
        self, X: Any, columns: Sequence[Any], asked: Mapping[str, bool]
    ) -> Table | PartitionedTable:
        """A table for several targets.

        ValueError: `asked` has something that does not take these yet, or lengths differ.
        """
        own = self.estimator
        refused = [what for what, is_asked in asked.items() if is_asked]
        if refused:
            raise ValueError(
                f"y has {len(columns)} columns, and {refused[0]} does not support several targets "
                f"yet. {A_MODEL_PER_TARGET}"
            )
        table = X if isinstance(X, PartitionedTable) else read_table(X)
        n_rows = len(columns[0])
        if n_rows != table.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {table.n_rows} "
                f"rows, y has {n_rows} values. Give one row of y per row of X."
            )
        if "classes_" in own._learns:
            for values in map(np.asarray, columns):
                if values.dtype.kind == "f":
                    check_finite(values, "y")
                    check_classification_targets(values)
            if (own.oob_score and not own._adds_steps) or own.oob_tol is not None:
                _check_indicator(columns)
        return table

    def _asked_of_outputs(self, X: Any) -> dict[str, bool]:
        """What trees and forests do not do with several targets, and whether it is asked for."""
        own = self.estimator
        return {
            "monotonic_cst (Monotonicity constraints are not supported with multiple output)": (
                own.monotonic_cst is not None
            ),
        }

    def code(
        self,
        table: Table | PartitionedTable,
        seed: int,
        run: LocalRunner,
        stats: FitStatistics | None = None,
        sample_weight: Any = None,
        target: Target | None = None,
    ) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
        """The table as codes; rows count by their weights where columns are cut.

        `sample_weight` are weights, or `RowsElsewhere`. `target` is what is known of its classes.
        """
        how: dict[str, Any] = {
            "categorical_features": self.estimator.categorical_features,
            "max_bins": self.estimator.max_bins,
            "handle_unknown": self.estimator.handle_unknown,
            "takes_infinities": self.estimator._adds_steps,
            "seed": seed,
            "weights": None,
        }
        if isinstance(sample_weight, RowsElsewhere):
            how["weights"] = sample_weight.cut_weights()
        elif self.estimator.max_bins is not None and sample_weight is not None:
            how["weights"] = cut_weights(sample_weight, table.n_rows)
        if isinstance(table, PartitionedTable):
            # codes are where trees grow
            place = _place_of(self.estimator, 1 if target is None else sum(raw_by_output(target)))
            book, coded = encode_partitions(table, **how, **place, stats=stats)
        else:
            book, coded = CodeBook.fit_encode(table, **how, run=run)
        if book.categories:
            warn_of_categories(book, coded.n_rows)
        return book, coded

    def resolve(
        self, book: CodeBook, coded: CodedMatrix | CodedPartitions, target: Target, seed: int
    ) -> Encoded:
        """Codes and target, with the rules that the parameters are for them."""
        own = self.estimator
        barred = nearly_ids(book, coded.n_rows) if book.categories else {}
        n_columns = max(1, book.n_columns - len(barred))
        of_tree = math.ceil(getattr(own, "colsample_bytree", 1.0) * n_columns)
        max_features = columns_per_split(own.max_features, of_tree)
        split, leaf = own.min_samples_split, own.min_samples_leaf
        shares: Shares | None = Shares(
            min_samples_split=0.0 if isinstance(split, Integral) else float(split),
            min_samples_leaf=0.0 if isinstance(leaf, Integral) else float(leaf),
            min_weight_leaf=float(own.min_weight_fraction_leaf),
        )
        numbers = GrowthRules(
            criterion=self.criterion,
            score=score_of_user(own.criterion) if isinstance(own.criterion, Criterion) else None,
            max_depth=depth_of(own.max_depth, own.max_leaf_nodes),
            min_samples_split=max(2, least_rows(split)),
            min_samples_leaf=least_rows(leaf),
            min_impurity_decrease=float(own.min_impurity_decrease),
            max_features=max_features if max_features < of_tree else None,
            columns_by_tree=of_tree if of_tree < n_columns else None,
            random_splits=own.splitter == "random",
            random_ties=own._draws_ties or own.random_state is not None,
            category_penalty=float(own.category_penalty),
            in_bags=own.bootstrap,
            seed=seed,
            handle_unknown="majority" if own.handle_unknown == "majority" else "missing",
            monotonic=directions_of(own.monotonic_cst, book, target),
            interactions=interactions_of(own.interaction_cst, book, barred),
            column_weights=units_of_weights(own.feature_weights, book),
        )
        if shares == Shares():
            shares = None
        rules = numbers if shares is None else shares.rules(numbers, target)
        if target.n_classes >= MANY_CLASSES:
            _warn_of_many_classes(target, rules)
        return Encoded(book, coded, target, seed, rules, shares, max_features)

    def encode(
        self,
        X: Any,
        columns: tuple[Any, Any],
        seed: int,
        run: LocalRunner,
        stats: FitStatistics | None = None,
    ) -> Encoded:
        """Code a table and its target (`columns`: y and weights), and resolve the rules."""
        target: Target
        y, sample_weight = columns
        if is_lazy(y):
            rows = RowsElsewhere.of(
                self.estimator, X, {"y": y, "sample_weight": sample_weight}, stats
            )
            book, coded = self.code(X, seed, run, stats, rows)
            target = rows.target
            if isinstance(coded, CodedMatrix):  # codes are here, after all
                target = Target.stack(computed(*rows.target.each()))
            return self.resolve(book, coded, target, seed)
        table, values = self.read(X, y)
        target = self.target(values, sample_weight)
        return self.resolve(*self.code(table, seed, run, stats, sample_weight), target, seed)


@dataclass(frozen=True, eq=False)
class RowsElsewhere:
    """The target and the weights of rows that are not here.

    Attributes
    ----------
    columns : RowColumns
        The target and what else belongs to the rows; the second one are weights.
    read : callable
        Makes `GivenRows` of the columns of a part and the number of its first row.
    units : TargetUnits
    target : SpreadTarget
    cuts : tuple of int, or None
        As `units_of_cuts` says.
    counts : list of int64 (n_classes,)
        `TargetUnits.counts` of each part, for boosted models.
    """

    columns: RowColumns
    read: Callable[..., GivenRows]
    units: TargetUnits
    target: SpreadTarget
    cuts: tuple[int, int, int] | None
    counts: list[np.ndarray]

    @classmethod
    def of(
        cls,
        estimator: BaseModel,
        table: PartitionedTable,
        columns: Mapping[str, Any],
        stats: FitStatistics | None,
        lacks: int | None = None,
    ) -> RowsElsewhere:
        """Those of a table; ValueError: some cannot be fitted, or lengths differ.

        With `lacks` the last of the `columns` are cells, and rows of this one weigh nothing. Raises
        TableTooLargeError before anything is read.
        """
        stats = FitStatistics() if stats is None else stats
        if lacks is None:
            check_table(table, **_place_of(estimator), stats=stats)
        own = RowColumns.of(table, columns, stats)
        if lacks is not None:
            own = replace(own, change=partial(_without_cell, lacks))
        read = partial(_given_rows, type(estimator).__name__, "classes_" in estimator._learns)

        def work(ask: Ask) -> tuple[Any, ...]:
            units = estimator._units(ask)
            each = partial(own.each, partial(_target_of_rows, read, units), "target-of-part")
            are_cut = lacks is None and estimator.max_bins is not None
            cuts = units_of_cuts(ask) if are_cut else None
            counts = ask(units.counts) if estimator._adds_steps else []
            return units, units.elsewhere(ask, each), cuts, counts

        return cls(own, read, *own.asked(read, work, stats))

    def y(self, stats: FitStatistics) -> LazyColumn:
        """Numbers of classes, or the target as numbers, of all rows."""
        return self.columns.column(partial(_y_of_rows, self.read, self.units), "y-of-part", stats)

    def cut_weights(self) -> list[Any] | None:
        """`dtrees.coding.target.cut_weights` of each part: tasks of Dask; None: there are none."""
        if self.cuts is None:
            return None
        return self.columns.each(partial(_cut_weights_of, self.read, self.cuts), "weights-of-part")


def _check_indicator(columns: Sequence[Any]) -> None:
    """Refuse targets that have no share of right rows, as scikit-learn does."""
    are_numbers = all(np.asarray(values).dtype.kind in "biuf" for values in columns)
    kind = type_of_target(np.column_stack(columns)) if are_numbers else "multiclass-multioutput"
    if kind != "multilabel-indicator":
        raise ValueError(
            f"The type of target cannot be used to compute OOB estimates. Got {kind}; of several "
            "targets of classes, only multilabel-indicator is supported."
        )


def _place_of(estimator: BaseModel, n_values: int = 1) -> dict[str, Any]:
    """What `encode_partitions` has to know of where an estimator grows, and what that takes."""
    return {
        "regime": getattr(estimator, "regime", None),
        "stays": estimator._adds_steps,
        "least": Least(estimator, n_values),
    }


def _given_rows(
    owner: str, of_classes: bool, y: Any, sample_weight: Any, *others: Any
) -> GivenRows:
    """Some rows; the last of `others` is the number of the first one."""
    values = one_target(y, owner)
    if values.dtype.kind == "f" and of_classes:
        check_finite(values, "y", others[-1])
        check_classification_targets(values)
    return GivenRows.of(values, sample_weight, of_classes, others[-1])


def _target_of_rows(read: Callable[..., GivenRows], units: TargetUnits, *columns: Any) -> Target:
    return units.target(read(*columns))


def _y_of_rows(read: Callable[..., GivenRows], units: TargetUnits, *columns: Any) -> np.ndarray:
    rows, classes = read(*columns), units.empty.classes
    return rows.y if classes is None else rows.numbers_of(classes)


def _without_cell(lacks: int, y: Any, sample_weight: Any, *columns: Any) -> tuple[Any, ...]:
    """Columns of rows, of which those of a cell weigh nothing; without the cells."""
    *others, cells = columns
    weight = (cells != lacks).astype(np.float64)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64) * weight
    return y, weight, *others


def _cut_weights_of(
    read: Callable[..., GivenRows], cuts: tuple[int, int, int], *columns: Any
) -> np.ndarray:
    return read(*columns).weights_of_cuts(*cuts)


def _warn_of_many_classes(target: Target, rules: GrowthRules) -> None:
    """Warn where the weights of many classes in many nodes may take more than all else."""
    n_rows, n_classes = target.n_rows, target.n_classes
    most = node_bytes(n_rows, n_classes, rules.max_depth, rules.min_samples_leaf)
    if most >= MANY_BYTES:
        warn(
            f"y has {n_classes:,} classes, and a node of a tree keeps the weight of each of them: "
            f"a tree of {n_rows:,} rows takes up to {most / 2**30:.1f} GiB, and time in "
            "proportion. Set min_samples_leaf or max_depth, join rare classes, or use a regressor "
            "if y holds numbers."
        )


def _draw(state: Any) -> int:
    return int(check_random_state(state).randint(LARGEST_SEED))


_seed_of = lru_cache(_draw)  # a state takes .2 ms, and a search asks for one in each growth


def one_target(y: Any, owner: str, reader: str | None = None) -> np.ndarray:
    """`y` as a 1-d array; ValueError where there is none, or it has several columns.

    `reader` takes one target; None: `owner` itself.
    """
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires y to be passed, but the target y is None."
        )
    if type(y) is np.ndarray and y.ndim == 1:
        return y
    refuse_masked(y, "y")
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: {reader or owner} "
            f"does not support several targets yet. {OF_EACH if reader else A_MODEL_PER_TARGET}"
        )
    if len(shape) == 2 and shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
    values = column_or_1d(y)
    if values.dtype.kind == "U" and isinstance(y, list | tuple):  # NumPy makes a word of NaN
        missing = [label for label in y if is_missing(label)]
        if missing:
            raise missing_label(missing[0])
    return values
