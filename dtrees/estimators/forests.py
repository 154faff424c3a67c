"""What forests for classes have in common, and forests for numbers.

Their parameters and defaults stand in `dtrees.estimators.random_forest`,
`dtrees.estimators.extra_trees` and `dtrees.estimators.bagging`.

How a forest is fitted stands in `dtrees.estimators.ensemble`, how a tree of it grows in
`dtrees.core.grow.forest`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from dtrees.coding.target import Target
from dtrees.estimators.base import LEARNS_CLASSES
from dtrees.estimators.constraints import ArrayOf, InstanceOf, Nothing, OneOf
from dtrees.estimators.ensemble import SPARE_BITS, BaseForest
from dtrees.estimators.prediction import LazyScore
from dtrees.estimators.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    classification_target,
    regression_target,
)


class ForestClassifier(LazyScore, ClassifierMixin, BaseForest):
    """What forests for classes share; not meant to be used itself."""

    _tree_class = DecisionTreeClassifier
    _criteria = DecisionTreeClassifier._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeClassifier._constraints["criterion"],
        "class_weight": (
            InstanceOf(dict, "dict"),
            OneOf(("balanced", "balanced_subsample")),
            Nothing(),
        ),
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        **LEARNS_CLASSES,
        "oob_decision_function_": (ArrayOf(2, np.dtype(np.float64)),),
    }

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The class with the largest mean share; of equal ones, the first.
        """
        return self._answer("predict", X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the share of every class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        shares : float64 array of shape (n_rows, n_classes_)
            Mean over the trees, in the order of ``classes_``; rows sum to 1.
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
            -inf for classes that no leaf of the row holds.
        """
        return self._answer("predict_log_proba", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        weight = self._class_weight_of_target()
        return classification_target(y, sample_weight, weight, spare_bits=SPARE_BITS)

    def _class_weight_of_target(self) -> Any:
        if self.class_weight != "balanced_subsample":
            return self.class_weight
        return None if self.bootstrap else "balanced"  # in the bags; without bags, in the table

    def _learned(self, target: Target) -> dict[str, Any]:
        return {"classes_": target.classes, "n_classes_": target.n_classes}

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        voted = ~np.isnan(mean[:, 0])
        if not voted.any():
            return math.nan
        codes = mean[voted].argmax(axis=1)
        if not callable(self.oob_score):
            return float(np.mean(codes == target.y[voted]))  # accuracy
        assert target.classes is not None
        return float(self.oob_score(y[voted], target.classes.take(codes)))

    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        return {"oob_decision_function_": mean}


class ForestRegressor(LazyScore, RegressorMixin, BaseForest):
    """What forests for numbers share; not meant to be used itself."""

    _tree_class = DecisionTreeRegressor
    _criteria = DecisionTreeRegressor._criteria
    _constraints = {  # noqa: RUF012
        **BaseForest._constraints,
        "criterion": DecisionTreeRegressor._constraints["criterion"],
    }
    _learns = {  # noqa: RUF012
        **BaseForest._learns,
        "oob_prediction_": (ArrayOf(1, np.dtype(np.float64)),),
    }

    def predict(self, X: Any) -> np.ndarray:
        """Predict a number for every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : float64 array of shape (n_rows,)
            Mean of the trees.
        """
        return self._answer("predict", X)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return regression_target(y, sample_weight, self.criterion, spare_bits=SPARE_BITS)

    def _learned(self, target: Target) -> dict[str, Any]:
        return {}

    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        from sklearn.metrics import r2_score

        voted = ~np.isnan(mean[:, 0])
        if np.count_nonzero(voted) < 2:
            return math.nan
        score = self.oob_score if callable(self.oob_score) else r2_score
        return float(score(y[voted], mean[voted, 0]))

    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        return {"oob_prediction_": mean[:, 0]}
