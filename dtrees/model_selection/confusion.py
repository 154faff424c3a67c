"""Scores of predicted classes, by scikit-learn's own functions, from few rows.

How often each class is taken for each other is a matrix of K x K numbers. A score of predictions
knows no more of the held-out rows. So these are K x K rows, one for each pair of classes, with the
numbers as their weights::

    true   said   rows                      y_true  y_pred  sample_weight
      a      a     40    a row for each       a       a          40
      a      b      2    ──────────────▶      a       b           2
      b      b     17                         b       b          17

No formula is written down again. scikit-learn says which label is positive, what a class that
nobody predicts is worth, and which warnings there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin

OF_MATRICES = (  # and of weights
    metrics.accuracy_score,
    metrics.balanced_accuracy_score,
    metrics.cohen_kappa_score,
    metrics.f1_score,
    metrics.fbeta_score,
    metrics.hamming_loss,
    metrics.jaccard_score,
    metrics.matthews_corrcoef,
    metrics.precision_score,
    metrics.recall_score,
    metrics.zero_one_loss,
)


def scorer_of_classes(scorer: Any) -> Any:
    """A scorer of scikit-learn, or of its name, that looks at predicted classes only; or None."""
    if isinstance(scorer, str):
        try:
            scorer = metrics.get_scorer(scorer)
        except ValueError:  # no such name
            return None
    if type(scorer).__module__ != metrics.get_scorer.__module__:
        return None
    is_known = any(getattr(scorer, "_score_func", None) is metric for metric in OF_MATRICES)
    of_classes = getattr(scorer, "_response_method", None) == "predict"
    return scorer if is_known and of_classes and "sample_weight" not in scorer._kwargs else None


class KnownPredictions(ClassifierMixin, BaseEstimator):
    """Stands for a fitted classifier of known predictions; a row is the number of a class."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = self.classes_ = classes

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The labels of the classes."""
        labels: np.ndarray = self.classes[X]
        return labels


def scores_of_matrices(scorer: Any, matrices: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """What a scorer says of models, by the classes that they take for one another; (n_models,).

    `matrices`, float64 (n_models, n_classes * n_classes), hold rows or their weight: for every
    predicted class the true ones. None: the scorer fails, which scikit-learn's loop deals with.
    Costs a call of scikit-learn's function for each different matrix.
    """
    said, true = np.divmod(np.arange(matrices.shape[1]), len(classes))
    model, true_labels = KnownPredictions(classes), classes[true]
    distinct, place = np.unique(matrices, axis=0, return_inverse=True)
    found = np.empty(len(distinct))
    try:
        for number, weight in enumerate(distinct):
            some = np.flatnonzero(weight)
            found[number] = scorer(model, said[some], true_labels[some], sample_weight=weight[some])
    except Exception:  # of any kind: what a scorer that fails is worth is not known here
        return None
    scores: np.ndarray = found[place.ravel()]
    return scores
