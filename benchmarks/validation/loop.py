"""Cross-validation against the loop that it stands for, which must never be cheaper.

    ours     cross_validate(estimator, X, y, cv=splits)
    loop     for train, test in splits: clone(estimator).fit(X[train], y[train])
                                                        .score(X[test], y[test])

Both are dtrees, in the same regime, on two threads, coding and scores included. The loop makes one
model fewer, where ours has the model of all rows, too. The limit is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import dask
import numpy as np
import scipy.sparse
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Scale, Survey, Table
from benchmarks.measure import in_turns
from dtrees.model_selection import cross_validate

TURNS, BUDGET = 21, 10.0  # of a line, and its seconds; medians of five turns of 30 ms vary by .1
MOST = 1.05  # times the loop
TABLE = Table(
    ("work", "the loop, s", "`cross_validate`, s", "times the loop", "verdict"),
    f"Medians of turns side by side. At most {MOST} times the loop is asked of each line.",
)
FULL: dict[str, Any] = {}
DEPTH: dict[str, Any] = {"max_depth": 6}
LEAVES: dict[str, Any] = {"min_samples_leaf": 50}
BINS: dict[str, Any] = {"max_bins": 255}
BALANCED: dict[str, Any] = {"class_weight": "balanced"}
TEXT_ROWS = 4_000
PREFIX = "loop-"


@dataclass(frozen=True)
class Work:
    """A table, a model and its splits."""

    table: str
    parameters: dict[str, Any]
    model: str = "DecisionTree"  # whose name ends with its kind
    cv: Any = field(default_factory=lambda: KFold(10, shuffle=True, random_state=0))
    weighted: bool = False  # by fractions, one per row
    regime: str | None = None  # of both sides; None: the local one, where nobody has a cluster


def folds(n: int) -> KFold:
    """Random folds."""
    return KFold(n, shuffle=True, random_state=0)


@dataclass(frozen=True)
class GroupsLeftOut:
    """Leave-one-group-out of random groups."""

    n_groups: int

    def split(self, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The splits."""
        groups = np.random.default_rng(0).integers(0, self.n_groups, len(X))
        return LeaveOneGroupOut().split(X, groups=groups)


FEW = {"n_estimators": 20}
ONE = ShuffleSplit(1, test_size=0.1, random_state=0)
BOOSTED = {"max_iter": 50, "early_stopping": False}
MANY = {
    **{f"{n} shuffle-splits": ShuffleSplit(n, random_state=0) for n in (25, 50, 100)},
    "10 times 5 folds": RepeatedKFold(n_splits=5, n_repeats=10, random_state=0),
    "10 times 10 folds": RepeatedKFold(n_splits=10, n_repeats=10, random_state=0),
    "200 groups": GroupsLeftOut(200),
}
WORKS = {
    # dense, 255 bins
    "letter, full": Work("letter", BINS),
    "letter, depth 6": Work("letter", BINS | DEPTH),
    "adult, full": Work("adult", BINS),
    "adult, depth 6": Work("adult", BINS | DEPTH),
    "adult, leaves of 50": Work("adult", BINS | LEAVES),
    "adult, leaves of 50, 3 folds": Work("adult", BINS | LEAVES, cv=folds(3)),
    "adult, leaves of 50, 2 folds": Work("adult", BINS | LEAVES, cv=folds(2)),
    "weather, depth 6": Work("weather_aus", BINS | DEPTH),
    "mushroom, full": Work("mushroom", BINS),
    "nursery, full, 50 folds": Work("nursery", BINS, cv=folds(50)),
    "spambase, full": Work("spambase", BINS),
    "california, leaves of 50": Work("california_housing", BINS | LEAVES),
    "connect4, depth 6": Work("connect4", BINS | DEPTH),
    # exact numbers
    "covertype, exact, full": Work("covertype_20k", FULL),
    "covertype, exact, depth 6": Work("covertype_20k", DEPTH),
    "california, exact, full": Work("california_housing", FULL),
    "california, exact, depth 6": Work("california_housing", DEPTH),
    "60,000 x 8 exact, depth 6": Work("exact", DEPTH),
    "60,000 x 8 exact, leaves of 50": Work("exact", LEAVES),
    "abalone, exact, full": Work("abalone", FULL),
    "noise, 100,000 x 4 exact, depth 5": Work("noise", {"max_depth": 5}),
    "noise, 100,000 x 4 exact, regression, depth 5": Work("noise of numbers", {"max_depth": 5}),
    # sparse
    "text, full": Work("text", FULL),
    "text, depth 6": Work("text", DEPTH),
    "text, depth 6, 3 folds": Work("text", DEPTH, cv=folds(3)),
    "one-hot adult, sparse, full": Work("one-hot", FULL),
    "one-hot adult, sparse, depth 6": Work("one-hot", DEPTH),
    # weights and classes
    "adult, balanced, leaves of 50": Work("adult", BINS | LEAVES | BALANCED),
    "adult, balanced, full": Work("adult", BINS | BALANCED),
    "text, balanced, full": Work("text", BALANCED),
    "text, balanced, depth 6": Work("text", DEPTH | BALANCED),
    "adult, row weights, leaves of 50": Work("adult", BINS | LEAVES, weighted=True),
    "california, row weights, leaves of 50": Work(
        "california_housing", BINS | LEAVES, weighted=True
    ),
    "adult, balanced, row weights, leaves of 50": Work(
        "adult", BINS | LEAVES | BALANCED, weighted=True
    ),
    "adult, balanced, row weights, full": Work("adult", BINS | BALANCED, weighted=True),
    "text, balanced, row weights, full": Work("text", BALANCED, weighted=True),
    "adult, forest, balanced, row weights": Work(
        "adult", BINS | FEW | {"max_depth": 8} | BALANCED, "RandomForest", weighted=True
    ),
    "adult, entropy, leaves of 50": Work("adult", BINS | LEAVES | {"criterion": "entropy"}),
    # few splits
    "california, exact, full, one split": Work("california_housing", FULL, cv=ONE),
    "california, exact, full, 3 folds": Work("california_housing", FULL, cv=folds(3)),
    "california, exact, full, 5 folds": Work("california_housing", FULL, cv=folds(5)),
    "california, exact, depth 6, time series": Work(
        "california_housing", DEPTH, cv=TimeSeriesSplit(5)
    ),
    "california, exact, full, time series": Work("california_housing", FULL, cv=TimeSeriesSplit(5)),
    "adult, full, 2 folds": Work("adult", BINS, cv=folds(2)),
    "adult, depth 6, one split": Work("adult", BINS | DEPTH, cv=ONE),
    "letter, full, 2 folds": Work("letter", BINS, cv=folds(2)),
    "letter, forest, full, one split": Work("letter", BINS | FEW, "RandomForest", cv=ONE),
    "letter, forest, full, 2 folds": Work("letter", BINS | FEW, "RandomForest", cv=folds(2)),
    "letter, forest, full, 3 folds": Work("letter", BINS | FEW, "RandomForest", cv=folds(3)),
    "adult, forest, depth 8, 2 folds": Work(
        "adult", BINS | FEW | {"max_depth": 8}, "RandomForest", cv=folds(2)
    ),
    "text, depth 6, one split": Work("text", DEPTH, cv=ONE),
    "adult, bagging, full, 5 folds": Work(
        "adult", BINS | {"n_estimators": 10}, "Bagging", cv=folds(5)
    ),
    "abalone, poisson, depth 6": Work("abalone", DEPTH | {"criterion": "poisson"}),
    "adult, boosting, 50 iterations, 3 folds": Work("adult", BOOSTED, "GradientBoosting", folds(3)),
    "california, boosting, 50 iterations, one split": Work(
        "california_housing", BOOSTED, "GradientBoosting", ONE
    ),
    # splits
    "adult, depth 6, 10 shuffle-splits": Work(
        "adult", BINS | DEPTH, cv=ShuffleSplit(10, random_state=0)
    ),
    "adult, leaves of 50, 5 times 5 folds": Work(
        "adult", BINS | LEAVES, cv=RepeatedKFold(n_splits=5, n_repeats=5, random_state=0)
    ),
    **{
        f"{table}, {name}, {cv}": Work(table, BINS | parameters, cv=many)
        for table in ("letter", "adult", "california_housing")
        for name, parameters in (("full", FULL), ("depth 6", DEPTH), ("leaves of 50", LEAVES))
        for cv, many in MANY.items()
    },
    "adult, forest, depth 8, 25 shuffle-splits": Work(
        "adult", BINS | FEW | {"max_depth": 8}, "RandomForest", cv=MANY["25 shuffle-splits"]
    ),
    # forests
    "adult, forest, depth 8": Work("adult", BINS | FEW | {"max_depth": 8}, "RandomForest"),
    "letter, forest, full": Work("letter", BINS | FEW, "RandomForest"),
    "adult, forest, balanced": Work(
        "adult", BINS | FEW | {"max_depth": 8} | BALANCED, "RandomForest"
    ),
    "california, forest, leaves of 50": Work(
        "california_housing", BINS | FEW | LEAVES, "RandomForest"
    ),
    "california, exact, extra trees, full": Work(
        "california_housing", FEW | {"max_bins": None}, "ExtraTrees"
    ),
    "california, exact, extra trees, depth 8": Work(
        "california_housing", FEW | {"max_bins": None, "max_depth": 8}, "ExtraTrees"
    ),
    "adult, extra trees, depth 8": Work("adult", BINS | FEW | {"max_depth": 8}, "ExtraTrees"),
    "text, forest, depth 4": Work("text", FEW | {"max_depth": 4}, "RandomForest"),
    "text, forest, depth 8": Work("text", FEW | {"max_depth": 8}, "RandomForest"),
    "text, forest, full": Work("text", FEW, "RandomForest"),
    "text, forest, balanced": Work("text", FEW | {"max_depth": 8} | BALANCED, "RandomForest"),
    "text, extra trees, depth 8": Work("text", FEW | {"max_depth": 8}, "ExtraTrees"),
    "one-hot adult, sparse, forest, depth 8": Work(
        "one-hot", FEW | {"max_depth": 8}, "RandomForest"
    ),
    # rounds of blocks on threads, and workers that have the whole table, on threads as well
    "rounds: adult, leaves of 50": Work("adult", BINS | LEAVES, regime="partitioned"),
    "rounds: adult, balanced, leaves of 50": Work(
        "adult", BINS | LEAVES | BALANCED, regime="partitioned"
    ),
    "rounds: noise, 100,000 x 4 exact, depth 5": Work(
        "noise", {"max_depth": 5}, regime="partitioned"
    ),
    "rounds: text, depth 3, 3 folds": Work(
        "text", {"max_depth": 3}, cv=folds(3), regime="partitioned"
    ),
    "cluster: adult, balanced, leaves of 50": Work(
        "adult", BINS | LEAVES | BALANCED, regime="replicated"
    ),
    "cluster: noise, 100,000 x 4 exact, depth 5": Work(
        "noise", {"max_depth": 5}, regime="replicated"
    ),
}


@cache
def _made(name: str, n_rows: int) -> tuple[Any, np.ndarray]:
    """Tables that are made here."""
    rng = np.random.default_rng(0)
    if name == "noise":
        return rng.normal(size=(n_rows, 4)), rng.integers(0, 2, n_rows)
    if name == "noise of numbers":
        return rng.normal(size=(n_rows, 4)), rng.normal(size=n_rows)
    if name == "exact":
        X = rng.normal(size=(n_rows, 8))
        return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows) > 0).astype(int)
    X, y = data.real("adult")
    numbers = data.ordinal(X)[:n_rows]
    parts = []
    for column in numbers.T:
        values, codes = np.unique(column, return_inverse=True)
        if len(values) > 120:
            parts.append(scipy.sparse.csc_array(column[:, None]))
        else:
            cells = np.ones(len(codes)), (np.arange(len(codes)), codes.ravel())
            parts.append(scipy.sparse.csc_array(cells, shape=(len(codes), len(values))))
    return scipy.sparse.hstack(parts, format="csr"), y[:n_rows]


def table_of(name: str, scale: Scale) -> tuple[Any, np.ndarray]:
    """X and y."""
    if name == "text":
        X, y = data.real("newsgroups20")
        n_rows = scale.rows(TEXT_ROWS)
        return X[:n_rows], y[:n_rows]
    if name.startswith("noise"):
        return _made(name, scale.rows(100_000))
    if name in ("exact", "one-hot"):
        return _made(name, scale.rows(60_000))
    return data.real_part(name, scale)


def part_of(X: Any, rows: np.ndarray) -> Any:
    """Rows of a table."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def estimator_of(work: Work, y: np.ndarray) -> Any:
    """The model of a work, not fitted."""
    kind = "Classifier" if y.dtype.kind != "f" else "Regressor"
    return getattr(dtrees, work.model + kind)(random_state=0, n_jobs=THREADS, **work.parameters)


@contextmanager
def in_regime(regime: str | None) -> Iterator[None]:
    """A regime in force; the cluster that one needs is threads of this process."""
    with ExitStack() as stack:
        if regime == "replicated":
            how = {"n_workers": 1, "threads_per_worker": THREADS, "dashboard_address": ":0"}
            cluster = stack.enter_context(LocalCluster(processes=False, **how))
            stack.enter_context(Client(cluster))
        if regime is not None:
            stack.enter_context(dask.config.set({"dtrees.regime": regime}))
        yield


def _lines(name: str, X: Any, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    work = WORKS[name]
    estimator, splits = estimator_of(work, y), list(work.cv.split(y))
    weight = np.random.default_rng(0).random(len(y)) + 0.5 if work.weighted else None

    def loop() -> list[float]:
        scores = []
        for train, test in splits:
            given = {} if weight is None else {"sample_weight": weight[train]}
            model = clone(estimator).fit(part_of(X, train), y[train], **given)
            scores.append(model.score(part_of(X, test), y[test]))
        return scores

    def ours() -> np.ndarray:
        params = None if weight is None else {"sample_weight": weight}
        scores: np.ndarray = cross_validate(estimator, X, y, cv=splits, params=params)["test_score"]
        return scores

    with in_regime(work.regime):
        (theirs, mine), _ = in_turns((loop, ours), TURNS, BUDGET)
    times = mine / theirs
    verdict = scale.verdict(times <= MOST, f"{times:.2f}")
    yield name, f"{theirs:.3f}", f"{mine:.3f}", f"{times:.2f}", verdict


def _survey(name: str, scale: Scale) -> Survey:
    X, y = table_of(WORKS[name].table, scale)
    return Survey(TABLE, partial(_lines, name, X, y, scale))


CASES = [
    Case(
        PREFIX + name.replace(",", "").replace(":", "").replace(" ", "_"),
        "loop",
        f"cross-validation against the loop: {name}",
        partial(_survey, name),
    )
    for name in WORKS
]
