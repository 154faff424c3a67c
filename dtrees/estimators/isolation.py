"""Isolation forests: rows that few random splits part from all others are outliers.

A tree splits a few rows at random until each is alone (Liu, Ting and Zhou 2008): a column is drawn,
and a value between the least and the greatest of the node. What is far from the others is alone
soon. These are the splits of extra trees that draw one column at a node, so trees grow by the same
code. Only the rows that some tree has drawn are coded, each value by itself::

    table      n rows ──draw──▶ rows of each tree, 256 ──▶ drawn rows ──▶ codes ──▶ trees
    row        way to its leaf, and what it would be on the average in a tree of the leaf's rows
    score      - 2 ** -(mean way / mean way in a tree of 256 rows)

The value of a leaf is the length of the way, so a tree is one of numbers, and predictions, files
and SHAP values are those of forests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from dtrees._random import ISOLATION, ORDER, keyed_draws, keyed_places, keyed_uint64
from dtrees._warnings import warn
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.column_types import nearly_ids, warn_of_categories
from dtrees.coding.tables import Table, read_table
from dtrees.coding.target import Target, check_weights
from dtrees.constraints import (
    RANDOM_STATE,
    ArrayLike,
    Boolean,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RealIn,
)
from dtrees.core.data._logarithm import log
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.assembly import frozen
from dtrees.core.grow.source import DatasetSource
from dtrees.core.model.tree import LEAF, Forest, Tree
from dtrees.core.predict.raw import forest_values
from dtrees.estimators import base
from dtrees.estimators.column_rules import interactions_of
from dtrees.estimators.fit_plan import LARGEST_SEED, FitPlan
from dtrees.estimators.forest_growth import check_same_labels, kept_trees
from dtrees.estimators.prediction import ForestPredictor, Predictor, answered
from dtrees.estimators.tree_view import columns_with_missing, read_only
from dtrees.estimators.trees import DecisionTreeRegressor
from dtrees.parallel import (
    Answer,
    FitStatistics,
    PartitionedTable,
    admitted,
    computed,
    rows_here,
    threaded,
)
from dtrees.typing import Runner, serial

AUTO = 256  # rows of a tree
OF_INLIERS = -0.5  # scores are above it
EULER = 0.5772156649015329
LENGTH_BITS = 55  # of the sum of the lengths of the ways of all rows
MOST_BITS = 40  # of a length, behind the point
TREES_AT_ONCE = 8  # of a task
STEPS = 2.0**-53


def average_length(n: np.ndarray) -> np.ndarray:
    """Mean way of a row in a tree that isolates n rows, float64 as `n`: of a search that fails."""
    found = np.where(n == 2, 1.0, 0.0)
    many = n > 2
    of_many = n[many].astype(np.float64)
    found[many] = 2.0 * (log(of_many - 1.0) + EULER) - 2.0 * (of_many - 1.0) / of_many
    return found


def deepest(n_rows: int) -> int:
    """Depth of a balanced tree of so many rows, which no tree exceeds; 1 at least."""
    return max(1, (n_rows - 1).bit_length())


def with_lengths(trees: Sequence[Tree]) -> list[Tree]:
    """Trees whose values are the lengths of ways: of the rows of each node, on the average.

    O(nodes).
    """
    weight = np.concatenate([tree.statistics[:, 0] for tree in trees])
    bits = min(MOST_BITS, LENGTH_BITS - int(weight.max()).bit_length())
    is_leaf = np.concatenate([tree.test == LEAF for tree in trees])
    of_leaves = np.where(is_leaf, weight, 0)
    lengths = np.concatenate([tree.depth for tree in trees]) + average_length(of_leaves)
    sums = np.where(is_leaf, np.rint(np.ldexp(lengths * of_leaves, bits)), 0).astype(np.int64)
    # nodes are in preorder: the leaves below one follow each other, up to where their weight ends
    upto, total = of_leaves.cumsum(), sums.cumsum()
    total = total[np.searchsorted(upto, upto - of_leaves + weight)] - (total - sums)
    statistics = np.column_stack([weight, total])
    nothing = np.zeros(len(weight))
    found, first = [], 0
    for tree in trees:
        own = slice(first, first := first + tree.node_count)
        known: dict[str, Any] = {"statistics": statistics[own], "impurity": nothing[own]}
        known["gain"] = nothing[own]
        unit = math.ldexp(tree.weight_unit, -bits)
        found.append(replace(tree, **known, unit=unit, offset=0.0))
    return found


@dataclass(frozen=True)
class DrawnRows:
    """Which rows of a table the trees draw; those of weight zero are none of them."""

    seed: int
    size: int  # rows of a tree
    n_rows: int
    with_replacement: bool
    weights: np.ndarray | None = None  # float64 (n_rows,), by which rows are drawn

    def of_tree(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a tree, ascending, and how often each was drawn; int64 (n,) and uint16 (n,)."""
        key = self.seed, ISOLATION
        if not self.with_replacement and self.weights is None:
            rows = np.sort(keyed_places(*key, number, self.n_rows, self.size)).astype(np.int64)
            return rows, np.ones(self.size, dtype=np.uint16)
        n_draws = self.size if self.with_replacement else self.n_rows
        shares = (keyed_uint64(*key, 0, n_draws, number) >> np.uint64(11)) * STEPS
        if not self.with_replacement:  # Efraimidis and Spirakis 2006
            assert self.weights is not None
            live = np.flatnonzero(self.weights > 0)
            waits = -log(1.0 - shares[live]) / self.weights[live]
            rows = np.sort(live[np.argsort(waits, kind="stable")[: self.size]])
            return rows, np.ones(len(rows), dtype=np.uint16)
        if self.weights is None:
            drawn = (shares * self.n_rows).astype(np.int64)
        else:
            live = np.flatnonzero(self.weights > 0)
            upto = self.weights[live].cumsum()
            place = np.searchsorted(upto, shares * upto[-1], side="right")
            drawn = live[np.minimum(place, len(live) - 1)]
        rows, times = np.unique(drawn, return_counts=True)
        return rows, np.minimum(times, np.iinfo(np.uint16).max).astype(np.uint16)


@dataclass(eq=False)
class IsolationPredictor(ForestPredictor):
    """The answers of an isolation forest."""

    offset: float
    length: float  # mean way in a tree of as many rows as each has

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        if method == "predict":
            return Answer(np.empty(0, dtype=np.int64))
        if method in ("score_samples", "decision_function"):
            return Answer(np.empty(0))
        return super().answer(method)

    def score_samples(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Scores of rows, from -1 to 0, lower for outliers; float64 (n_rows,)."""
        found = forest_values(self.forest, self.book, self.check(X, run), run)[:, 0]
        found = found / self.length if self.length > 0 else np.ones(len(found))
        return -np.exp2(-found)

    def decision_function(self, X: Any, run: Runner = serial) -> np.ndarray:
        """The same, less the offset."""
        return self.score_samples(X, run) - self.offset

    def predict(self, X: Any, run: Runner = serial) -> np.ndarray:
        """1 for inliers, -1 for outliers; int64 (n_rows,)."""
        return np.where(self.decision_function(X, run) < 0, -1, 1).astype(np.int64)


class IsolationForest(OutlierMixin, base.Ensemble):
    """An isolation forest: scores rows by how few random splits part them from all others.

    Each tree draws some rows, and splits them at random until they are alone or the tree is as deep
    as a balanced one (Liu, Ting and Zhou 2008). Categories and missing values go left or right at
    random. The interface is scikit-learn's.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : "auto", int or float, default="auto"
        Rows of each tree: a number, or a share of the rows, rounded down. "auto": 256, or all.
    contamination : "auto" or float, default="auto"
        Share of outliers among the rows of the fit, up to 0.5, which sets `offset_`. "auto": the
        offset is -0.5.
    max_features : int or float, default=1.0
        Number of columns that each tree draws and splits by, or a share of all.
    bootstrap : bool, default=False
        Whether the rows of a tree are drawn with replacement.
    n_jobs : int, default=None
        Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
        cores. Changes nothing but the time.
    random_state : int, RandomState or None, default=None
        Seed of all draws. The same seed gives the same forest on any number of threads.
    verbose : int, default=0
        Shows nothing: fits are short.
    warm_start : bool, default=False
        Whether `fit` keeps the trees that are there and adds those that are missing to
        `n_estimators`. With the same table the forest is the one that is grown at once.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns whose values are categories: told by their types, a mask, a list of numbers or
        names, or none of them. Columns with nearly as many categories as rows, which `fit` warns
        of, are not used.
    handle_unknown : {"missing", "majority", "error"}, default="missing"
        What a category does at prediction that was not there at fit.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees as fitted estimators, which predict how long the way of a row is, beside what it
        would go on in its leaf. Made at the first look.
    estimators_features_ : list of int64 arrays
        The columns that each tree has drawn.
    estimators_samples_ : list of int64 arrays
        The rows that each tree has drawn, ascending, as often as it did. AttributeError: rows were
        drawn by their weights, which a model does not keep.
    max_samples_ : int
        Rows of each tree.
    offset_ : float
        Where scores of outliers begin: ``decision_function = score_samples - offset_``.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : object array of shape (n_features_in_,)
        Their names; only when all of them are strings.
    forest_ : dtrees.core.model.tree.Forest
        The trees as flat arrays.
    codebook_ : dtrees.coding.codebook.CodeBook
        What their codes mean.

    See Also
    --------
    dtrees.inspection.outlier_scores : Rows that are unlike their class, by a forest for classes.

    Examples
    --------
    >>> from dtrees import IsolationForest
    >>> X = [[-1.1], [0.3], [0.5], [100]]
    >>> IsolationForest(random_state=0).fit(X).predict([[0.1], [0], [90]])
    array([ 1,  1, -1])
    """

    _tree_class = DecisionTreeRegressor
    splitter = "random"
    _constraints: ClassVar = {
        "n_estimators": (IntegerIn(1),),
        "max_samples": (OneOf(("auto",)), IntegerIn(1), RealIn(0, 1, "(]", integers=False)),
        "contamination": (OneOf(("auto",)), RealIn(0, 0.5, "(]")),
        "max_features": (IntegerIn(1), RealIn(0, 1, "(]", integers=False)),
        "bootstrap": (Boolean(),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
        "random_state": RANDOM_STATE,
        "verbose": (InstanceOf(Integral, "int"),),
        "warm_start": (Boolean(),),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
    }
    _learns: ClassVar = {
        **base.LEARNS_COLUMNS,
        "max_samples_": (IntegerIn(1),),
        "offset_": (RealIn(-1, 0, "[]"),),
        "_fit_seed": (IntegerIn(0, LARGEST_SEED),),
        "_fit_rows": (IntegerIn(1),),
        "_fit_weighs": (Boolean(),),
    }

    max_samples_: int
    offset_: float

    n_estimators: int
    max_samples: int | float | str
    contamination: float | str
    max_features: int | float
    warm_start: bool
    verbose: int

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: float | str = "auto",
        contamination: float | str = "auto",
        max_features: float = 1.0,
        bootstrap: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: Any = "from_dtype",
        handle_unknown: str = "missing",
    ) -> None:
        self._set_all(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`. Of a Dask collection, the rows come here that
            some tree has drawn, and one of each label in each partition.
        y : ignored
            There for scikit-learn.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. Rows are drawn in proportion to their weights.

        Returns
        -------
        self : object
            The fitted forest.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be; the estimator is then as it was.

        Notes
        -----
        Costs O(n_estimators x max_samples x log max_samples), and one coding of the rows that are
        drawn, whatever the table has; with a `contamination`, also a prediction of all rows.
        """
        self._check_parameters()
        kept = kept_trees(self) if self.warm_start and hasattr(self, "forest_") else ()
        seed = self._fit_seed if kept else FitPlan(self).seed()
        run, stats = threaded(self.n_jobs), FitStatistics()
        X, sample_weight = admitted(X, {"sample_weight": sample_weight}, stats)
        is_here = not isinstance(X, PartitionedTable)
        table: Any = read_table(X) if is_here else X
        with stats.phase("coding"):
            drawn = self._draws(table.n_rows, seed, sample_weight)
            parts = run([partial(drawn.of_tree, number) for number in range(self.n_estimators)])
            is_drawn = np.zeros(table.n_rows, dtype=bool)
            for own, _ in parts:
                is_drawn[own] = True
        some, numbers = table, np.arange(table.n_rows)
        if not is_here:
            some, numbers = rows_here(table, np.flatnonzero(is_drawn), stats)
            some = read_table(some)
        with stats.phase("coding"):
            rows, book, coded = self._coded(some, is_drawn[numbers], seed, run)
            rows = numbers[rows]
        if kept:
            check_same_labels(self, book, {})
        rules = self._rules(drawn, book)
        if book.categories:
            warn_of_categories(book, drawn.n_rows)
        with stats.phase("growth"):
            order = keyed_draws(seed, ORDER, 0, rows.astype(np.uint64)) >> np.uint64(24)
            target = Target.regression(order.astype(np.float64), spare_bits=5)
            how: dict[str, Any] = {
                "values": book.code_values(),
                "arena": Arena(),
            }
            take = coded.taker()

            def grown(numbers: range) -> list[Tree]:
                pieces = []
                for number in numbers:
                    own, times = parts[number]
                    inside = np.searchsorted(rows, own)
                    mine = target.take(inside)
                    mine = mine.bagged(times) if self.bootstrap else mine
                    of_tree = rules.of_tree(number, book.n_columns)
                    pieces.append(DatasetSource(take(inside), mine, of_tree, **how).finish())
                of_all = target, coded.n_codes, book.thresholds, rules
                return with_lengths(frozen(pieces, *of_all, numbers=numbers))

            firsts = range(len(kept), self.n_estimators, TREES_AT_ONCE)
            ends = [min(first + TREES_AT_ONCE, self.n_estimators) for first in firsts]
            some = [range(*each) for each in zip(firsts, ends, strict=True)]
            found = run([partial(grown, numbers) for numbers in some])
            trees = (*kept, *chain.from_iterable(found))
        before = self._saw_missing if kept else False
        learned: dict[str, Any] = {
            "n_features_in_": book.n_columns,
            "max_samples_": drawn.size,
            "offset_": OF_INLIERS,
            "codebook_": book.without_values(),
            "forest_": Forest(trees),
            "_saw_missing": read_only(columns_with_missing(trees, coded) | before),
            "_fit_seed": seed,
            "_fit_rows": drawn.n_rows,
            "_fit_weighs": drawn.weights is not None,
        }
        if book.feature_names is not None:
            learned["feature_names_in_"] = book.feature_names
        if self.contamination != "auto":
            asked = table if is_here else table.collection
            found = answered(_predictor_of(self, learned), "score_samples", asked, self.n_jobs)
            (scores,) = computed(found)
            learned["offset_"] = float(np.percentile(scores, 100.0 * float(self.contamination)))
        learned["_fit_report"] = stats.report()
        self._forget_at_times()
        self.__dict__.update(learned)
        return self

    def _estimator(self, tree: Tree, learned: Any) -> Any:
        depth = deepest(learned["max_samples_"])
        return super()._estimator(tree, learned).set_params(max_depth=depth, max_features=1)

    def _draws(self, n_in_table: int, seed: int, sample_weight: Any) -> DrawnRows:
        """What each tree draws of a table of so many rows."""
        weights = None if sample_weight is None else check_weights(sample_weight, n_in_table)
        n_rows = n_in_table if weights is None else int(np.count_nonzero(weights))
        asked = self.max_samples
        if asked == "auto":
            size = min(AUTO, n_rows)
        elif isinstance(asked, Integral):
            if asked > n_rows:
                warn(
                    f"max_samples ({asked}) is greater than the total number of samples "
                    f"({n_rows}). max_samples will be set to n_samples for estimation."
                )
            size = min(int(asked), n_rows)
        else:
            size = max(1, int(float(asked) * n_rows))
        return DrawnRows(seed, size, n_in_table, bool(self.bootstrap), weights)

    def _coded(
        self, table: Table, is_drawn: np.ndarray, seed: int, run: Runner
    ) -> tuple[np.ndarray, CodeBook, CodedMatrix]:
        """The rows that some tree draws, bool (n_rows,), coded; and the first one of each label.

        So what the labels of a table are does not depend on how many trees there are.
        """
        is_in = is_drawn.copy()
        for column in table.labels:
            is_in[np.unique(column.codes, return_index=True)[1]] = True
        rows = np.flatnonzero(is_in)
        book, coded = CodeBook.fit_encode(
            table if len(rows) == table.n_rows else table.take(rows),
            categorical_features=self.categorical_features,
            max_bins=None,
            handle_unknown=self.handle_unknown,
            seed=seed,
            run=run,
        )
        return rows, book, coded

    def _rules(self, drawn: DrawnRows, book: CodeBook) -> GrowthRules:
        """What trees grow by."""
        asked, barred = self.max_features, nearly_ids(book, drawn.n_rows)
        if isinstance(asked, Integral) and asked > book.n_columns:
            raise ValueError(f"max_features must be <= n_features={book.n_columns}. Got {asked}.")
        n_columns = max(1, book.n_columns - len(barred))
        own = int(asked) if isinstance(asked, Integral) else max(1, int(asked * n_columns))
        return GrowthRules(
            criterion="squared_error",
            max_depth=deepest(drawn.size),
            max_features=1,
            columns_by_tree=own if own < n_columns else None,
            random_splits=True,
            random_ties=True,
            seed=drawn.seed,
            interactions=interactions_of(None, book, barred),
            handle_unknown="majority" if self.handle_unknown == "majority" else "missing",
        )

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """The columns that each tree has drawn."""
        check_is_fitted(self)
        n_columns = self.n_features_in_
        rules = self._rules(self._drawn(), self.codebook_)
        sets = [rules.of_tree(i, n_columns).interactions for i in range(len(self.forest_))]
        return [np.arange(n_columns) if own is None else np.array(own[0]) for own in sets]

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows that each tree has drawn, ascending, as often as it did."""
        check_is_fitted(self)
        if self._fit_weighs:
            raise AttributeError(
                "There is no estimators_samples_: rows were drawn by their weights, which a model "
                "does not keep."
            )
        drawn = self._drawn()
        return [np.repeat(*drawn.of_tree(number)) for number in range(len(self.forest_))]

    def _drawn(self) -> DrawnRows:
        """What the trees that are there have drawn, unless by weights."""
        return DrawnRows(self._fit_seed, self.max_samples_, self._fit_rows, bool(self.bootstrap))

    def score_samples(self, X: Any) -> np.ndarray:
        """Score rows: the opposite of the anomaly score of the paper.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        scores : float64 array of shape (n_rows,)
            From -1 to 0: the lower, the more abnormal.
        """
        return self._answer("score_samples", X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score rows, so that negative scores are outliers.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        scores : float64 array of shape (n_rows,)
            ``score_samples(X) - offset_``.
        """
        return self._answer("decision_function", X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict whether rows are outliers.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        is_inlier : int64 array of shape (n_rows,)
            -1 for outliers, 1 for inliers.
        """
        return self._answer("predict", X)

    def _predictor(self) -> Predictor:
        return _predictor_of(self, vars(self))


def _predictor_of(forest: IsolationForest, learned: Mapping[str, Any]) -> IsolationPredictor:
    """What answers by what a forest has, or will have, learned."""
    length = float(average_length(np.array([learned["max_samples_"]]))[0])
    return IsolationPredictor(
        *(learned["codebook_"], None, type(forest).__name__),
        *(learned["forest_"], learned["offset_"], length),
    )
