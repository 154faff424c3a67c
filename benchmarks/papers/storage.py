"""The same tree from a sparse matrix and from an array, by both sides, on one thread ([SP] 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sklearn.tree

import dtrees
from benchmarks.measure import in_turns
from benchmarks.papers.sides import CLOCK

OWN, OTHER = "dtrees", "scikit-learn"


class Pair(NamedTuple):
    """Seconds from a sparse matrix and from an array."""

    sparse: float
    dense: float

    @property
    def gain(self) -> float:
        """How many times as long the array takes."""
        return self.dense / self.sparse


def own(y: np.ndarray, depth: int | None) -> Any:
    """Our tree, not fitted."""
    kind = dtrees.DecisionTreeRegressor if y.dtype.kind == "f" else dtrees.DecisionTreeClassifier
    return kind(max_depth=depth, random_state=0, n_jobs=1)


def other(y: np.ndarray, depth: int | None) -> Any:
    """scikit-learn's."""
    kind = sklearn.tree.DecisionTreeRegressor if y.dtype.kind == "f" else None
    return (kind or sklearn.tree.DecisionTreeClassifier)(max_depth=depth, random_state=0)


def pair(
    tree: Callable[[np.ndarray, int | None], Any],
    columns: Any,
    array: np.ndarray,
    y: np.ndarray,
    depth: int | None,
    turns: int,
    budget: float,
) -> tuple[Pair, list[Any]]:
    """Seconds, and the two trees."""
    works = (
        lambda: tree(y, depth).fit(columns, y),
        lambda: tree(y, depth).fit(array, y),
    )
    seconds, models = in_turns(works, turns, budget, CLOCK)
    return Pair(*seconds), models


def are_same(first: Any, second: Any) -> bool:
    """Whether two of our fitted trees have the same tests and the same nodes."""
    a, b = first.tree_.model, second.tree_.model
    names = ("feature", "test", "threshold", "n_node_samples", "statistics")
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    return all(np.array_equal(x, z, equal_nan=x.dtype.kind == "f") for x, z in pairs)


def check_same(first: Any, second: Any) -> None:
    """Raise AssertionError unless two of our fitted trees are the same."""
    if not are_same(first, second):
        raise AssertionError("a sparse matrix and its array have grown different trees")
