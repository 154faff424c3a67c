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
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.target import Target
from dtrees.constraints import ARRAY, CONFIDENCE, ArrayOf, InstanceOf, Nothing, OneOf, checked
from dtrees.core.predict.out_of_bag import OutOfBag
from dtrees.estimators.ensemble import SPARE_BITS, BaseForest
from dtrees.estimators.intervals import IntervalPredictor, scaled_errors, warn_of_infinite
from dtrees.estimators.prediction import ForestPredictor, LazyScore
from dtrees.estimators.stored import LEARNS_CLASSES
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
        return classification_target(
            y, sample_weight, weight, spare_bits=SPARE_BITS, drawn=self.bootstrap
        )

    def _class_weight_of_target(self) -> Any:
        # bags are drawn by weight: balanced in the table is balanced in each of them
        return "balanced" if self.class_weight == "balanced_subsample" else self.class_weight

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
        "_oob_errors": (ArrayOf(1, np.dtype(np.float64)),),  # in models of older versions
        "_oob_scaled_errors": (ArrayOf(1, np.dtype(np.float64)),),
        "_oob_keys": (ArrayOf(1, np.dtype(np.uint64)),),
        "_oob_means": (ArrayOf(1, np.dtype(np.float64)),),
    }
    _learns_at_times = BaseForest._learns_at_times | {
        "_oob_errors",
        "_oob_scaled_errors",
        "_oob_keys",
        "_oob_means",
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

    @checked(X=ARRAY, confidence=CONFIDENCE)
    def prediction_interval(self, X: Any, confidence: float = 0.9) -> np.ndarray:
        """Predict an interval for every row, by the rows out of the bags.

        Jackknife+ after bootstrap: each row that the forest was fitted to has an error, of its
        out-of-bag prediction, in units of the spread of the trees that have not seen it. These
        trees predict the new row, give or take the error in units of their spread there. So
        intervals are wide where trees disagree. Their ends are order statistics over all rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        confidence : float, default=0.9
            Share of rows whose target is to be in its interval, from 0.5 to below 1.

        Returns
        -------
        interval : float64 array of shape (n_rows, 2)
            Lower and upper end. They are infinite, with a warning, where too few rows were fitted:
            fewer than ``(1 + confidence) / (1 - confidence)``.

        Raises
        ------
        ValueError
            The forest was fitted without `oob_score` or `oob_tol`, or `confidence` is not in its
            range.

        Notes
        -----
        For rows that come from the same distribution as those of the fit, about `confidence` of
        the targets are in their intervals; at least ``2 * confidence - 1`` of them in the worst
        case (for the mean over forests whose number of trees is drawn, see Kim, Xu, Barber 2020).
        Rows without a weight do not count, and all others count once. With `bootstrap_groups`, it
        is groups that have to be alike. A row that every bag holds makes the interval wider, so
        there should be 20 trees or more.

        Costs O(fitted rows x trees) for each row of `X`, in blocks of a few MB.
        """
        check_is_fitted(self)
        predictor = self._predictor()
        assert isinstance(predictor, ForestPredictor)
        found = IntervalPredictor.of(predictor, vars(self), confidence)
        warn_of_infinite(found.errors[~np.isnan(found.errors)], confidence, found.is_scaled)
        return self._answer("prediction_interval", X, found)

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        return regression_target(
            y, sample_weight, self.criterion, spare_bits=SPARE_BITS, drawn=self.bootstrap
        )

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

    def _oob_errors_of(
        self, oob: OutOfBag, y: np.ndarray, counts: np.ndarray | None
    ) -> dict[str, Any]:
        errors = scaled_errors(y, oob.mean()[:, 0], oob.spread(), counts)
        return {"_oob_scaled_errors": errors}
