"""Boosted models of dtrees, LightGBM, XGBoost, CatBoost and scikit-learn: how well they predict.

Each library as it comes, and with the parameters of ours: `boosting_peers` says which. All get the
categories as they are, but for scikit-learn, whose 255 categories at most do not hold all sets: it
gets their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.accuracy.boosting_peers import (
    Fit,
    catboost,
    catboost_matched,
    lightgbm_matched,
    loss,
    texts,
    xgboost,
    xgboost_matched,
)
from benchmarks.accuracy.seeds import by_seed, error
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.fits import boosting as fits
from benchmarks.forests.opponents import is_regression

SETS = (
    *("abalone", "adult", "bike_sharing_hour", "california_housing", "car", "connect4"),
    *("covertype_20k", "credit_default", "letter", "mushroom", "nursery", "nycflights_33k"),
    *("shuttle", "spambase", "weather_aus"),
)
AS_THEY_COME = ("LightGBM", "XGBoost", "CatBoost")
MATCHED = ("LightGBM, matched", "XGBoost, matched", "CatBoost, matched")
OF_ONE_PART = 1e-3  # of a loss: counts as its standard error where there is one part alone
SHOWN = (*AS_THEY_COME, "scikit-learn", *MATCHED)
TABLE = Table(
    (
        "boosted models, held-out rows",
        "dtrees",
        *SHOWN,
        "to the best as it comes",
        "to the best matched",
        "verdict",
    ),
    "Log-loss of classes, RMSE of numbers: mean over five seeds, and the standard error of ours. "
    "Seeds part the rows 2 : 1 (adult keeps its test part). Matched: l2 1, 20 rows in a leaf, no "
    "drawn rows, no noise, cuts by rows. To the best: the mean difference to "
    "the best of LightGBM, XGBoost and CatBoost, in standard errors of the difference or of the "
    "mean, whichever is larger (of adult, a thousandth of the loss); above 1 ours is worse. The "
    "verdict is on the matched ones.",
)


def worse_by(ours: np.ndarray, peers: list[np.ndarray]) -> tuple[float, float]:
    """Mean difference to the best one, and the same in standard errors."""
    best = min(peers, key=np.mean)
    worse = float(ours.mean() - best.mean())
    noise = max(error(ours - best), error(ours), error(best))
    return worse, worse / (noise if noise > 0 else OF_ONE_PART * best.mean())


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.real(name)
    if not is_regression(y):
        y = np.unique(y, return_inverse=True)[1]
    sides: dict[str, tuple[Fit, Any]] = {
        "dtrees": (fits.ours, X),
        "LightGBM": (fits.lightgbm, X),
        "XGBoost": (xgboost, X),
        "CatBoost": (catboost, texts(X)),
        "scikit-learn": (fits.scikit_learn, data.ordinal(X)),
        "LightGBM, matched": (lightgbm_matched, X),
        "XGBoost, matched": (xgboost_matched, X),
        "CatBoost, matched": (catboost_matched, texts(X)),
    }
    found: dict[str, np.ndarray] = {}
    for side, (fit, table) in sides.items():
        try:
            found[side] = by_seed(name, scale, len(y), partial(loss, fit, table, y))[0]
        except Skipped:
            continue
    ours = found["dtrees"]
    ratios = []
    for peers in (AS_THEY_COME, MATCHED):
        theirs = [found[peer] for peer in peers if peer in found] or [found["scikit-learn"]]
        worse, ratio = worse_by(ours, theirs)
        ratios.append(ratio)
    yield (
        f"{name}, {'RMSE' if is_regression(y) else 'log-loss'}",
        f"{ours.mean():.4g} ± {error(ours):.2g}",
        *(f"{found[peer].mean():.4g}" if peer in found else "-" for peer in SHOWN),
        *(f"{ratio:+.1f}" for ratio in ratios),
        scale.verdict(ratio <= 1, f"{ratio:.1f} standard errors worse", aim=worse <= 0),
    )


def _survey(name: str, scale: Scale) -> Survey:
    data.real(name)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"accuracy-boosting-{name}",
        "accuracy",
        f"boosted models, {name}, five seeds, against LightGBM, XGBoost, CatBoost",
        partial(_survey, name),
    )
    for name in SETS
]
