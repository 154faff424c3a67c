"""Losses of your own for boosted models.

    y, raw predictions ──gradient_and_hessian──▶ trees
    y                  ──initial───────────────▶ the raw prediction without any tree
    raw predictions    ──inverse_link──────────▶ what the model predicts
    y, raw predictions ──of_rows───────────────▶ early stopping

Give an object to ``GradientBoostingRegressor(loss=...)`` or ``GradientBoostingClassifier``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

__all__ = ["Loss"]


class Loss(ABC):
    """Base class of a loss of your own.

    Arrays of raw predictions have the shape (n_rows,). With three classes or more it is
    (n_rows, n_classes), and so is that of derivatives. Targets of a classifier are the numbers of
    the classes, 0, 1, ..., in the order of ``classes_``. Arguments are read only, and have a row at
    least.

    Methods have to treat each row alike, and by itself: then the model has the same bits in any
    order of the rows, on any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dtrees import GradientBoostingRegressor
    >>> from dtrees.losses import Loss
    >>> class LogCosh(Loss):
    ...     def gradient_and_hessian(self, y, raw):
    ...         slope = np.tanh(raw - y)
    ...         return slope, 1 - slope**2
    ...
    ...     def initial(self, y, sample_weight):
    ...         return np.median(y)
    >>> X = np.arange(200.0).reshape(-1, 1)
    >>> model = GradientBoostingRegressor(LogCosh(), max_iter=50).fit(X, np.sin(X[:, 0] / 30))
    >>> round(model.score(X, np.sin(X[:, 0] / 30)), 1)
    1.0
    """

    @abstractmethod
    def gradient_and_hessian(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of each row's loss by its raw prediction.

        Of rows of weight one: weights multiply what is returned.

        Parameters
        ----------
        y : float64 (n_rows,)
        raw : float64, as the class says

        Returns
        -------
        gradient, hessian : float64, both of the shape of `raw`
            Finite; hessians are not negative. A leaf adds ``- sum of gradients / (sum of hessians
            + l2_regularization)`` times the learning rate. Each side of a split needs a sum of
            hessians of ``min_child_weight``.
        """

    def initial(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float | np.ndarray:
        """The raw prediction that all rows begin with; zero, if it is not defined.

        Of all rows at once; of rows on the workers of a cluster one of these asks.

        Parameters
        ----------
        y : float64 (n_rows,)
        sample_weight : float64 (n_rows,) or None

        Returns
        -------
        float, or float64 (n_classes,) with three classes or more
        """
        return 0.0

    def inverse_link(self, raw: np.ndarray) -> np.ndarray | None:
        """What is predicted, from raw predictions.

        Parameters
        ----------
        raw : float64, as the class says

        Returns
        -------
        float64 of the shape of `raw`, or None
            Numbers; of two classes the share of the second one; of more, all shares. None, if it
            is not defined: raw predictions are the numbers, log odds, or logarithms of shares.
        """
        return None

    def of_rows(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """The loss of each row, float64 (n_rows,): for early stopping and scores of callbacks."""
        raise NotImplementedError(
            f"{type(self).__name__} has no method of_rows(y, raw), which says the loss of each "
            "row. Define it, or score rows by something else (scoring='r2' or 'accuracy', say), or "
            "give none and do not stop early (early_stopping=False)."
        )

    def check_target(self, y: np.ndarray) -> None:
        """Raise a ValueError where a target is out of the range of the loss; nothing by default."""
        return
