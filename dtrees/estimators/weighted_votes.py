"""What trees say together whose votes have weights: predictions of AdaBoost.

    classes    the class of most votes; shares of the votes
    numbers    the weighted median

Votes are added up in the order of the trees, so the bits do not depend on blocks or threads. Of the
first n trees they are those of a model that has no more.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dtrees.coding.tables import Table
from dtrees.core.losses.losses import shares_of_classes
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.raw import forest_blocks, leaves_by_tree
from dtrees.estimators.prediction import ForestPredictor
from dtrees.parallel import Answer
from dtrees.typing import Runner, serial


@dataclass(eq=False)
class WeightedPredictor(ForestPredictor):
    """The answers of trees whose votes have weights, float64 (n_trees,)."""

    weights: np.ndarray

    def first(self, n_trees: int) -> Self:
        """The same of the first trees."""
        trees = Forest(self.forest.trees[:n_trees])
        return replace(self, forest=trees, weights=self.weights[:n_trees])

    @abstractmethod
    def staged(self, method: str, table: Table, run: Runner) -> Iterator[np.ndarray]:
        """A method's answers of the first 1, 2, ... trees."""


@dataclass(eq=False)
class VotePredictor(WeightedPredictor):
    """The answers of trees that vote for classes."""

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        n_classes = self.forest[0].n_values
        if method != "decision_function":
            return super().answer(method)
        if n_classes > 2:
            return Answer(np.empty((0, n_classes)), columns=self.classes)
        return Answer(np.empty(0))

    def _answer(self, method: str, table: Table, run: Runner) -> np.ndarray:
        """What a method answers."""
        total = np.zeros((table.n_rows, self.forest[0].n_values))

        def see(first: int, end: int, classes: np.ndarray) -> None:
            for own, weight in zip(classes.T, self.weights, strict=True):
                add_votes(total[first:end], own.astype(np.intp), weight)

        votes = [votes_of(tree).astype(np.float64) for tree in self.forest.trees]
        forest_blocks(self.forest, self.book, table, run, see, votes)
        return self._of_votes(method, total, len(votes))

    def staged(self, method: str, table: Table, run: Runner) -> Iterator[np.ndarray]:
        """A method's answers of the first 1, 2, ... trees."""
        trees = self.forest.trees
        total = np.zeros((table.n_rows, trees[0].n_values))
        for number, leaves in enumerate(leaves_by_tree(trees, self.book, table, run)):
            add_votes(total, votes_of(trees[number]).take(leaves), self.weights[number])
            yield self._of_votes(method, total, number + 1)

    def _of_votes(self, method: str, total: np.ndarray, n_trees: int) -> np.ndarray:
        """What a method answers of the weight of votes for each class, of the first trees."""
        if method == "predict":
            return self.labels_of(total)
        n_classes, share = total.shape[1], total / sum_of(self.weights[:n_trees])
        if n_classes > 2:
            decision = (n_classes * share - 1.0) / (n_classes - 1)
        else:
            decision = 2.0 * (share[:, -1:] - share[:, :1])  # of one class: 0
        if method == "decision_function":
            return decision if n_classes > 2 else decision[:, 0]
        if n_classes == 1:
            return np.ones((len(total), 1))
        return shares_of_classes(decision / max(1, n_classes - 1))

    def _values(self, table: Table, run: Runner) -> np.ndarray:
        return self._answer("predict_proba", table, run)

    def predict(self, X: Any, run: Runner = serial) -> np.ndarray:
        """The class of most votes; of several, the first."""
        return self._answer("predict", self.check(X, run), run)

    def decision_function(self, X: Any, run: Runner = serial) -> np.ndarray:
        """What the votes say, float64 (n_rows,) or (n_rows, n_classes)."""
        return self._answer("decision_function", self.check(X, run), run)


@dataclass(eq=False)
class MedianPredictor(WeightedPredictor):
    """The answers of trees of numbers."""

    def staged(self, method: str, table: Table, run: Runner) -> Iterator[np.ndarray]:
        """Predictions of the first 1, 2, ... trees."""
        values = np.empty((table.n_rows, len(self.forest)))

        def see(first: int, end: int, found: np.ndarray) -> None:
            values[first:end] = found

        forest_blocks(self.forest, self.book, table, run, see)
        for n_trees in range(1, len(self.forest) + 1):
            yield weighted_median(values[:, :n_trees], self.weights[:n_trees])

    def _values(self, table: Table, run: Runner) -> np.ndarray:
        found = np.empty((table.n_rows, 1))

        def see(first: int, end: int, values: np.ndarray) -> None:
            found[first:end, 0] = weighted_median(values, self.weights)

        forest_blocks(self.forest, self.book, table, run, see)
        return found


def votes_of(tree: Tree) -> np.ndarray:
    """The class that each node votes for, intp (n_nodes,)."""
    found: np.ndarray = tree.value.argmax(axis=1)
    return found


def add_votes(total: np.ndarray, classes: np.ndarray, weight: float) -> None:
    """Add a vote of each row to IN and OUT float64 (n_rows, n_classes)."""
    total[np.arange(len(total)), classes] += weight


def sum_of(weights: np.ndarray) -> float:
    """The sum of the weights of votes, in the order of the trees."""
    return float(np.cumsum(weights)[-1])


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The least value of each row that has half of the weight up to it, float64 (n_rows,).

    values : float64 (n_rows, n_trees)
    weights : float64 (n_trees,)
    """
    order = np.argsort(values, axis=1, kind="stable")
    sums = np.cumsum(weights[order], axis=1)
    middle = (sums >= 0.5 * sums[:, -1:]).argmax(axis=1)
    found: np.ndarray = np.take_along_axis(values, order, axis=1)[np.arange(len(values)), middle]
    return found
