"""Rows down a hundred fully grown trees."""

from __future__ import annotations

from functools import partial

import numpy as np

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
]
