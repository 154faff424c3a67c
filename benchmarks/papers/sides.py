"""The algorithms of [CV] by our means, on one thread, coding included.

    T_actual   a fit of all rows
    T_S        serial: that, and a fit of the rows of each training side, `fit(X[train], y[train])`
    T_CV       parallel: all of these models from one coding and one growth, `fit_sets`

The training sides are cut out of the table before the clock runs. Leaves have at least ten rows, as
in the paper, and numbers are exact unless bins are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from benchmarks.papers.figures import CV_LEAF
from benchmarks.papers.tables import rows_of
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training_sets import fit_sets

FOLDS = 10
CLOCK = time.process_time


class Sides(NamedTuple):
    """Three pieces of work."""

    actual: Callable[[], Any]
    together: Callable[[], FittedSets]
    serial: Callable[[], list[Any]]


def tree_of(y: np.ndarray, max_bins: int | None = None) -> Any:
    """The tree of [CV] 4.1.3."""
    kind = dtrees.DecisionTreeRegressor if y.dtype.kind == "f" else dtrees.DecisionTreeClassifier
    return kind(min_samples_leaf=CV_LEAF, max_bins=max_bins, random_state=0, n_jobs=1)


def splits_of(y: np.ndarray, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random folds."""
    return list(KFold(n_folds, shuffle=True, random_state=0).split(y))


def sides_of(X: Any, y: np.ndarray, n_folds: int = FOLDS, max_bins: int | None = None) -> Sides:
    """The work on a table."""
    tree, splits = tree_of(y, max_bins), splits_of(y, n_folds)
    sets = np.ones((n_folds + 1, len(y)), dtype=bool)
    for mine, (_, test) in zip(sets, splits, strict=False):
        mine[test] = False
    parts = [(rows_of(X, train), y[train]) for train, _ in splits] + [(X, y)]
    return Sides(
        lambda: clone(tree).fit(X, y),
        lambda: fit_sets(tree, X, y, None, sets),
        lambda: [clone(tree).fit(*part) for part in parts],
    )


def interval(values: list[float]) -> tuple[float, float]:
    """A mean, and half the width of its 90 % confidence interval (Student's distribution)."""
    from scipy.stats import t

    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, 0.0
    return mean, float(t.ppf(0.95, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
