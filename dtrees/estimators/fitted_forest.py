"""What a fitted forest answers: importances, and its trees as estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.estimators.base import BaseTrees
from dtrees.estimators.many_trees import ManyTrees
from dtrees.estimators.prediction import ForestPredictor, Predictor
from dtrees.export.parts import Parts
from dtrees.inspection.importance import mean_importances


class FittedForest(ManyTrees, BaseTrees):
    """The answers of forests; not meant to be used itself."""

    def _predictor(self) -> Predictor:
        classes = getattr(self, "classes_", None)
        return ForestPredictor(self.codebook_, classes, type(self).__name__, self.forest_)

    @property
    def estimators_(self) -> list:
        """The trees as fitted estimators, made at the first look."""
        check_is_fitted(self)
        return self._trees_as_estimators()

    @property
    def n_estimators_(self) -> int:
        """Number of trees; less than ``n_estimators`` when the fit was stopped."""
        check_is_fitted(self)
        return len(self.forest_)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned = parts.attributes
        if learned["max_features_"] > learned["n_features_in_"]:
            raise ValueError("max_features_ is more than n_features_in_")
        sums = learned.get("oob_decision_function_")
        if sums is not None and sums.shape[1] != len(learned["classes_"]):
            raise ValueError("oob_decision_function_ has not a column for every class")
        scores = learned.get("oob_scores_")
        if scores is not None and len(scores) != len(parts.trees):
            raise ValueError("oob_scores_ are not those of the trees")

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.estimators_)

    def __getitem__(self, i: int) -> Any:
        """Tree i as an estimator."""
        return self.estimators_[i]

    def __iter__(self) -> Iterator:
        """The trees as estimators."""
        return iter(self.estimators_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean share of every column in the impurity decrease of the rows in the bags.

        float64 (n_features_in_,). Columns of many values get more than their due: see
        :func:`dtrees.inspection.oob_importances` for rows that did not choose the splits.
        """
        check_is_fitted(self)
        mean = mean_importances(self.forest_.trees)
        return np.zeros(self.n_features_in_) if mean is None else mean
