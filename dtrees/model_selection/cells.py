"""The models of one growth's candidates, for each training set.

A cell is a candidate and a training set. Its model is cut out of what has grown for the set when
somebody looks at it. What it says of held-out rows is read from the leaves of the large trees, to
which the rows have walked once::

    row ──walks──▶ leaf of the large tree ──the branch it is in──▶ leaf of the smaller tree

Many cells of a grid are the same tree: no node is between their limits. Those are found without
cutting one of them, and scored once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import sklearn.model_selection
from sklearn.exceptions import FitFailedWarning

from dtrees.core.means import mean_of_sums, offsets_of
from dtrees.core.model import Tree
from dtrees.core.smaller import Limits, ManyLimits, sums_over_leaves
from dtrees.estimators.sets import FittedSets, trees_of
from dtrees.estimators.smaller import model_of_trees
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.stand_in import (
    RowNumbers,
    Split,
    StandIn,
    asks_for_predictions,
    scoring_of_stand_ins,
)


@dataclass
class _Walked:
    """Rows and their leaves in the trees of a set, and what the first trees have said of them."""

    rows: np.ndarray
    leaves: list[np.ndarray] = field(default_factory=list)
    limits: Limits | None = None
    n_trees: int = 0
    total: Any = 0.0


class Cells:
    """The models of candidates, for training sets.

    Parameters
    ----------
    growth : Growth
    fitted : FittedSets
        Of ``growth.estimator``.
    limits : ManyLimits or None, default=None
        Where the trees of every candidate end, in any set; None: asked of `growth`.
    """

    def __init__(
        self, growth: Growth, fitted: FittedSets, limits: ManyLimits | None = None
    ) -> None:
        self.growth, self.fitted = growth, fitted
        self._has_shares = limits is None and growth.has_shares()
        self._limits: dict[int, ManyLimits] = {} if limits is None else {0: limits}
        self._walked: dict[int, list[_Walked]] = {}
        self._brought: set[int] = set()  # whose rows will be asked about first

    @cached_property
    def _n_trees(self) -> list[int | None]:
        return self.growth.n_trees()

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.fitted.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def limits(self, number: int) -> ManyLimits:
        """Where the trees of every candidate end, in a set."""
        n_rows = int(self.fitted.n_live[number]) if self._has_shares else 0
        if n_rows not in self._limits:
            self._limits[n_rows] = self.growth.limits(n_rows)
        return self._limits[n_rows]

    def trees(self, number: int) -> tuple[Tree, ...]:
        """What has grown for a set."""
        return trees_of(self.fitted.models[number])

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        if self.growth.is_whole:
            return self.fitted.models[number]
        n_trees = self._n_trees[candidate]
        trees = tuple(map(self.limits(number)[candidate].cut, self.trees(number)[:n_trees]))
        estimator = self.growth.estimator_of(candidate)
        return model_of_trees(estimator, self.fitted.models[number], trees)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a cell says of some rows: float64 (n, n_classes) or (n, 1).

        Parameters
        ----------
        candidate, number : int
        rows : int64 (n,)
            Row numbers of the table. Asked for again and again, they walk once.
        """
        if self.growth.is_whole:
            return self.fitted.values(number, rows)
        limits, walked = self.limits(number)[candidate], self._walked_rows(number, rows)
        trees = self.trees(number)
        n_trees = self._n_trees[candidate] or 1
        if limits != walked.limits or walked.n_trees > n_trees:
            walked.limits, walked.n_trees, walked.total = limits, 0, 0.0
        for place in range(walked.n_trees, n_trees):
            if place == len(walked.leaves):
                walked.leaves.append(self.fitted.coded_rows.leaves(trees[place], walked.rows))
            smaller, leaves = limits.cut_and_leaves(trees[place], walked.leaves[place])
            with np.errstate(over="ignore", invalid="ignore"):
                walked.total = walked.total + smaller.value_of(leaves)
        walked.n_trees = n_trees
        if n_trees == 1:
            return walked.total
        return mean_of_sums(walked.total, n_trees, offsets_of(trees[:n_trees]))

    def distinct(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Candidates whose models are the same trees, in a set.

        A tree is known by its leaves. With two random numbers for every node, 128 bits, equal sums
        over leaves are equal leaves.

        Returns
        -------
        first : int64 (n_distinct,)
            A candidate for each model, the first one, in ascending order.
        place : int64 (n_candidates,)
            Where in `first` the model of each candidate is.

        Notes
        -----
        Costs for every tree what `sums_over_leaves` does.
        """
        n_candidates = len(self.growth.places)
        if n_candidates == 1:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        n_trees = np.array([n or 1 for n in self._n_trees])
        limits, rng = self.limits(number), np.random.default_rng(0)
        keys = np.zeros((n_candidates, 2), dtype=np.int64)
        for place, tree in enumerate(self.trees(number)):
            has = n_trees > place
            values = rng.integers(-(2**63), 2**63 - 1, (tree.node_count, 2))
            keys[has] += sums_over_leaves(tree, values, limits)[has]  # modulo 2**64
        _, first, place_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[place_of.ravel()]

    def bring(self, rows: RowNumbers, with_train: bool) -> None:
        """Let rows walk that models will be asked about, where the codes are on workers.

        All at once, but for leaves of train sides in all trees, which would be many at a time.

        Parameters
        ----------
        rows : RowNumbers
        with_train : bool
        """
        if self.fitted.coded_rows.is_here:
            return
        sides = rows.sides(with_train and self.growth.is_whole)
        known = [(number, side) for number, side in sides if self.error(number) is None]
        if self.growth.is_whole:
            self.fitted.bring_values(known)
        else:
            self.fitted.bring_leaves(dict(known), keeps=False)
            self._brought |= {number for number, _ in known}

    def _walked_rows(self, number: int, rows: np.ndarray) -> _Walked:
        known = self._walked.setdefault(number, [])
        for walked in known:
            if np.array_equal(walked.rows, rows):
                return walked
        known.append(_Walked(rows.copy()))
        if number not in self._brought:
            self.fitted.bring_leaves({number: known[-1].rows}, keeps=False)
        self._brought.discard(number)
        return known[-1]


@dataclass(frozen=True)
class _Distinct:
    """Models that are not the same trees: `stand_in.Models`, with other candidates in each set.

    Attributes
    ----------
    cells : Cells
    candidates : int64 (n_distinct, n_sets)
        Of `cells`. In a set that has fewer different ones, the last again and again.
    """

    cells: Cells
    candidates: np.ndarray

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.cells.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        return self.cells.error(number)

    def model(self, candidate: int, number: int) -> Any:
        """A fitted estimator."""
        return self.cells.model(int(self.candidates[candidate, number]), number)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What a model says of some rows."""
        return self.cells.values(int(self.candidates[candidate, number]), number, rows)


def _distinct(cells: Cells, n_splits: int, scoring: Any) -> tuple[_Distinct, np.ndarray]:
    """Models that are scored, and which of them stands for a candidate in each split.

    Returns
    -------
    models : _Distinct
    place : int64 (n_candidates, n_splits)
    """
    n_candidates = len(cells.growth.places)
    every = np.arange(n_candidates)
    found = [(every, every)] * n_splits
    if asks_for_predictions(scoring):  # others may look at parameters, too
        found = [
            (every[:1], 0 * every) if cells.error(number) is not None else cells.distinct(number)
            for number in range(n_splits)
        ]
    most = max(len(first) for first, _ in found)
    candidates = [np.pad(first, (0, most - len(first)), mode="edge") for first, _ in found]
    return _Distinct(cells, np.column_stack(candidates)), np.column_stack(
        [place for _, place in found]
    )


@dataclass(frozen=True)
class ModelScores:
    """Scores of candidates that scikit-learn has computed.

    Attributes
    ----------
    scores : dict of (str, str) to float64 (n_candidates, n_splits)
        By side, "train" or "test", and by the name of the scorer.
    seconds : float64 (n_candidates,)
        To score a model, on average.
    is_single : bool
        Whether there is one scorer, without a name: "score".
    """

    scores: dict[tuple[str, str], np.ndarray]
    seconds: np.ndarray
    is_single: bool


class ScoredRows(Protocol):
    """What scorers see of a table."""

    @property
    def X(self) -> Any:
        """The table."""
        ...

    @property
    def y(self) -> Any:
        """The target."""
        ...

    @property
    def sample_weight(self) -> Any:
        """What rows count; None: once."""
        ...


def score_models(
    cells: Cells,
    table: ScoredRows,
    splits: Sequence[Split],
    scoring: Any,
    error_score: Any,
    return_train_score: bool = False,
    weigh: bool = True,
) -> ModelScores:
    """Score the models of cells by their predictions, in scikit-learn's own search.

    Models that are the same trees are scored once, unless a scorer is no one of scikit-learn's.

    Parameters
    ----------
    cells : Cells
    table : ScoredRows
    splits : sequence of (train, test)
    scoring, error_score, return_train_score
        As for `dtrees.model_selection.GridSearchCV`.
    weigh : bool, default=True
        Whether weights are handed to scorers that take them, if scikit-learn's search does so.
    """
    numbers = RowNumbers(len(table.y), splits)
    cells.bring(numbers, return_train_score)
    models, place = _distinct(cells, len(splits), scoring)
    search = sklearn.model_selection.GridSearchCV(
        StandIn(models, numbers, cells.growth.estimator),
        {"candidate": list(range(len(models.candidates)))},
        scoring=scoring_of_stand_ins(scoring, table.X),
        cv=splits,
        refit=False,
        error_score=error_score,
        return_train_score=return_train_score,
    )
    weight = (
        {} if table.sample_weight is None or not weigh else {"sample_weight": table.sample_weight}
    )
    with warnings.catch_warnings():  # whoever asks says more
        warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")
        warnings.filterwarnings("ignore", category=FitFailedWarning)
        search.fit(numbers.table, table.y, **weight)
    results = search.cv_results_
    scores = {}
    for key in results:
        if key.startswith("split0_"):
            side, name = key.removeprefix("split0_").split("_", 1)
            columns = [results[f"split{i}_{side}_{name}"][place[:, i]] for i in range(len(splits))]
            scores[side, name] = np.column_stack(columns)
    seconds = results["mean_score_time"][place].mean(axis=1)
    return ModelScores(scores, seconds, not search.multimetric_)
