"""Cross-validation, fold by fold.

k-fold cross-validation [CV 1] cuts the rows into k parts; model i, a tree or a forest, is grown on
all parts but the i-th and scored on the i-th::

    rows     0 .......................... n
    model 1  [test ][train ................]
    model 2  [train][test ][train .........]
    model k  [train ................][test ]

The loop below grows the k models one after the other, each from raw values, and costs k fits. It
stands here for what it yields, not for how: the shared growth [CV 2.2.2], where all folds are
cells of one mix and grow in one pass, will take its place behind the same generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing

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
    seconds : float
        Wall time of the fit, coding included.
    """

    fold: int
    n_train: int
    n_test: int
    score: float
    depth: int
    n_leaves: int
    seconds: float


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


def cross_validation(
    estimator: Any, X: Any, y: np.ndarray, splits: Sequence[Split]
) -> Iterator[FoldResult]:
    """Fit and score a clone of the estimator on every split; yield each result as it comes.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Never fitted itself.
    X : table with n_rows rows
        Anything the estimator takes.
    y : array of shape (n_rows,)
        The target.
    splits : sequence of (train, test) pairs of row arrays
        As `shuffled_folds` or any splitter of scikit-learn makes them.

    Yields
    ------
    FoldResult
        In the order of `splits`.

    Notes
    -----
    Costs one fit and one copy of the training rows per fold.
    """
    for number, (train, test) in enumerate(splits, start=1):
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        start = perf_counter()
        model = clone(estimator).fit(X_train, y[train])
        seconds = perf_counter() - start
        size = size_of(model)
        yield FoldResult(
            fold=number,
            n_train=len(train),
            n_test=len(test),
            score=float(model.score(X_test, y[test])),
            depth=size.depth,
            n_leaves=size.n_leaves,
            seconds=seconds,
        )


def mean_and_standard_error(scores: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the scores and its standard error, ``s / sqrt(k)``.

    ``s`` is the sample standard deviation (k - 1 in the denominator) of the k >= 2 scores. The
    folds share training rows, so the scores depend on each other and the error is somewhat small.
    """
    values = np.asarray(scores, dtype=np.float64)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
