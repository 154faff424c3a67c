"""Our AdaBoost, and scikit-learn's over our trees and over its own: processor time of one thread.

Each round of scikit-learn's is a whole fit with new weights, which codes the table anew. Text
stands among the tables of the papers (`stumps`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import sklearn.tree
from sklearn.base import is_classifier
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.forests.opponents import is_regression
from benchmarks.measure import in_turns

TURNS, BUDGET = 5, 40.0
ROUNDS = 50
TABLE = Table(
    (
        "work, 50 rounds",
        "ours, s",
        "ours of 255 bins, s",
        "their loop, our trees, s",
        "theirs, s",
        "ours / their loop",
        "ours / theirs",
        "held out",
        "verdict",
    ),
    "Processor time, medians of turns in one process. Scores are those of the four sides.",
)
REACH, AIM = 1.0, 0.5  # of our share
# table, depth of the trees
WORKS: Mapping[str, tuple[str, int]] = {
    "adult-stumps": ("adult", 1),
    "adult-depth-3": ("adult", 3),
    "letter-depth-8": ("letter", 8),
    "california-depth-4": ("california_housing", 4),
}


def looped(y: np.ndarray, module: Any, depth: int, rounds: int) -> Any:
    """scikit-learn's AdaBoost over the trees of a module."""
    if is_regression(y):
        tree = module.DecisionTreeRegressor(max_depth=depth)
        return AdaBoostRegressor(tree, n_estimators=rounds, random_state=0)
    tree = module.DecisionTreeClassifier(max_depth=depth)
    return AdaBoostClassifier(tree, n_estimators=rounds, random_state=0)


def lines(name: str, scale: Scale) -> Iterable[tuple[str, ...]]:
    """The line of a work."""
    table, depth = WORKS[name]
    X, y = data.real_part(table, scale)
    X = np.asarray(data.ordinal(X), dtype=np.float64)  # of which AdaBoost makes numbers
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[len(y) // 5 :], order[: len(y) // 5]
    rounds = 3 if scale.quick else ROUNDS
    kind = dtrees.AdaBoostRegressor if is_regression(y) else dtrees.AdaBoostClassifier
    sides = [
        kind(rounds, max_depth=depth, random_state=0),
        kind(rounds, max_depth=depth, random_state=0, max_bins=255),
        looped(y, dtrees, depth, rounds),
        looped(y, sklearn.tree, depth, rounds),
    ]
    works = [partial(each.fit, X[train], y[train]) for each in sides]
    turns = 1 if scale.quick else TURNS
    (ours, binned, loop, theirs), models = in_turns(works, turns, BUDGET, time.process_time)
    what = "accuracy" if is_classifier(models[0]) else "R²"
    scores = ", ".join(f"{model.score(X[test], y[test]):.4f}" for model in models)
    ratio = ours / theirs
    yield (
        f"{table}, depth {depth}",
        f"{ours:.3g}",
        f"{binned:.3g}",
        f"{loop:.3g}",
        f"{theirs:.3g}",
        f"{ours / loop:.2f}",
        f"{ratio:.2f}",
        f"{what} {scores}",
        scale.verdict(ratio <= REACH, f"{ratio:.2f} times", aim=ratio <= AIM),
    )


def _survey(name: str, scale: Scale) -> Survey:
    return Survey(TABLE, partial(lines, name, scale))


CASES = [
    Case(
        f"adaboost-{name}",
        "adaboost",
        f"AdaBoost over trees of depth {depth}, {table}, processor time of one thread",
        partial(_survey, name),
    )
    for name, (table, depth) in WORKS.items()
]
