"""Tables of every shape, beside scikit-learn: which corners are slower?

From 10 to 1,000,000 rows, from 1 to 200,000 columns; floats, sparse ones, strings, and mixed frames
with missing values. Trees, forests, extra trees and boosted models are fitted and predict.

Both sides have one thread, and processor time is counted, so that a busy machine changes little.
scikit-learn gets strings as ordinal codes by a pipeline whose encoder is timed as our coding is;
numbers are left as they are. Trees of many rows are limited: they would take scikit-learn minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn import ensemble, tree
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits

import dtrees
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.measure import in_turns

TURNS, BUDGET = 5, 3.0  # of a line, and seconds
MOST = 1.1  # times scikit-learn
MANY_ROWS = 50_000
MOST_BOOSTED = 1_000  # columns
MOST_CELLS = 1_000_000  # of a forest of numbers, whose nodes look at all columns
TABLE = Table(
    ("table", "model", "fit, s", "theirs, s", "times", "predict, s", "theirs, s", "times"),
    f"Processor time of one thread, medians of turns side by side. More than {MOST} times"
    " scikit-learn is bold.",
)
SHAPES = {
    "floats": (
        *((10, 1), (10, 1_000), (10, 200_000), (100, 10), (100, 200_000), (300, 50_000)),
        *((1_000, 1), (1_000, 100), (1_000, 20_000), (10_000, 10), (10_000, 1_000)),
        *((100_000, 1), (100_000, 100), (1_000_000, 1), (1_000_000, 10)),
    ),
    "sparse": (
        *((10, 1_000), (100, 200_000), (1_000, 100), (1_000, 50_000), (10_000, 1_000)),
        *((20_000, 20_000), (100_000, 100)),
    ),
    "strings": ((10, 1), (100, 300), (1_000, 10), (10_000, 100), (100_000, 10), (1_000_000, 1)),
    "mixed": ((10, 4), (100, 300), (1_000, 12), (10_000, 100), (100_000, 12)),
}
MODELS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "tree": ("DecisionTreeClassifier", tree.DecisionTreeClassifier, {}),
    "forest": ("RandomForestClassifier", ensemble.RandomForestClassifier, {"n_estimators": 20}),
    "extra trees": ("ExtraTreesClassifier", ensemble.ExtraTreesClassifier, {"n_estimators": 20}),
    "extra trees of numbers": (
        "ExtraTreesRegressor",
        ensemble.ExtraTreesRegressor,
        {"n_estimators": 20},
    ),
    "boosting": (
        "GradientBoostingClassifier",
        ensemble.HistGradientBoostingClassifier,
        {"max_iter": 20, "early_stopping": False},
    ),
}
LARGE = {
    "tree": {"max_depth": 10},
    "forest": {"n_estimators": 4, "max_depth": 10},
    "extra trees": {"n_estimators": 4, "max_depth": 10},
    "extra trees of numbers": {"n_estimators": 4, "max_depth": 10},
    "boosting": {"max_iter": 5},
}


def table_of(kind: str, n_rows: int, n_columns: int) -> tuple[Any, np.ndarray]:
    """X and two classes, which depend on the first columns."""
    rng = np.random.default_rng(0)
    if kind == "sparse":
        X = scipy.sparse.random(n_rows, n_columns, 0.01, "csr", np.float32, rng)
        signal = np.asarray(X[:, : max(1, n_columns // 10)].sum(axis=1)).ravel()
    elif kind == "floats":
        X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
        signal = X[:, 0] + X[:, -1]
    else:
        signal = rng.normal(size=n_rows)
        columns: dict[str, Any] = {}
        for j in range(n_columns):
            if kind == "strings" or j % 2:
                labels = np.array([f"level {i}" for i in range(4 + j % 30)])
                columns[f"c{j}"] = labels[rng.integers(0, len(labels), n_rows)]
                signal += columns[f"c{j}"] == "level 1" if j < 4 else 0
            else:
                numbers = rng.normal(size=n_rows)
                columns[f"c{j}"] = np.where(rng.random(n_rows) < 0.1, np.nan, numbers)
        X = pd.DataFrame(columns)
    y = signal + rng.normal(size=n_rows) > np.median(signal)
    y[:2] = 0, 1
    return X, y.astype(int)


def theirs_of(model: Any, kind: str) -> Any:
    """scikit-learn's model, with what it needs for strings."""
    if kind not in ("strings", "mixed"):
        return model
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    strings = make_column_selector(dtype_exclude="number")
    encoded = make_column_transformer((encoder, strings), remainder="passthrough")
    return make_pipeline(encoded, model)


def compared(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[str, str, str]:
    """Seconds of both sides, and how many times theirs ours are."""
    (mine, other), _ = in_turns((ours, theirs), TURNS, BUDGET, time.process_time)
    times = mine / max(other, 1e-9)
    return f"{mine:.3g}", f"{other:.3g}", f"**{times:.2f}**" if times > MOST else f"{times:.2f}"


def _lines(kind: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    shapes = SHAPES[kind][:3] if scale.quick else SHAPES[kind]
    for n_rows, n_columns in shapes:
        X, y = table_of(kind, n_rows, n_columns)
        for name, (our_name, their_class, parameters) in MODELS.items():
            if name == "boosting" and (kind == "sparse" or n_columns > MOST_BOOSTED):
                continue  # theirs has no sparse tables, and takes minutes for wide ones
            if name == "extra trees of numbers" and n_rows * n_columns > MOST_CELLS:
                continue
            if n_rows >= MANY_ROWS:
                parameters = parameters | LARGE[name]
            mine = getattr(dtrees, our_name)(n_jobs=1, random_state=0, **parameters)
            other = theirs_of(their_class(random_state=0, **parameters), kind)
            with threadpool_limits(1):  # theirs that wait for work take processor time, too
                fits = compared(partial(mine.fit, X, y), partial(other.fit, X, y))
                predictions = compared(partial(mine.predict, X), partial(other.predict, X))
            yield f"{kind}, {n_rows:,} x {n_columns:,}", name, *fits, *predictions


CASES = [
    Case(
        f"shapes-{kind}",
        "shapes",
        f"tables of all shapes: {kind}",
        lambda scale, kind=kind: Survey(TABLE, partial(_lines, kind, scale)),
    )
    for kind in SHAPES
]
