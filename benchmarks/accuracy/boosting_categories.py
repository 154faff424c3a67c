"""Boosted models on tables with categories: our rule beside LightGBM's and CatBoost's.

    dtrees        many categories pay, in a column or in the smaller side of a subset
    no penalty    the same with `category_penalty=0`
    ordinal       their numbers in the order of the names, to dtrees
    LightGBM      as it comes: `cat_smooth` and `cat_l2` 10, at most 32 categories on a side
    unsmoothed    with `cat_smooth` and `cat_l2` 0
    CatBoost      ordered statistics of categories, as it comes and with the parameters of ours

The sets of the accuracy benchmark are parted 2 : 1; tables of many categories (`categories`) are
cut to 4,000 rows to fit on and at most 6,000 held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import dtrees
from benchmarks import data
from benchmarks.accuracy import categories
from benchmarks.accuracy.boosting import worse_by
from benchmarks.accuracy.boosting_peers import Fit, catboost, catboost_matched, loss, texts
from benchmarks.accuracy.seeds import SEEDS, by_seed, error
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.fits import boosting as fits
from benchmarks.forests.opponents import is_regression, wanted

SETS = (
    *("adult", "bike_sharing_hour", "car", "connect4", "credit_default", "mushroom", "nursery"),
    *("nycflights_33k", "weather_aus"),
)
TABLES = [
    *("adult, crossed", "california, cells", "flights, late", "flights, delay", "loans, rate"),
    *("hotel, price", "films, rating", "force, kind", "colleges, earnings", "baseball, stolen"),
    *("anger, answer", "churn", "lectures, rating"),
]
PEERS = ("LightGBM", "CatBoost, matched")
TABLE = Table(
    (
        "boosted models on tables with categories",
        "most categories",
        "dtrees",
        "no penalty",
        "ordinal",
        "LightGBM",
        "LightGBM, unsmoothed",
        "CatBoost",
        "CatBoost, matched",
        "to the best of LightGBM and CatBoost, matched",
    ),
    "100 iterations of 31 leaves, learning rate 0.1. Log-loss of classes, RMSE of numbers: mean "
    "over five seeds, which part the rows, and the standard error of ours. The last column is in "
    "standard errors of the difference or of the mean, whichever is larger; above 1 ours is worse.",
)


def free(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of ours in which categories pay nothing."""
    name = f"GradientBoosting{'Regressor' if is_regression(y) else 'Classifier'}"
    shared = {"max_iter": fits.ITERATIONS, "early_stopping": False, "n_jobs": n_threads}
    return getattr(dtrees, name)(category_penalty=0, **shared).fit(X, y)


def unsmoothed(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of LightGBM that trusts the means of its categories."""
    library = wanted("lightgbm", "lightgbm")
    kind = library.LGBMRegressor if is_regression(y) else library.LGBMClassifier
    plain = {"cat_smooth": 0, "cat_l2": 0, "verbose": -1}
    return kind(n_estimators=fits.ITERATIONS, n_jobs=n_threads, **plain).fit(X, y)


def ordinal(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of ours that is given numbers."""
    return fits.ours(X, y, n_threads)


def cut_by_seed(
    n_rows: int, scale: Scale, side: Callable[[int, np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """As `by_seed`, of a table that is cut."""
    found = []
    for seed in range(2 if scale.quick else SEEDS):
        rows = np.random.default_rng(seed).permutation(n_rows)
        n = min(300 if scale.quick else categories.FIT_ROWS, 2 * n_rows // 3)
        held_out = 300 if scale.quick else categories.HELD_OUT_ROWS
        found.append(side(seed, rows[:n], rows[n : n + held_out]))
    return np.array(found)


def _lines(name: str, is_shared: bool, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.real(name) if is_shared else categories.table_of(name)
    y = y.astype(float) if is_regression(y) else np.unique(y, return_inverse=True)[1]
    sides: dict[str, tuple[Fit, Any]] = {
        "dtrees": (fits.ours, X),
        "no penalty": (free, X),
        "ordinal": (ordinal, data.ordinal(X)),
        "LightGBM": (fits.lightgbm, X),
        "LightGBM, unsmoothed": (unsmoothed, X),
        "CatBoost": (catboost, texts(X)),
        "CatBoost, matched": (catboost_matched, texts(X)),
    }
    found: dict[str, np.ndarray] = {}
    for side, (fit, table) in sides.items():
        score = partial(loss, fit, table, y)
        try:
            if is_shared:
                found[side] = by_seed(name, scale, len(y), score)[0]
            else:
                found[side] = cut_by_seed(len(y), scale, score)
        except Skipped:
            continue
    ours = found["dtrees"]
    peers = [found[peer] for peer in PEERS if peer in found]
    yield (
        f"{name}, {'RMSE' if is_regression(y) else 'log-loss'}",
        f"{max(X[c].nunique() for c in X if X[c].dtype == 'category'):,}",
        f"{ours.mean():.4g} ± {error(ours):.2g}",
        *(f"{found[side].mean():.4g}" if side in found else "-" for side in list(sides)[1:]),
        f"{worse_by(ours, peers)[1]:+.1f}" if peers else "-",
    )


def _survey(name: str, is_shared: bool, scale: Scale) -> Survey:
    if is_shared:  # or it is skipped
        data.real(name)
    else:
        categories.table_of(name)
    return Survey(TABLE, partial(_lines, name, is_shared, scale))


CASES = [
    Case(
        f"boosting-categories-{name.replace(', ', '-').replace(' ', '_')}",
        "accuracy",
        f"boosted models, {name}, five seeds: categories, against LightGBM, CatBoost",
        partial(_survey, name, name in SETS),
    )
    for name in (*SETS, *TABLES)
]
