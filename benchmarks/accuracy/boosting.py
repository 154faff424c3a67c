"""Boosted models of dtrees, LightGBM, XGBoost, CatBoost and scikit-learn: how well they predict.

100 iterations of 31 leaves that are grown leaf by leaf, learning rate 0.1, 255 bins, no early
stopping, and everything else as each library has it. All get the categories as they are, but for
scikit-learn, whose 255 categories at most do not hold all sets: it gets their numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, root_mean_squared_error

from benchmarks import data
from benchmarks.accuracy.seeds import by_seed, error, take
from benchmarks.cases import THREADS, Case, Scale, Skipped, Survey, Table
from benchmarks.fits import boosting as fits
from benchmarks.forests.opponents import is_regression, wanted

SETS = (
    *("abalone", "adult", "bike_sharing_hour", "california_housing", "car", "connect4"),
    *("covertype_20k", "credit_default", "letter", "mushroom", "nursery", "nycflights_33k"),
    *("shuttle", "spambase", "weather_aus"),
)
PEERS = ("LightGBM", "XGBoost", "CatBoost")  # of which the best one counts
TABLE = Table(
    ("boosted models, held-out rows", "dtrees", *PEERS, "scikit-learn", "to the best", "verdict"),
    "Log-loss of classes, RMSE of numbers: mean over five seeds, and the standard error of ours. "
    "Seeds part the rows 2 : 1 (adult keeps its test part). To the best: the mean difference to "
    "the best of LightGBM, XGBoost and CatBoost, in standard errors of the difference or of the "
    "mean, whichever is larger; above 1 ours is worse.",
)

Fit = Callable[[Any, np.ndarray, int], Any]


def catboost(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of CatBoost, leaf by leaf."""
    library = wanted("catboost", "catboost")
    kind = library.CatBoostRegressor if is_regression(y) else library.CatBoostClassifier
    return kind(
        iterations=fits.ITERATIONS,
        learning_rate=0.1,
        grow_policy="Lossguide",
        max_leaves=31,
        border_count=254,
        thread_count=n_threads,
        random_seed=0,
        cat_features=[c for c in X if X[c].dtype == "category"],
        allow_writing_files=False,
        verbose=False,
    ).fit(X, y)


def xgboost(X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of XGBoost that is given the categories."""
    return fits.xgboost(X, y, n_threads, enable_categorical=True)


def texts(X: Any) -> Any:
    """Categories as CatBoost takes them: texts, the missing ones as a text of their own."""
    names = [c for c in X if X[c].dtype == "category"]
    return X.assign(
        **{c: pd.Categorical(X[c].astype(object).fillna("missing").astype(str)) for c in names}
    )


def loss(fit: Fit, X: Any, y: np.ndarray, seed: int, train: np.ndarray, out: np.ndarray) -> float:
    """Of rows held out, by a model of the others."""
    del seed  # nothing is drawn: it parts the rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_regression(y):
            model = fit(take(X, train), y[train], THREADS)
            return float(root_mean_squared_error(y[out], model.predict(take(X, out))))
        classes, own = np.unique(y[train], return_inverse=True)
        out = out[np.isin(y[out], classes)]  # nobody gives a share to a class of no row
        model = fit(take(X, train), own, THREADS)
        of_out = np.searchsorted(classes, y[out])
        shares = model.predict_proba(take(X, out))
        return float(log_loss(of_out, shares, labels=np.arange(len(classes))))


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
    }
    found: dict[str, np.ndarray] = {}
    for side, (fit, table) in sides.items():
        try:
            found[side] = by_seed(name, scale, len(y), partial(loss, fit, table, y))[0]
        except Skipped:
            continue
    ours, peers = found["dtrees"], [found[peer] for peer in PEERS if peer in found]
    best = min(peers, key=np.mean, default=found["scikit-learn"])
    worse = ours.mean() - best.mean()
    noise = max(error(ours - best), error(ours), error(best))
    ratio = worse / noise if noise > 0 else float(np.sign(worse))
    yield (
        f"{name}, {'RMSE' if is_regression(y) else 'log-loss'}",
        f"{ours.mean():.4g} ± {error(ours):.2g}",
        *(f"{found[peer].mean():.4g}" if peer in found else "-" for peer in list(sides)[1:]),
        f"{ratio:+.1f}",
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
