"""The first predictions of a forest that has just been fitted, sparse rows, and rows one by one.

A forest is made ready for predictions when it is first asked for one. So every turn of ours has a
forest that has not been asked: a copy, made before, whose trees are other objects. Rows are held
out: the test parts of adult and 20 newsgroups, the last quarter or fifth of the others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.forests import opponents
from dtrees.core.model.tree import Forest

COPIES = 32  # more than turns

Parts = tuple[Any, Any, Any, Any, np.ndarray]  # to fit and to predict, ours and theirs; classes


def _plain(scale: Scale) -> Parts:
    X, y = data.classification(scale.rows(100_000))
    n = 3 * len(y) // 4
    return X[:n], X[n:], X[:n], X[n:], y[:n]


def _letter(scale: Scale) -> Parts:
    X, y = data.real_part("letter", scale)
    numbers, n = X.to_numpy(np.float32), 4 * len(y) // 5
    return numbers[:n], numbers[n:], numbers[:n], numbers[n:], y[:n]


def _adult(scale: Scale) -> Parts:
    """Our native categories, and theirs as ordinal codes."""
    X, y = data.real_part("adult", scale)
    coded, n = data.ordinal(X), 2 * len(y) // 3
    return X[:n], X[n:], coded[:n], coded[n:], y[:n]


def _newsgroups(scale: Scale) -> Parts:
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    step = 20 if scale.quick else 1
    return X[:n:step], X[n::step], X[:n:step], X[n::step], y[:n:step]


def _unasked(model: Any) -> Any:
    """A copy of a forest that has predicted nothing."""
    made = copy.copy(model)
    made.forest_ = Forest(tuple(replace(tree) for tree in model.forest_.trees))
    return made


def _difference(first: np.ndarray, second: np.ndarray) -> str:
    return f"mean difference {np.abs(first - second).mean():.3f}"


def _contest(
    parts: Callable[[Scale], Parts], n_trees: int, is_first: bool, scale: Scale
) -> Contest:
    fitted, rows, their_fitted, their_rows, y = parts(scale)
    own = opponents.ours(fitted, y, n_estimators=n_trees)
    other = opponents.scikit_learn(their_fitted, y, n_estimators=n_trees)
    copies = [_unasked(own) for _ in range(COPIES)] if is_first else []
    return Contest(
        lambda: (copies.pop() if copies else own).predict_proba(rows),
        {"scikit-learn": lambda: other.predict_proba(their_rows)},
        _difference,
    )


def _one_by_one(scale: Scale) -> Contest:
    """Beside LightGBM's own `predict`, without what its scikit-learn classes check; one thread.

    Its second thread waits for the first at each call, which takes long on a busy machine.
    """
    lightgbm = opponents.wanted("lightgbm", "lightgbm")
    X, y = data.classification(scale.rows(25_000))
    own = opponents.ours(X, y, n_estimators=100)
    settings = {"objective": "binary", "num_threads": 1, "verbose": -1}
    other = lightgbm.train(settings, lightgbm.Dataset(X, y), num_boost_round=100)
    return opponents.row_by_row(own, other, X)


CASES = [
    *(
        Case(
            f"first-predict-{name}",
            "forests",
            f"the first predict_proba, {work}, {n_trees} trees",
            partial(_contest, parts, n_trees, True),
            2,
            repeats=9,
        )
        for name, work, parts, n_trees in (
            ("random", "25,000 rows × 30", _plain, 100),
            ("letter", "letter, 4,000 rows, 26 classes", _letter, 100),
            ("adult", "adult, 16,281 rows, native categories against ordinal codes", _adult, 100),
            ("newsgroups", "20 newsgroups, 7,532 rows, sparse", _newsgroups, 50),
        )
    ),
    Case(
        "forest-predict-newsgroups",
        "forests",
        "predict_proba, 20 newsgroups, 7,532 rows, sparse, 50 trees",
        partial(_contest, _newsgroups, 50, False),
        2,
        repeats=9,
    ),
    Case(
        "forest-predict-one-by-one",
        "forests",
        f"predict_proba of {opponents.CALLS} rows one by one, 100 trees, against LightGBM",
        _one_by_one,
        1,
        repeats=25,
    ),
]
