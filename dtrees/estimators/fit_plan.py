"""A fit as a plan: what an estimator's parameters say of it, before any table is read.

Estimators are fitted by their plans. So are the models of a cross-validation or a search, which
never look inside an estimator::

    estimator ──FitPlan.of──▶ parameters checked
    X, y      ──read────────▶ table, values
    table     ──code────────▶ CodeBook, codes ──┐
    values    ──target──────▶ Target ───────────┴──resolve──▶ Encoded
    Encoded, in a Training ──fit, fit_sets──▶ fitted estimators

A fit of many models to one table calls these steps one by one, and keeps what two fits have in
common (`dtrees.estimators.training_table`). A fit of one model calls `encode`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_random_state, column_or_1d

from dtrees._warnings import warn
from dtrees.coding.category_warnings import nearly_ids, warn_of_dates, warn_of_ids
from dtrees.coding.codebook import SAMPLE_ROWS, CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.tables import Table, read_table
from dtrees.coding.target import Target
from dtrees.coding.weights import cut_weights
from dtrees.constraints import check_parameters
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.shared import n_alone
from dtrees.core.membership.resampling import Resampling
from dtrees.core.membership.shares import Shares
from dtrees.estimators.column_rules import directions_of, interactions_of
from dtrees.estimators.limits import columns_per_split, depth_of, least_rows, node_bytes
from dtrees.estimators.training import Encoded, Training
from dtrees.parallel import (
    CodedPartitions,
    FitStatistics,
    LocalRunner,
    PartitionedTable,
    encode_partitions,
)

if TYPE_CHECKING:
    from dtrees.estimators.base import BaseTrees

MANY_CLASSES = 500
MANY_BYTES = 2**30

LARGEST_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class TablePlan:
    """How an estimator reads and codes its table."""

    estimator: Any  # its parameters have been checked; not changed

    @property
    def name(self) -> str:
        """Of the estimator's class, for messages."""
        return type(self.estimator).__name__

    @property
    def regime(self) -> str | None:
        """Where codes are to be, as for `choose_regime`: all of them in this process."""
        return "local"

    def seed(self) -> int:
        """A seed from the random state; a state that is given draws once."""
        state = self.estimator.random_state
        return _seed_of(int(state)) if isinstance(state, Integral) else _draw(state)

    def read(self, X: Any, y: Any) -> tuple[Table | PartitionedTable, np.ndarray]:
        """A table, and a target of as many rows; ValueError: one is not what it should be."""
        table = X if isinstance(X, PartitionedTable) else read_table(X)
        values = one_target(y, self.name)
        if len(values) != table.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {table.n_rows} "
                f"rows, y has {len(values)} values. Give one value of y per row of X."
            )
        return table, values

    def code(
        self,
        table: Table | PartitionedTable,
        seed: int,
        run: LocalRunner,
        stats: FitStatistics | None = None,
        sample_weight: Any = None,
    ) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
        """The table as codes; rows count by their weights where columns are cut."""
        is_cut = self.estimator.max_bins is not None
        how: dict[str, Any] = {
            "categorical_features": self.estimator.categorical_features,
            "max_bins": self.estimator.max_bins,
            "handle_unknown": self.estimator.handle_unknown,
            "seed": seed,
            "weights": cut_weights(sample_weight, table.n_rows) if is_cut else None,
        }
        if isinstance(table, PartitionedTable):
            book, coded = encode_partitions(table, **how, regime=self.regime, stats=stats)
        else:
            book, coded = CodeBook.fit_encode(table, **how, run=run)
        warn_of_ids(book, coded.n_rows)
        warn_of_dates(book)
        return book, coded

    def coding(self, n_rows: int, seed: int) -> tuple[Any, ...]:
        """What the codes of a table of so many rows depend on; equal codes, if it is equal."""
        estimator = self.estimator
        samples = estimator.max_bins is not None and n_rows > SAMPLE_ROWS
        return (
            estimator.max_bins,
            estimator.categorical_features,
            estimator.handle_unknown,
            seed if samples else None,
        )


@dataclass(frozen=True, eq=False)
class FitPlan(TablePlan):
    """How an estimator of trees is fitted."""

    criterion: str  # the core's name of it
    target: Callable[[np.ndarray, Any], Target]  # of `y` and weights
    fit: Callable[[Training], Any]  # a new estimator; as its ``fit``, bit for bit
    fit_sets: Callable[[Training, Resampling], list[Any]]  # of each set, or the error of its fit
    shares: Shares  # limits that depend on which rows a training set has
    class_weight: Any = None  # of the target, which a fit makes of the rows that it has
    spare_bits: int = 0  # of its integers
    n_trees: int = 1  # of a fit
    random_splits: bool = False  # splits are drawn
    random_ties: bool = True  # one of several columns with the same gain is drawn
    draws_weights: bool = False  # trees have bags, into which rows are drawn as weights say

    @property
    def regime(self) -> str | None:
        """Where codes are to be: where trees grow from them."""
        return getattr(self.estimator, "regime", None)

    @classmethod
    def of(cls, estimator: BaseTrees) -> FitPlan:
        """The plan of a clone of an estimator; raises InvalidParameterError."""
        estimator._check_parameters()
        return estimator._unfitted()._fit_plan()

    def resolve(
        self, book: CodeBook, coded: CodedMatrix | CodedPartitions, target: Target, seed: int
    ) -> Encoded:
        """Codes and target, with the rules that the parameters are for them."""
        own = self.estimator
        barred = nearly_ids(book, coded.n_rows)
        n_columns = max(1, book.n_columns - len(barred))
        max_features = columns_per_split(own.max_features, n_columns)
        numbers = GrowthRules(
            criterion=self.criterion,
            max_depth=depth_of(own.max_depth, own.max_leaf_nodes),
            min_samples_split=max(2, least_rows(own.min_samples_split)),
            min_samples_leaf=least_rows(own.min_samples_leaf),
            min_impurity_decrease=float(own.min_impurity_decrease),
            max_features=max_features if max_features < n_columns else None,
            random_splits=self.random_splits,
            random_ties=self.random_ties,
            category_penalty=float(own.category_penalty),
            in_bags=self.draws_weights,
            seed=seed,
            handle_unknown="majority" if own.handle_unknown == "majority" else "missing",
            monotonic=directions_of(own.monotonic_cst, book, target),
            interactions=interactions_of(own.interaction_cst, book, barred),
        )
        rules = self.rules(numbers, target)
        _warn_of_many_classes(target, rules)
        return Encoded(book, coded, target, seed, rules, max_features)

    def encode(
        self,
        X: Any,
        columns: tuple[Any, Any],
        seed: int,
        run: LocalRunner,
        stats: FitStatistics | None = None,
    ) -> Encoded:
        """Code a table and its target (`columns`: y and weights), and resolve the rules."""
        y, sample_weight = columns
        table, values = self.read(X, y)
        target = self.target(values, sample_weight)
        return self.resolve(*self.code(table, seed, run, stats, sample_weight), target, seed)

    def rules(self, rules: GrowthRules, target: Target) -> GrowthRules:
        """Rules for another target, of whose rows shares are taken."""
        return self.shares.rules(rules, target)

    def n_alone(self, encoded: Encoded, resampling: Resampling) -> tuple[int, str]:
        """How many of several training sets share nothing of their growth, and why they do not."""
        if not isinstance(encoded.coded, CodedMatrix):  # in rounds, which are those of all sets
            return 0, ""
        return n_alone(encoded.coded, encoded.target, encoded.rules, resampling)


def _warn_of_many_classes(target: Target, rules: GrowthRules) -> None:
    """Warn where the weights of many classes in many nodes may take more than all else."""
    n_rows, n_classes = target.n_rows, target.n_classes
    most = node_bytes(n_rows, n_classes, rules.max_depth, rules.min_samples_leaf)
    if n_classes >= MANY_CLASSES and most >= MANY_BYTES:
        warn(
            f"y has {n_classes:,} classes, and a node of a tree keeps the weight of each of them: "
            f"a tree of {n_rows:,} rows takes up to {most / 2**30:.1f} GiB, and time in "
            "proportion. Set min_samples_leaf or max_depth, join rare classes, or use a regressor "
            "if y holds numbers."
        )


def _draw(state: Any) -> int:
    return int(check_random_state(state).randint(LARGEST_SEED))


_seed_of = lru_cache(_draw)  # a state takes .2 ms, and a search asks for one in each growth


def one_target(y: Any, owner: str) -> np.ndarray:
    """`y` as a 1-d array; ValueError where there is none, or it has several columns."""
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires y to be passed, but the target y is None."
        )
    if type(y) is np.ndarray and y.ndim == 1:
        return y
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: {owner} does not "
            "support several targets yet. Fit a model per column of y, for example with "
            "sklearn.multioutput.MultiOutputClassifier or MultiOutputRegressor."
        )
    if len(shape) == 2 and shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
    return column_or_1d(y)


def check_value(estimator: BaseTrees, name: str, value: Any) -> None:
    """Refuse (InvalidParameterError) a value of a parameter that no fit takes."""
    check_parameters(estimator._constraints, {name: value}, type(estimator).__name__)
