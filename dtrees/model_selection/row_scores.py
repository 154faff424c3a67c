"""Scores that are a number for each row, and whose mean is the score of a table.

A model that predicts a quantile is scored by minus the pinball loss, its own loss. A target above
the prediction costs its distance times the quantile, one below times the rest. So the quantile of
the targets costs least, as the mean does by squares::

    quantile 0.9    prediction 10    target 12    loss 0.9 * 2 = 1.8
                                     target  8    loss 0.1 * 2 = 0.2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer, mean_pinball_loss

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of y and what a model says, by row


@dataclass(frozen=True)
class OfShares:
    """A score of rows, of numbers of classes and the shares that a model gives to each class."""

    of_rows: Scores

    def __call__(self, y: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """One number per row; the larger the better."""
        return self.of_rows(y, shares)


def _accuracy(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return predicted == y


def _log_loss(y: np.ndarray, shares: np.ndarray) -> np.ndarray:
    tiny = np.finfo(np.float64).eps
    found: np.ndarray = np.log(np.clip(shares[np.arange(len(y)), y], tiny, 1 - tiny))
    return found


def _brier_score(y: np.ndarray, shares: np.ndarray) -> np.ndarray:
    away = shares.copy()
    away[np.arange(len(y)), y] -= 1
    halves = 2 if shares.shape[1] == 2 else 1  # as scikit-learn: of two classes, of one of them
    found: np.ndarray = -(away**2).sum(axis=1) / halves
    return found


OF_CLASSES: dict[str, Scores] = {
    "accuracy": _accuracy,
    "neg_log_loss": OfShares(_log_loss),
    "neg_brier_score": OfShares(_brier_score),
}
OF_NUMBERS: dict[str, Scores] = {
    "neg_mean_squared_error": lambda y, predicted: -((y - predicted) ** 2),
    "neg_mean_absolute_error": lambda y, predicted: -np.abs(y - predicted),
}


def score_of_rows(scoring: Any, *, is_class: bool) -> Scores:
    """The score of rows that `scoring` stands for; ValueError: there is none.

    It is a function of the true values and the predictions, or `OfShares`.
    """
    if callable(scoring):
        found: Scores = scoring
        return found
    known = OF_CLASSES if is_class else OF_NUMBERS
    name = next(iter(known)) if scoring is None else scoring
    if name not in known:
        raise ValueError(
            f"scoring must be a mean over rows: got {scoring!r}. Give one of "
            f"{', '.join(map(repr, known))}, or a function of the true values and the predictions "
            "that returns a number for each row."
        )
    return known[name]


PINBALL = "neg_mean_pinball_loss"  # as scikit-learn would name the scorer


def pinball_scorer(quantile: float) -> Any:
    """A scorer of scikit-learn: minus the mean pinball loss."""
    return make_scorer(mean_pinball_loss, alpha=quantile, greater_is_better=False)


def pinball_of_rows(quantile: float) -> Scores:
    """The same of each row, of the true values and the predictions."""

    def score(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        above = y - predicted
        found: np.ndarray = -np.maximum(quantile * above, (quantile - 1) * above)
        return found

    return score


def is_own_loss(scorer: Any, estimator: Any) -> bool:
    """Whether a scorer is minus the loss by which a boosted model of a quantile grows."""
    return (
        getattr(estimator, "loss", None) == "quantile"
        and getattr(scorer, "_score_func", None) is mean_pinball_loss
        and scorer._sign == -1
        and scorer._kwargs == {"alpha": estimator.quantile}
    )
