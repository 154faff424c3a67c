"""Criteria of your own for trees and forests that classify.

Give an object to ``DecisionTreeClassifier(criterion=...)`` or to a forest of classifiers. It is
called for each boundary of each node, so it is meant for small tables and for trying out ideas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

__all__ = ["Criterion"]


class Criterion(ABC):
    """Base class of a criterion of your own.

    Of a node's boundaries, the one of the highest score is its split. Scores count as gains:
    `feature_importances_` adds them up, and `min_impurity_decrease` is compared with a score
    divided by the weight of all rows. The impurity of a node, which pictures show and pruning by
    `ccp_alpha` uses, stays the Gini index.

    Trees of cross-validation grow one by one with it. Partitions of a cluster are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.criteria import Criterion
    >>> class Twoing(Criterion):
    ...     def score(self, left, right):
    ...         w, v = left.sum(), right.sum()
    ...         return w * v * abs(left / w - right / v).sum() ** 2 / (w + v)
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(criterion=Twoing(), max_depth=3).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    @abstractmethod
    def score(self, left: np.ndarray, right: np.ndarray) -> float:
        """How good a split is; higher is better.

        Parameters
        ----------
        left, right : float64 (n_classes,)
            Weight of each class on either side, in the order of ``classes_``. Both sides weigh
            something.

        Returns
        -------
        float
            ``-inf`` forbids the split.
        """
