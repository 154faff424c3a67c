"""The models of one growth's candidates, for each training set.

A cell is a candidate and a training set. Its model is cut out of what has grown for the set when
somebody looks at it. What it says of held-out rows is read from the leaves of the large trees, to
which the rows have walked once::

    row ──walks──▶ leaf of the large tree ──the branch it is in──▶ leaf of the smaller tree
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtrees.core.model import Tree
from dtrees.core.smaller import Limits
from dtrees.estimators.sets import FittedSets, trees_of
from dtrees.model_selection.candidates import Growth


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
    """

    def __init__(self, growth: Growth, fitted: FittedSets) -> None:
        self.growth, self.fitted = growth, fitted
        self.limits = growth.limits(fitted.encoded.coded.n_rows)
        self._n_trees = growth.n_trees()
        self._walked: dict[int, list[_Walked]] = {}

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.fitted.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def trees(self, number: int) -> tuple[Tree, ...]:
        """What has grown for a set."""
        return trees_of(self.fitted.models[number])

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        if self.growth.is_whole:
            return self.fitted.models[number]
        n_trees = self._n_trees[candidate]
        trees = tuple(map(self.limits[candidate].cut, self.trees(number)[:n_trees]))
        estimator = self.growth.estimator_of(candidate)
        return estimator._model_of(self.fitted.encoded, trees if n_trees else trees[0])

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
        limits, walked = self.limits[candidate], self._walked_rows(number, rows)
        trees = self.trees(number)
        n_trees = self._n_trees[candidate] or 1
        if limits != walked.limits or walked.n_trees > n_trees:
            walked.limits, walked.n_trees, walked.total = limits, 0, 0.0
        for place in range(walked.n_trees, n_trees):
            if place == len(walked.leaves):
                walked.leaves.append(self.fitted.coded_rows.leaves(trees[place], walked.rows))
            smaller, leaves = limits.cut_and_leaves(trees[place], walked.leaves[place])
            walked.total = walked.total + smaller.value_of(leaves)
        walked.n_trees = n_trees
        mean: np.ndarray = walked.total if n_trees == 1 else walked.total / n_trees
        return mean

    def _walked_rows(self, number: int, rows: np.ndarray) -> _Walked:
        known = self._walked.setdefault(number, [])
        for walked in known:
            if np.array_equal(walked.rows, rows):
                return walked
        known.append(_Walked(rows.copy()))
        return known[-1]
