"""What a guess scores on the same folds: the largest class, the mean, or a quantile.

A score says little alone. Accuracy 0.76 is poor where one class has 0.76 of the rows, and R² below
0 is worse than the mean of the training rows. The guess is scikit-learn's: `DummyClassifier`
answers the largest class and the shares of all classes, `DummyRegressor` the mean or a quantile.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import cross_validate

from dtrees.estimators.scorers import with_labels
from dtrees.io.problem import Task
from dtrees.model_selection.missing_classes import undefined
from dtrees.model_selection.splits import Split

MOST_ROWS = 10_000_000  # for which a guess is scored


def baseline_scores(
    y: np.ndarray,
    task: Task,
    splits: Sequence[Split],
    scoring: Mapping[str, Any] | None = None,
    quantile: float | None = None,
) -> dict[str, float]:
    """Mean scores over the folds of a guess that does not look at X, by the names of the scorers.

    `splits` are pairs of row numbers. Without `scoring` the name is "score": accuracy or R². Of
    numbers the guess is the mean of the training rows, or their `quantile`. For more than
    `MOST_ROWS` rows nothing is found; a score that cannot be had is left out. O(n_rows) for each
    fold and score. ValueError: a score is nan, as a test side lacks a class.
    """
    if len(y) > MOST_ROWS:
        return {}
    guess: Any = DummyClassifier(strategy="prior")
    classes = np.unique(y) if task == "classification" else None
    if task == "regression":
        strategy = "mean" if quantile is None else "quantile"
        guess = DummyRegressor(strategy=strategy, quantile=quantile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores of a class that is never predicted
        found = cross_validate(
            guess,
            np.zeros((len(y), 1)),
            y,
            cv=splits,
            scoring=with_labels(scoring, classes) if scoring else None,
            error_score=np.nan,
        )
    if classes is not None:
        scores = {name: found[f"test_{name}"] for name in scoring or ["score"]}
        said = undefined(scores, splits, y, folds=True)
        if said is not None:
            raise ValueError(said)
    means = {name: float(np.mean(found[f"test_{name}"])) for name in scoring or ["score"]}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
