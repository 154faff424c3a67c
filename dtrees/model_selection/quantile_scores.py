"""Scores of models that predict a quantile: minus the pinball loss, their own loss.

A target above the prediction costs its distance times the quantile, one below times the rest. So
the quantile of the targets costs least, as the mean does by squares::

    quantile 0.9    prediction 10    target 12    loss 0.9 * 2 = 1.8
                                     target  8    loss 0.1 * 2 = 0.2
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer, mean_pinball_loss

from dtrees.model_selection.row_scores import Scores

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
