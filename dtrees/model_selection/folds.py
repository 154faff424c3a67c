"""Folds: how rows are cut into them, and what a cross-validation says of each.

k-fold cross-validation [CV 1] cuts the rows into k parts; model i, a tree or a forest, is grown on
all parts but the i-th and scored on the i-th::

    rows     0 .......................... n
    model 1  [test ][train ................]
    model 2  [train][test ][train .........]
    model k  [train ................][test ]

`dtrees.model_selection.validation` grows the k models, all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from dtrees.model_selection.size import size_of

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FoldResult:
    """What one fold has to say.

    Attributes
    ----------
    fold : int
        Number of the fold, from 1.
    n_train, n_test : int
        Rows the model was grown on and rows it was scored on.
    score : float
        ``estimator.score`` on the test rows: accuracy in [0, 1] or R^2 in (-inf, 1].
    depth, n_leaves : int
        Depth of the fold's deepest tree, and leaves of all its trees.
    """

    fold: int
    n_train: int
    n_test: int
    score: float
    depth: int
    n_leaves: int


def shuffled_folds(y: np.ndarray, n_folds: int, seed: int, *, stratified: bool) -> list[Split]:
    """Cut the rows into folds, shuffled by `seed`.

    Parameters
    ----------
    y : array of shape (n_rows,)
        The target; only its classes matter, and only when `stratified`.
    n_folds : int
        Number of folds, 2 <= n_folds <= n_rows.
    seed : int
        Seed of the shuffle.
    stratified : bool
        Whether every fold gets its share of every class.

    Returns
    -------
    splits : list of (train, test) pairs of row arrays, of length n_folds
        Every row is in exactly one test part.

    Raises
    ------
    ValueError
        `n_folds` is larger than the number of rows or, when `stratified`, than every class.
    """
    kind = StratifiedKFold if stratified else KFold
    splitter = kind(n_splits=n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1), dtype=np.uint8), y))


def fold_results(found: Mapping[str, Any], splits: Sequence[Split]) -> list[FoldResult]:
    """Return what a cross-validation says of its folds.

    Parameters
    ----------
    found : dict
        Of `cross_validate` with one scorer and ``return_estimator=True``.
    splits : sequence of (train, test) pairs of row arrays
        What it was given as ``cv``.
    """
    results = []
    per_fold = zip(splits, found["test_score"].tolist(), found["estimator"], strict=True)
    for number, ((train, test), score, model) in enumerate(per_fold, start=1):
        size = size_of(model)
        results.append(FoldResult(number, len(train), len(test), score, size.depth, size.n_leaves))
    return results


def mean_and_standard_error(scores: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the scores and its standard error, ``s / sqrt(k)``.

    ``s`` is the sample standard deviation (k - 1 in the denominator) of the k >= 2 scores. The
    folds share training rows, so the scores depend on each other and the error is somewhat small.
    """
    values = np.asarray(scores, dtype=np.float64)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
