"""Several targets, medians, quantiles and isolation forests beside scikit-learn and others.

Both sides have one thread, and processor time is counted, so that a busy machine changes little.
The columns of ten against one say how many times longer ten targets take than the first of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn.ensemble
import sklearn.tree
from threadpoolctl import threadpool_limits

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.forests.opponents import wanted
from benchmarks.measure import in_turns

TURNS, BUDGET = 7, 12.0  # of a line, and seconds
N_ROWS, N_TARGETS = 20_000, 10
TEN = Table(
    ("model", "target", "ten, s", "theirs, s", "ratio", "ten / one", "theirs, ten / one"),
    "Fits of 20,000 × 20 float32 beside scikit-learn's. Processor time of one thread, medians.",
)
OTHERS = Table(
    ("work", "dtrees, s", "the other, s", "ratio"), "Processor time of one thread, medians."
)
MODELS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "tree": ("DecisionTree", sklearn.tree, {}),
    "tree of depth 8": ("DecisionTree", sklearn.tree, {"max_depth": 8}),
    "forest of 10": ("RandomForest", sklearn.ensemble, {"n_estimators": 10}),
    "extra trees of 10": ("ExtraTrees", sklearn.ensemble, {"n_estimators": 10}),
}


def seconds(*works: Callable[[], Any]) -> list[float]:
    """Median processor time of each work; pools of others that wait would take some, too."""
    with threadpool_limits(1):
        return in_turns(works, TURNS, BUDGET, time.process_time)[0]


def table_of(scale: Scale, are_labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """X and ten targets, each of two columns and noise; or whether each is above zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(scale.rows(N_ROWS), 20)).astype(np.float32)
    y = X[:, :N_TARGETS] + X[:, 1 : N_TARGETS + 1] ** 2 + rng.normal(size=(len(X), N_TARGETS))
    return X, (y > 1).astype(int) if are_labels else y


def _ten(are_labels: bool, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = table_of(scale, are_labels)
    kind, words = ("Classifier", "two classes") if are_labels else ("Regressor", "numbers")
    for name, (prefix, module, parameters) in MODELS.items():
        own, other = (
            getattr(place, prefix + kind)(random_state=0, **parameters)
            for place in (dtrees, module)
        )
        own.set_params(n_jobs=1)
        ten, one, their_ten, their_one = seconds(
            *(partial(model.fit, X, target) for model in (own, other) for target in (y, y[:, 0]))
        )
        ratios = their_ten / ten, ten / one, their_ten / their_one
        yield name, words, f"{ten:.3g}", f"{their_ten:.3g}", *(f"{ratio:.2g}" for ratio in ratios)


def _medians(scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.regression(scale.rows(N_ROWS))
    X = X[:, :10]
    how = {"criterion": "absolute_error", "random_state": 0}
    works = {
        "tree": ("DecisionTree", sklearn.tree, {}),
        "forest of 5": ("RandomForest", sklearn.ensemble, {"n_estimators": 5}),
    }
    for name, (prefix, module, parameters) in works.items():
        own, other = (
            getattr(place, f"{prefix}Regressor")(**how, **parameters) for place in (dtrees, module)
        )
        own.set_params(n_jobs=1)
        work = f"{name}, absolute errors, {len(X):,} × 10"
        yield line(work, partial(own.fit, X, y), partial(other.fit, X, y))


def line(work: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[str, ...]:
    """A line of `OTHERS`."""
    mine, other = seconds(ours, theirs)
    return work, f"{mine:.3g}", f"{other:.3g}", f"{other / mine:.2g}"


def _quantiles(scale: Scale) -> Iterator[tuple[str, ...]]:
    quantile_forest = wanted("quantile_forest", "quantile-forest")
    X, y = data.regression(scale.rows(N_ROWS))
    asked, shares = data.regression(scale.rows(5_000), seed=1)[0], [0.05, 0.5, 0.95]
    for rows in (1, 10, 50):
        how = {"n_estimators": 100, "min_samples_leaf": rows, "random_state": 0, "max_features": 10}
        own = dtrees.RandomForestRegressor(keep_rows=True, n_jobs=1, **how).fit(X, y)
        other = quantile_forest.RandomForestQuantileRegressor(max_samples_leaf=None, **how)
        other.fit(X, y)
        yield line(
            f"three quantiles of {len(asked):,} rows, 100 trees, leaves of {rows}, quantile-forest",
            partial(own.predict_quantiles, asked, shares),
            partial(other.predict, asked, quantiles=shares, weighted_leaves=True),
        )


def _outliers(scale: Scale) -> Iterator[tuple[str, ...]]:
    X = data.classification(scale.rows(100_000))[0]
    own = dtrees.IsolationForest(random_state=0, n_jobs=1)
    other = sklearn.ensemble.IsolationForest(random_state=0)
    work = f"isolation forest of {len(X):,} × {X.shape[1]}, scikit-learn"
    yield line(work, partial(own.fit, X), partial(other.fit, X))
    for n_rows in (1_000, len(X)):
        asked = X[:n_rows]
        works = partial(own.score_samples, asked), partial(other.score_samples, asked)
        yield line(f"scores of {n_rows:,} rows", *works)


SURVEYS: dict[str, tuple[str, Table, Callable[[Scale], Iterator[tuple[str, ...]]]]] = {
    "numbers": ("ten targets of numbers", TEN, partial(_ten, False)),
    "labels": ("ten targets of two classes", TEN, partial(_ten, True)),
    "medians": ("absolute errors, against scikit-learn", OTHERS, _medians),
    "quantiles": ("quantiles of forests, against quantile-forest", OTHERS, _quantiles),
    "outliers": ("isolation forests, against scikit-learn", OTHERS, _outliers),
}
CASES = [
    Case(
        f"targets-{name}",
        "targets",
        words,
        lambda scale, table=table, lines=lines: Survey(table, partial(lines, scale)),
    )
    for name, (words, table, lines) in SURVEYS.items()
]
