"""What a guess scores on the same folds: the largest class, the mean, or a quantile.

A score says little alone. Accuracy 0.76 is poor where one class has 0.76 of the rows, and R² below
0 is worse than the mean of the training rows. The guess is scikit-learn's: `DummyClassifier`
answers the largest class and the shares of all classes, `DummyRegressor` the mean or a quantile.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import cross_validate

from dtrees.io.problem import Task

MOST_ROWS = 10_000_000  # for which a guess is scored


def baseline_scores(
    y: np.ndarray,
    task: Task,
    splits: Iterable[tuple[np.ndarray, np.ndarray]],
    scoring: Mapping[str, Any] | None = None,
    quantile: float | None = None,
) -> dict[str, float]:
    """Mean scores over the folds of a guess that does not look at X, by the names of the scorers.

    `splits` are pairs of row numbers. Without `scoring` the name is "score": accuracy or R². Of
    numbers the guess is the mean of the training rows, or their `quantile`. For more than
    `MOST_ROWS` rows nothing is found; a score that cannot be had is left out. O(n_rows) for each
    fold and score.
    """
    if len(y) > MOST_ROWS:
        return {}
    guess: Any = DummyClassifier(strategy="prior")
    if task == "regression":
        strategy = "mean" if quantile is None else "quantile"
        guess = DummyRegressor(strategy=strategy, quantile=quantile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores of a class that is never predicted
        found = cross_validate(
            guess,
            np.zeros((len(y), 1)),
            y,
            cv=list(splits),
            scoring=scoring or None,
            error_score=np.nan,
        )
    means = {name: float(np.mean(found[f"test_{name}"])) for name in scoring or ["score"]}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
