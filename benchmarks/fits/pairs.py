"""The same fit by both sides, and what to say of the two trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.tree

import dtrees
from benchmarks.cases import THREADS, Contest


def ours(X: Any, y: np.ndarray, **parameters: Any) -> Any:
    """A fitted tree of dtrees."""
    regression = y.dtype.kind == "f"
    tree = dtrees.DecisionTreeRegressor if regression else dtrees.DecisionTreeClassifier
    return tree(random_state=0, n_jobs=THREADS, **parameters).fit(X, y)


def theirs(X: Any, y: np.ndarray, **parameters: Any) -> Any:
    """A fitted tree of scikit-learn."""
    kind = sklearn.tree.DecisionTreeRegressor if y.dtype.kind == "f" else None
    tree = kind or sklearn.tree.DecisionTreeClassifier
    return tree(random_state=0, **parameters).fit(X, y)


def nodes(first: Any, second: Any) -> str:
    """Sizes of two fitted trees."""
    own = f"{first.tree_.node_count:,}"
    return f"{own} nodes" if second is None else f"{own} and {second.tree_.node_count:,} nodes"


def same_fit(X: Any, y: np.ndarray, their_X: Any = None, **parameters: Any) -> Contest:
    """A contest of two fits with the same parameters; ``their_X`` where it has to differ."""
    other = X if their_X is None else their_X
    return Contest(
        lambda: ours(X, y, **parameters),
        {"scikit-learn": lambda: theirs(other, y, **parameters)},
        nodes,
    )
