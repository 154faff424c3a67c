"""Gradient boosting: parameters, their defaults, and what only one of the two classes has.

How a model is fitted stands in `dtrees.estimators.boosting_base`, how it grows in
`dtrees.core.grow.boosting`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from dtrees import losses
from dtrees.coding.target import Target
from dtrees.coding.weights import class_totals
from dtrees.constraints import InstanceOf, Nothing, OneOf, RealIn
from dtrees.core.data.scale import units_of
from dtrees.core.losses.losses import CLASSES, NUMBERS, Loss, initial_of_classes
from dtrees.core.losses.own import OwnLoss
from dtrees.estimators.boosting_base import BaseBoosting
from dtrees.estimators.docstrings import documented
from dtrees.estimators.prediction import LazyScore
from dtrees.estimators.stored import LEARNS_CLASSES
from dtrees.estimators.trees import classification_target


@documented("boosting", "classes")
class GradientBoostingClassifier(LazyScore, ClassifierMixin, BaseBoosting):
    """Gradient boosting for classes.

    Trees follow each other, and each is grown to what the others leave of the loss. Sums are those
    of integers, so the model has the same bits for any number of threads. Parameters mean what they
    mean in scikit-learn's ``HistGradientBoostingClassifier``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    GradientBoostingRegressor : The same for numbers.
    RandomForestClassifier : Trees that do not depend on each other.

    Notes
    -----
    With three classes or more, an iteration grows a tree for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(max_iter=50).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.95
    """

    _losses = CLASSES
    _learns = {**BaseBoosting._learns, **LEARNS_CLASSES}  # noqa: RUF012
    _constraints = {  # noqa: RUF012
        **BaseBoosting._constraints,
        "loss": (OneOf(tuple(CLASSES)), InstanceOf(losses.Loss, "dtrees.losses.Loss")),
        "class_weight": (InstanceOf(dict, "dict"), OneOf(("balanced",)), Nothing()),
    }

    def __init__(
        self,
        loss: str | losses.Loss = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        l2_regularization: float = 1.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        use_best_model: bool = True,
        warm_start: bool = False,
        verbose: int = 0,
        regime: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.use_best_model = use_best_model
        self.warm_start = warm_start
        self.verbose = verbose
        self.regime = regime
        self.random_state = random_state
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the raw predictions of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        raw : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            Log odds of the second of two classes; of more, a number for each, of which
            `predict_proba` takes the exponentials.
        """
        return self._answer("decision_function", X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        shares : float64 array of shape (n_rows, n_classes_)
            In the order of ``classes_``; rows sum to 1.
        """
        return self._answer("predict_proba", X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        logarithms : float64 array of shape (n_rows, n_classes_)
        """
        return self._answer("predict_log_proba", X)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Compute the raw predictions after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.

        Yields
        ------
        raw : float64 array of shape (n_rows,) or (n_rows, n_classes_)
            As `decision_function` of a model of 1, 2, ... iterations.
        """
        return self._staged("decision_function", X)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Predict the share of every class after each iteration.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. Of a Dask array or data frame, each answer is lazy, and costs a
            prediction of its own.

        Yields
        ------
        shares : float64 array of shape (n_rows, n_classes_)
            As `predict_proba` of a model of 1, 2, ... iterations.
        """
        return self._staged("predict_proba", X)

    def _loss(self) -> Loss | OwnLoss:
        return CLASSES[self.loss] if isinstance(self.loss, str) else OwnLoss(self.loss)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return classification_target(y, sample_weight, self.class_weight)

    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        if isinstance(loss, OwnLoss):
            return loss.initial(y, weight, target.n_classes if target.n_classes > 2 else 1)
        totals = np.array(class_totals(target.y, units_of(target), target.n_classes))
        return initial_of_classes(totals / totals.sum())

    def _learned(self, target: Target) -> dict[str, Any]:
        return {"classes_": target.classes, "n_classes_": target.n_classes}


@documented("boosting", "numbers")
class GradientBoostingRegressor(LazyScore, RegressorMixin, BaseBoosting):
    """Gradient boosting for numbers.

    Trees follow each other, and each is grown to what the others leave of the loss. Sums are those
    of integers, so the model has the same bits for any number of threads. Parameters mean what they
    mean in scikit-learn's ``HistGradientBoostingRegressor``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    GradientBoostingClassifier : The same for classes.
    RandomForestRegressor : Trees that do not depend on each other.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(max_iter=30, max_leaf_nodes=8).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.4
    """

    _losses = NUMBERS
    _constraints = {  # noqa: RUF012
        **BaseBoosting._constraints,
        "loss": (OneOf(tuple(NUMBERS)), InstanceOf(losses.Loss, "dtrees.losses.Loss")),
        "quantile": (RealIn(0, 1, "[]"), Nothing()),
        "alpha": (RealIn(0, 1, "()"),),
    }

    def __init__(
        self,
        loss: str | losses.Loss = "squared_error",
        *,
        quantile: float | None = None,
        alpha: float = 0.9,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        l2_regularization: float = 1.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        handle_unknown: str = "missing",
        category_penalty: float = 1.0,
        early_stopping: bool | str = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        use_best_model: bool = True,
        warm_start: bool = False,
        verbose: int = 0,
        regime: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.handle_unknown = handle_unknown
        self.category_penalty = category_penalty
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.use_best_model = use_best_model
        self.warm_start = warm_start
        self.verbose = verbose
        self.regime = regime
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _loss(self) -> Loss | OwnLoss:
        if not isinstance(self.loss, str):
            return OwnLoss(self.loss)
        loss = NUMBERS[self.loss]
        if self.loss == "huber":
            return replace(loss, beyond=float(self.alpha))
        if self.loss != "quantile":
            return loss
        if self.quantile is None:
            raise ValueError("loss='quantile' needs the parameter quantile, between 0 and 1.")
        return loss.with_level(float(self.quantile))

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return Target.regression(y, sample_weight)

    def _begin(
        self, loss: Loss | OwnLoss, target: Target, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        loss.check(y)  # rows that are left when others are held out may be zero, all of them
        if isinstance(loss, OwnLoss):
            return loss.initial(y, weight, 1)
        total = len(y) if target.w is None else int(target.w.sum())
        sums = np.array([total, int(target.y.sum() if target.wy is None else target.wy.sum())])
        return np.array([loss.initial(y, weight, float(target.to_value(sums)))])

    def _learned(self, target: Target) -> dict[str, Any]:
        return {}
