"""What every estimator of trees does: parameters and tables in, codes and rules out.

A fit is a pipe through the floors, and nothing of it is kept on the way::

    parameters --constraints--> checked
    X --------------codebook--> CodeBook, CodedMatrix --+
    y, weights --------target--> Target ----------------+--grow--> Tree --pruning--> tree_
    limits -------------rules--> GrowthRules -----------+

The left half is a `dtrees.estimators.fit_plan.FitPlan`, for trees and forests alike. The right
half, `_fit_coded`, is that of single trees in `dtrees.estimators.single_tree`, and that of forests
in `dtrees.estimators.ensemble`. Between the two stands a `Training`, to which many models can be
fitted (`dtrees.estimators.training_sets`).

Attributes are set in one go when the tree stands. A fit that fails leaves the estimator as it was:
unfitted if it was unfitted, and otherwise with the whole of its former fit.

What tells a classifier from a regressor is data: the criteria, the constraints and how `y` becomes
a `Target`. Limits that a grown tree can answer (``max_leaf_nodes``, ``ccp_alpha``) are applied to
it afterwards [SF 3]; the others stop the growth.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.target import Target
from dtrees.constraints import (
    COLUMN_RULES,
    ArrayLike,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RandomState,
    RealIn,
)
from dtrees.core.membership.resampling import Resampling
from dtrees.core.membership.shares import Shares
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.limits import shares_of
from dtrees.estimators.prediction import Predictor, answered
from dtrees.estimators.stored import LEARNS_COLUMNS, MOST, Stored
from dtrees.estimators.training import Encoded, Training


class BaseTrees(Stored):
    """What trees and forests share; not meant to be used itself."""

    _random_cuts: ClassVar[bool] = False
    _criteria: ClassVar[Mapping[str, str]]
    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "max_depth": (IntegerIn(1), Nothing()),
        "min_samples_split": (IntegerIn(2), RealIn(0, 1, "(]", integers=False)),
        "min_samples_leaf": (IntegerIn(1), RealIn(0, 1, "()", integers=False)),
        "min_weight_fraction_leaf": (RealIn(0, 0.5, "[]"),),
        "max_features": (
            IntegerIn(1),
            RealIn(0, 1, "(]", integers=False),
            OneOf(("sqrt", "log2")),
            Nothing(),
        ),
        "random_state": (RandomState(),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "min_impurity_decrease": (RealIn(0, math.inf, "[)"),),
        "ccp_alpha": (RealIn(0, math.inf, "[)"),),
        **COLUMN_RULES,
        "max_bins": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        "handle_unknown": (OneOf(("missing", "majority", "error")),),
        "category_penalty": (RealIn(0, math.inf, "[)"),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }

    _learns: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        **LEARNS_COLUMNS,
        "n_outputs_": (IntegerIn(1, 1),),
        "max_features_": (IntegerIn(1, MOST),),
    }

    # The parameters of every tree; the classes set them in __init__.
    criterion: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: int | float | str | None
    random_state: Any
    max_leaf_nodes: int | None
    min_impurity_decrease: float
    ccp_alpha: float
    monotonic_cst: Any
    interaction_cst: Any
    max_bins: int | None
    categorical_features: Any
    handle_unknown: str
    category_penalty: float = 0.0  # of those that draw their splits: they choose no subset
    n_jobs: int | None

    @abstractmethod
    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        """`y` and the weights as integers."""

    def _class_weight_of_target(self) -> Any:
        """Class weights that the target has; None: none, or those of a bag."""
        return None

    @abstractmethod
    def _learned(self, target: Target) -> dict[str, Any]:
        """Attributes that only classifiers or only regressors have."""

    @abstractmethod
    def _predictor(self) -> Predictor:
        """What a fitted estimator predicts with."""

    @abstractmethod
    def _fit_coded(self, training: Training) -> Any:
        """Fit this estimator to a coded table; as `fit` with the same integers, bit for bit."""

    @abstractmethod
    def _grow_sets(self, training: Training, resampling: Resampling) -> Sequence[Any]:
        """What is grown from each training set; a tree, or the trees of a forest."""

    @abstractmethod
    def _models_of(self, encoded: Encoded, grown: Sequence[Any]) -> list[Any]:
        """Fitted estimators with these parameters, from what `_grow_sets` has grown."""

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        """An estimator with these parameters, fitted to each training set; or the error of it."""
        return self._models_of(training.encoded, self._grow_sets(training, resampling))

    def _fit_plan(self, **own: Any) -> FitPlan:
        """How this estimator is fitted; its parameters have been checked.

        Trees and forests add their `own` attributes of the plan.
        """
        return FitPlan(
            self,
            criterion=self._criteria[self.criterion],
            target=self._encode_target,
            fit=lambda training: self._unfitted()._fit_coded(training),
            fit_sets=self._fit_sets,
            shares=self._shares(),
            class_weight=self._class_weight_of_target(),
            random_splits=self._random_cuts,
            **own,
        )

    def _shares(self) -> Shares:
        """Limits that depend on which rows a training set has."""
        return shares_of(
            self.min_samples_split, self.min_samples_leaf, self.min_weight_fraction_leaf
        )

    def _unfitted(self) -> Any:
        """What `clone` makes, which asks for the signature each time."""
        if not isinstance(self.random_state, Integral | None):
            return clone(self)
        made = type(self).__new__(type(self))
        made.__dict__.update({name: getattr(self, name) for name in _parameter_names(type(self))})
        return made

    def _answer(self, method: str, X: Any, predictor: Predictor | None = None) -> Any:
        """The predictor's answer for a table; for a Dask collection a lazy one."""
        if "n_features_in_" not in self.__dict__:  # which takes longer than a row
            check_is_fitted(self)
        return answered(predictor or self._predictor(), method, X, self.n_jobs)


@lru_cache(maxsize=64)
def _parameter_names(kind: type[BaseTrees]) -> tuple[str, ...]:
    """Of an estimator's signature, which is read once: that takes longer than a small tree."""
    return tuple(kind._get_param_names())
