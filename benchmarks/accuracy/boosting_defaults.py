"""Shrinkage of leaves and least hessians of boosted models: what defaults do on many tables.

    l2 / least hessian    of ours, on the same rows
    others                scikit-learn, LightGBM, XGBoost and CatBoost, as they come

Tables are those of the other accuracy benchmarks and of scikit-learn, and variants of them:

    ", few"     500 rows to fit on
    ", rare"    two classes, of which one has next to no rows: the rarest, or the highest numbers

All are cut to 3,000 rows to fit on and at most 6,000 held out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import dtrees
from benchmarks import data
from benchmarks.accuracy import categories
from benchmarks.accuracy.boosting_peers import catboost, texts, xgboost
from benchmarks.accuracy.seeds import take, with_error
from benchmarks.cases import THREADS, Case, Scale, Skipped, Survey, Table
from benchmarks.fits import boosting as fits

SEEDS = 1  # tables are many
FIT_ROWS, FEW_ROWS, HELD_OUT_ROWS = 3_000, 500, 6_000
WORDS = 500  # of a text: the most frequent
LEAST_OF_CLASS = 12  # rows, of all: fewer cannot be parted
RARE = 0.02
OURS = (
    *((l2, 1e-3) for l2 in (0, 0.3, 1, 2, 3, 10)),
    *((0, 0.3), (0, 1), (1, 0.03), (1, 0.1), (1, 0.3), (1, 1), (1, 3)),
)
PEERS = ("scikit-learn", "LightGBM", "XGBoost", "CatBoost")
CLASSES = (
    *("adult", "car", "connect4", "covertype_20k", "credit_default", "letter", "mushroom"),
    *("newsgroups20", "nursery", "shuttle", "spambase", "weather_aus"),
)
MANY_CLASSES = ("letter", "newsgroups20")  # which take long
NUMBERS = ("abalone", "bike_sharing_hour", "california_housing", "nycflights_33k")
MORE = ("adult, crossed", "flights, late", "force, kind", "anger, answer", "churn")
OF_SCIKIT_LEARN: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "breast_cancer": partial(sklearn.datasets.load_breast_cancer, return_X_y=True),
    "digits": partial(sklearn.datasets.load_digits, return_X_y=True),
    "hastie": partial(sklearn.datasets.make_hastie_10_2, 9_000, random_state=0),
    "wine": partial(sklearn.datasets.load_wine, return_X_y=True),
    "drawn, 10 % wrong": partial(
        sklearn.datasets.make_classification, 9_000, 20, n_informative=8, flip_y=0.1, random_state=0
    ),
    "drawn, 2 % of a class": partial(
        *(sklearn.datasets.make_classification, 9_000, 20),
        n_informative=8,
        weights=[0.98],
        flip_y=0.01,
        random_state=0,
    ),
}
TABLE = Table(
    ("log-loss, held-out rows", *(f"l2 {l2:g}, {least:g}" for l2, least in OURS), *PEERS),
    f"Log-loss, mean over {SEEDS} part of the rows. 100 iterations of 31 leaves, learning "
    "rate 0.1; l2 and least hessian of ours, the others as they come.",
)
MEANS = Table(
    (
        *("boosted models, means over tables", "log-loss", "geometric mean", "better than with 0"),
        *("tables", "accuracy less that with 0", "calibration error"),
    ),
    "Losses below .0001 count as .0001 in the geometric mean. Errors are those over tables.",
)


class Scores(NamedTuple):
    """Of one model on held-out rows."""

    log_loss: float
    accuracy: float
    calibration_error: float


def rare(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """Two classes, and at most `RARE` of the rows in the second one."""
    if y.dtype.kind == "f":
        second = y >= np.quantile(y, 1 - RARE)
    else:
        labels, counts = np.unique(y, return_counts=True)
        enough = counts >= 2 * LEAST_OF_CLASS
        second = y == labels[enough][np.argmin(counts[enough])]
    first = np.flatnonzero(~second)
    rows = np.flatnonzero(second)[: max(2 * LEAST_OF_CLASS, int(RARE * len(first)))]
    rows = np.sort(np.concatenate([first, rows]))
    return take(X, rows), second[rows].astype(int)


def of_known_classes(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """Without the rows of classes that are too small, classes by number."""
    labels, own, counts = np.unique(y, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(counts[own] >= LEAST_OF_CLASS)
    del labels
    return take(X, rows), np.unique(y[rows], return_inverse=True)[1]


def table_of(name: str) -> tuple[Any, np.ndarray, int]:
    """(X, y, rows to fit on)."""
    plain, _, variant = name.partition("; ")
    if plain in OF_SCIKIT_LEARN:
        X, y = OF_SCIKIT_LEARN[plain]()
    else:
        is_made = plain in categories.SETS
        X, y = categories.table_of(plain) if is_made else data.real(plain)
    if hasattr(X, "tocsc"):  # which scikit-learn does not take
        X = X.tocsc()
        X = X[:, np.sort(np.argsort(-np.diff(X.indptr), kind="stable")[:WORDS])].toarray()
    X = X if hasattr(X, "iloc") else pd.DataFrame(X)
    X, y = rare(X, y) if variant == "rare" else of_known_classes(X, y)
    return X, y, FEW_ROWS if variant == "few" else FIT_ROWS


def ours(l2: float, least: float, X: Any, y: np.ndarray, n_threads: int) -> Any:
    """A model of ours."""
    return dtrees.GradientBoostingClassifier(
        l2_regularization=l2, min_child_weight=least, early_stopping=False, n_jobs=n_threads
    ).fit(X, y)


def scores(model: Any, X: Any, y: np.ndarray) -> Scores:
    """Of shares, all classes of which are in `y` of the fit."""
    shares = np.asarray(model.predict_proba(X))
    sure, right = shares.max(axis=1), shares.argmax(axis=1) == y
    tenth = np.minimum((sure * 15).astype(int), 14)
    off = np.abs(np.bincount(tenth, sure - right, minlength=15)).sum() / len(y)
    labels = np.arange(shares.shape[1])
    return Scores(log_loss(y, shares, labels=labels), float(right.mean()), off)


@cache
def scores_of(name: str, seed: int, quick: bool = False) -> dict[str, Scores]:
    """Scores of all sides on one part of a table."""
    X, y, n_rows = table_of(name)
    every = np.arange(len(y))
    if quick:
        train = np.concatenate([np.flatnonzero(y == label)[:30] for label in np.unique(y)])
        out = np.setdiff1d(every, train)
    else:
        n_rows = min(n_rows, len(y) * 2 // 3)
        train, out = train_test_split(every, train_size=n_rows, stratify=y, random_state=seed)
    out = out[:HELD_OUT_ROWS]
    sides: dict[str, tuple[Callable[..., Any], Any]] = {
        f"l2 {l2:g}, {least:g}": (partial(ours, l2, least), X) for l2, least in OURS
    }
    sides["scikit-learn"] = fits.scikit_learn, data.ordinal(X)
    sides["LightGBM"] = fits.lightgbm, X
    sides["XGBoost"] = xgboost, X
    sides["CatBoost"] = catboost, texts(X)
    found = {}
    for side, (fit, table) in sides.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit(take(table, train), y[train], THREADS)
            found[side] = scores(model, take(table, out), y[out])
    return found


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    of_seeds = [scores_of(name, seed, scale.quick) for seed in range(1 if scale.quick else SEEDS)]
    losses = [np.mean([found[side].log_loss for found in of_seeds]) for side in of_seeds[0]]
    yield name, *(f"{loss:.4f}" for loss in losses)


def _means(scale: Scale) -> Iterator[tuple[str, ...]]:
    found = []
    for name in NAMES[:: 10 if scale.quick else 1]:
        with suppress(Skipped):
            found.append(scores_of(name, 0, scale.quick))
    for side in found[0] if found else ():
        first, own = (
            np.array([each[one] for each in found]) for one in (next(iter(found[0])), side)
        )
        less = own - first
        yield (
            side,
            f"{own[:, 0].mean():.4f}",
            f"{np.exp(np.log(np.maximum(own[:, 0], 1e-4)).mean()):.4f}",
            with_error(-less[:, 0], "+"),
            f"{np.count_nonzero(less[:, 0] < 0)} of {len(found)}",
            with_error(less[:, 1], "+"),
            f"{own[:, 2].mean():.4f}",
        )


def _survey(name: str, scale: Scale) -> Survey:
    table_of(name)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


NAMES = [
    *(name for name in CLASSES if name not in MANY_CLASSES),
    *(f"{name}; rare" for name in (*CLASSES, *NUMBERS)),
    *OF_SCIKIT_LEARN,
    *MORE,
    *(f"{name}; few" for name in CLASSES if name != "shuttle"),
    *(f"{name}; few" for name in ("digits", "hastie", "drawn, 10 % wrong")),
]
CASES = [
    Case(
        "accuracy-boosting-means",
        "accuracy",
        "l2 and least hessians of boosted models, means over tables",
        lambda scale: Survey(MEANS, partial(_means, scale)),
    ),
    *(
        Case(
            f"accuracy-boosting-defaults-{name}",
            "accuracy",
            f"l2 and least hessians of boosted models, {name}",
            partial(_survey, name),
        )
        for name in NAMES
    ),
]
