"""What a fitted boosted model answers: predictions, their stages, importances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.tables import Table
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.core.model.tree import Forest
from dtrees.estimators.boosted_parts import BoostedParts
from dtrees.estimators.boosted_stopping import best_iteration
from dtrees.estimators.prediction import BoostedPredictor, answered
from dtrees.estimators.tree_view import columns_tested, read_only
from dtrees.inspection.importance import summed_importances
from dtrees.parallel import is_lazy, map_rows, threaded


class FittedBoosting(BoostedParts):
    """The answers of boosted models; not meant to be used itself."""

    n_jobs: int | None
    use_best_model: bool
    train_score_: np.ndarray
    validation_score_: np.ndarray
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
        if "n_features_in_" not in self.__dict__:  # which takes longer than a row
            check_is_fitted(self)
        return answered(self._predictor(), method, X, self.n_jobs)

    def _staged(self, method: str, X: Any) -> Iterator[Any]:
        """The answers of 1, 2, ... iterations; the table is checked at once."""
        check_is_fitted(self)
        predictor, n_values = self._predictor(), self.n_trees_per_iteration_
        if is_lazy(X):
            ends = range(n_values, len(self.forest_) + 1, n_values)
            return (map_rows(predictor.first(end), method, X) for end in ends)
        run = threaded(self.n_jobs)
        table: Table = predictor.check(X, run)
        return (predictor.of_raw(method, raw) for raw in predictor.staged(table, run))

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
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.

        Yields
        ------
        y : array of shape (n_rows,)
            As `predict` of a model of 1, 2, ... iterations.
        """
        return self._staged("predict", X)

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """Which columns have categories, bool (n_features_in_,); None: there are none."""
        check_is_fitted(self)
        found = np.zeros(self.codebook_.n_columns, dtype=bool)
        found[list(self.codebook_.categories)] = True
        return found if found.any() else None

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        check_is_fitted(self)
        return len(self.forest_) // self.n_trees_per_iteration_

    @property
    def best_iteration_(self) -> int | None:
        """Iterations after which rows were scored highest; None without early stopping."""
        check_is_fitted(self)
        scores = self._scores
        return best_iteration(scores) if len(scores) > 0 else None

    @property
    def _scores(self) -> np.ndarray:
        """Of early stopping, float64 (iterations that were grown + 1,); or empty."""
        return self.validation_score_ if len(self.validation_score_) > 0 else self.train_score_

    def _n_iter_of(self, max_iter: int) -> int:
        """Iterations of the model that has grown no more than so many."""
        scores = self._scores[: max_iter + 1]
        is_cut = len(scores) > 0 and self.use_best_model
        return best_iteration(scores) if is_cut else min(max_iter, self.n_iter_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in what splits take off the loss of the training rows.

        float64 (n_features_in_,).
        """
        check_is_fitted(self)
        return summed_importances(self.forest_.trees)

    def __sklearn_is_fitted__(self) -> bool:
        return "forest_" in self.__dict__


def first_iterations(estimator: Any, fitted: Any) -> Any:
    """An estimator, fitted: with the first iterations of a fitted one.

    `fitted` has the same parameters but for a ``max_iter`` that is as large or larger. The same as
    the fit of `estimator`. O(nodes).
    """
    made = clone(estimator)
    learned = {
        name: value
        for name, value in vars(fitted).items()
        if name not in estimator._constraints and name != "_estimators"
    }
    made.__dict__.update(learned)
    n_iterations = fitted._n_iter_of(estimator.max_iter)
    trees = fitted.forest_.trees[: n_iterations * fitted.n_trees_per_iteration_]
    made.forest_ = Forest(tuple(trees))
    tested = columns_tested(trees, fitted.n_features_in_)
    made._saw_missing = read_only(fitted._saw_missing & tested)
    made.train_score_ = fitted.train_score_[: estimator.max_iter + 1]
    made.validation_score_ = fitted.validation_score_[: estimator.max_iter + 1]
    return made
