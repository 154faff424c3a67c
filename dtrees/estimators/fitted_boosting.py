"""What a fitted boosted model answers: predictions, their stages, importances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.codebook import CodeBook
from dtrees.coding.sparse_positions import check_sparse
from dtrees.coding.tables import Table
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.core.model.tree import Forest
from dtrees.estimators.prediction import BoostedPredictor
from dtrees.inspection.importance import impurity_importances, normalized
from dtrees.parallel import is_lazy, map_rows, threaded


class FittedBoosting(BaseEstimator):
    """The answers of boosted models; not meant to be used itself."""

    n_jobs: int | None
    forest_: Forest
    codebook_: CodeBook
    n_trees_per_iteration_: int
    _initial: np.ndarray
    _fit_loss: Loss | OwnLoss

    def _predictor(self) -> BoostedPredictor:
        return BoostedPredictor(
            self.codebook_,
            getattr(self, "classes_", None),
            type(self).__name__,
            self.forest_,
            self._initial,
            self._fit_loss,
        )

    def _answer(self, method: str, X: Any) -> Any:
        """The predictor's answer for a table; for a Dask collection a lazy one."""
        check_is_fitted(self)
        predictor = self._predictor()
        if is_lazy(X):
            return map_rows(predictor, method, X)
        return getattr(predictor, method)(X, threaded(self.n_jobs))

    def _stages(self, X: Any) -> tuple[BoostedPredictor, Iterator[np.ndarray]]:
        """The predictor, and raw predictions after each iteration; the table is checked at once."""
        check_is_fitted(self)
        check_sparse(X=X)
        run = threaded(self.n_jobs)
        predictor = self._predictor()
        table: Table = predictor.check(X, run)
        return predictor, predictor.staged(table, run)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class, or the number, of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The most likely class, of equal ones the first; or a number.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("predict", X)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit, in memory.

        Yields
        ------
        y : array of shape (n_rows,)
            As `predict` of a model of 1, 2, ... iterations.
        """
        predictor, stages = self._stages(X)
        return (predictor.labels_of(predictor.values_of(raw)) for raw in stages)

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        check_is_fitted(self)
        return len(self.forest_) // self.n_trees_per_iteration_

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in what splits take off the loss, float64 (n_features_in_,)."""
        check_is_fitted(self)
        of_trees = [impurity_importances(tree, normalize=False) for tree in self.forest_.trees]
        return normalized(np.sum(of_trees, axis=0))

    def __sklearn_is_fitted__(self) -> bool:
        return "forest_" in self.__dict__

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
