"""Rows down a hundred fully grown trees."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.forests import opponents


def _predict(opponent: str, one_row: bool, scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(100_000))
    rows = X[:1] if one_row else X
    own = opponents.ours(X, y, n_estimators=100)
    other = getattr(opponents, opponent)(X, y, n_estimators=100)
    return Contest(
        lambda: own.predict_proba(rows),
        {opponent.replace("_", "-"): lambda: other.predict_proba(rows)},
        lambda first, second: f"mean difference {np.abs(first - second).mean():.3f}",
    )


@cache
def _adult() -> tuple[Any, np.ndarray]:
    """Adult as it stands in the examples: 48,842 rows, eight columns of strings, six of int64."""
    path = Path(__file__).resolve().parent.parent.parent / "examples" / "adult.csv.gz"
    table = pd.read_csv(path)
    return table.drop(columns="target"), table["target"].to_numpy(str)


def _mixed(columns: str, one_row: bool, n_trees: int, scale: Scale) -> Contest:
    """Our native categories, or whole numbers alone, against scikit-learn on ordinal codes."""
    X, y = _adult()
    if scale.quick:
        X, y = X[:2_000], y[:2_000]
    if columns == "int64":
        X = X.select_dtypes("int64")
    numbers = data.ordinal(X.astype(dict.fromkeys(X.select_dtypes(exclude="int64"), "category")))
    own = opponents.ours(X, y, n_estimators=n_trees)
    other = opponents.scikit_learn(numbers, y, n_estimators=n_trees)
    rows, coded = (X[:1], numbers[:1]) if one_row else (X, numbers)
    return Contest(
        lambda: own.predict_proba(rows),
        {"scikit-learn": lambda: other.predict_proba(coded)},
        lambda first, second: f"mean difference {np.abs(first - second).mean():.3f}",
    )


CASES = [
    Case(
        "forest-predict-scikit_learn",
        "forests",
        "predict_proba, 100,000 rows × 100 trees, against scikit_learn",
        partial(_predict, "scikit_learn", False),
        3,
        repeats=5,
    ),
    Case(
        "forest-predict-onedal",
        "forests",
        "predict_proba, 100,000 rows × 100 trees, against onedal",
        partial(_predict, "onedal", False),
        1,
        2,
        repeats=5,
    ),
    Case(
        "forest-predict-one-row",
        "forests",
        "predict_proba of one row, 100 trees, against scikit_learn",
        partial(_predict, "scikit_learn", True),
        20,
        repeats=25,
    ),
    Case(
        "forest-predict-categories",
        "forests",
        "predict_proba, adult 48,842 rows × 100 trees, native categories against ordinal codes",
        partial(_mixed, "all", False, 100),
        2,
        repeats=9,
    ),
    Case(
        "forest-predict-one-row-categories",
        "forests",
        "predict_proba of one row with categories, adult, 200 trees, against ordinal codes",
        partial(_mixed, "all", True, 200),
        20,
        repeats=25,
    ),
    Case(
        "forest-predict-one-row-int64",
        "forests",
        "predict_proba of one row of a frame of int64, adult, 200 trees, against scikit-learn",
        partial(_mixed, "int64", True, 200),
        20,
        repeats=25,
    ),
]
