"""Prediction intervals: errors that count alike, or in units of what trees say of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import PredefinedSplit

import dtrees
from benchmarks import data
from benchmarks.accuracy.seeds import SEEDS, take
from benchmarks.cases import THREADS, Case, Scale, Survey, Table
from dtrees.core.predict.intervals import Calibration
from dtrees.model_selection import cross_val_predict, cross_validate

ROWS, NEW, TREES, SHARE = 1_500, 600, 100, 0.9
WAYS = [f"{of}, {way}" for of in ("bags", "folds", "tree, folds") for way in ("in units", "alike")]
NOTE = f"Interval score in deviations of the target, mean over {SEEDS} divisions. Less is better."


def tables() -> Iterator[tuple[str, Any, np.ndarray]]:
    """(name, X, y)."""
    for name in ("abalone", "california_housing", "bike_sharing_hour", "nycflights_33k"):
        yield name, *data.real(name)
    yield "diabetes", *load_diabetes(return_X_y=True)
    yield "friedman 1", *make_friedman1(2_500, noise=1.0, random_state=0)
    rng = np.random.default_rng(0)
    X, noise = rng.random((2_500, 5)), rng.normal(size=2_500)
    yield "noise by a column", X, X[:, 0] + noise * (0.1 + 2 * X[:, 1] ** 2)
    yield "skewed", X, np.exp(2 * X[:, 0] + X[:, 1] * noise)


def judged(ends: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Interval score, coverage, and that of the worst fifth of the rows by width."""
    width, off = ends[:, 1] - ends[:, 0], np.maximum(ends[:, 0] - y, y - ends[:, 1]).clip(min=0)
    fifths = np.array_split(off[np.argsort(width, kind="stable")] == 0, 5)
    score = (width + 2 / (1 - SHARE) * off).mean() / y.std()
    return score, (off == 0).mean(), min(fifth.mean() for fifth in fifths)


def intervals(X: Any, y: np.ndarray, new: Any, seed: int, n_trees: int) -> Iterator[np.ndarray]:
    """Ends for new rows, in the order of `WAYS`."""
    forest = dtrees.RandomForestRegressor(n_trees, n_jobs=THREADS, random_state=seed)
    bagged = dtrees.RandomForestRegressor(**forest.get_params() | {"oob_score": True}).fit(X, y)
    yield bagged.prediction_interval(new, SHARE)
    del bagged._oob_scaled_errors  # as in models of older versions
    bagged._oob_errors = np.abs(y - bagged.oob_prediction_)
    yield bagged.prediction_interval(new, SHARE)
    cv = PredefinedSplit(np.random.default_rng(seed).permutation(len(y)) % 5)
    for model in (forest, dtrees.DecisionTreeRegressor(min_samples_leaf=20, random_state=seed)):
        found = cross_validate(model, X, y, cv=cv, return_estimator=True)
        yield found.prediction_interval(new, SHARE)
        values = np.column_stack([fitted.predict(new) for fitted in found["estimator"]])
        alike = Calibration(np.abs(y - cross_val_predict(model, X, y, cv=cv)), None, cv.test_fold)
        yield alike.ends(values, SHARE)


def _lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    found = []
    for name, X, y in tables():
        n_rows, of_seeds = scale.rows(min(ROWS, len(y) * 2 // 3)), []
        for seed in range(1 if scale.quick else SEEDS):
            known, new = np.split(np.random.default_rng(seed).permutation(len(y)), [n_rows])
            ends = intervals(take(X, known), y[known], take(X, new[:NEW]), seed, scale.rows(TREES))
            of_seeds.append([judged(each, y[new[:NEW]]) for each in ends])
        found.append(np.mean(of_seeds, axis=0))
        yield name, *(f"{score:.2f}" for score in found[-1][:, 0])
    names = ("mean interval score", "mean coverage", "coverage of the worst fifth, mean")
    for name, means in zip(names, np.mean(found, axis=0).T, strict=True):
        yield name, *(f"{mean:.3f}" for mean in means)
    yield "least coverage of a table", *(f"{share:.3f}" for share in np.min(found, axis=0)[:, 1])


TABLE = Table((f"intervals of {SHARE}", *WAYS), NOTE)
ABOUT = "accuracy-intervals", "accuracy", "prediction intervals of forests and of folds"
CASES = [Case(*ABOUT, lambda scale: Survey(TABLE, lambda: _lines(scale)))]
