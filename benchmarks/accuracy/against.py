"""Random forests of dtrees and of scikit-learn: equal trees, equal parameters, the same rows.

Where a table has categories there are two lines. In the first both sides are given their numbers
(ordinal), so that only the forests differ; in the second ours is given the categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn.ensemble

import dtrees
from benchmarks import data
from benchmarks.accuracy.seeds import by_seed, compared, held_out_score, take
from benchmarks.cases import THREADS, Case, Scale, Survey, Table

TABLE = Table(
    (
        "random forests, held-out rows",
        "trees",
        "dtrees",
        "scikit-learn",
        "difference",
        "in standard errors",
        "verdict",
    ),
    "Accuracy, or R² where it says so: mean over five seeds ± standard error. Seeds part the rows "
    "2 : 1 (adult and newsgroups keep their test part). Within noise: the difference is less than "
    "2.78 standard errors, the 97.5 % point of Student's distribution with 4 degrees of freedom.",
)
SETS = {  # trees, whether it has categories
    "adult": (100, True),
    "letter": (100, False),
    "connect4": (100, True),
    "covertype_20k": (100, False),
    "credit_default": (100, True),
    "california_housing": (100, False),
    "bike_sharing_hour": (100, True),
    "newsgroups20": (50, False),
}


def forest(module: Any, y: np.ndarray, n_trees: int, seed: int) -> Any:
    """A forest; the classes of both libraries have the same names."""
    shared = {"n_estimators": n_trees, "random_state": seed, "n_jobs": THREADS}
    if y.dtype.kind == "f":
        return module.RandomForestRegressor(max_features=1 / 3, **shared)
    return module.RandomForestClassifier(max_features="sqrt", **shared)


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.real(name)
    trees, has_categories = SETS[name]
    trees = 5 if scale.quick else trees
    numbers = data.ordinal(X)

    def score(module: Any, X: Any, seed: int, train: np.ndarray, held_out: np.ndarray) -> float:
        model = forest(module, y, trees, seed).fit(take(X, train), y[train])
        return held_out_score(model, take(X, held_out), y[held_out])

    sides = [partial(score, sklearn.ensemble, numbers), partial(score, dtrees, numbers)]
    if has_categories:
        sides.append(partial(score, dtrees, X))
    theirs, *ours = by_seed(name, scale, len(y), *sides)
    work = f"{name}, R²" if y.dtype.kind == "f" else name
    tables = [", ordinal on both sides", ", categories (scikit-learn: ordinal)"]
    for scores, what in zip(ours, tables if has_categories else [""], strict=True):
        yield (work + what, str(trees), *compared(scores, theirs, scale))


def _survey(name: str, scale: Scale) -> Survey:
    data.real(name)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"accuracy-{name}",
        "accuracy",
        f"random forest, {name}, five seeds, against scikit-learn",
        partial(_survey, name),
    )
    for name in SETS
]
