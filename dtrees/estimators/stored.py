"""What model files ask of estimators: their parts, and whether parts are what a fit makes.

    estimator ──_parts──▶ parameters, attributes, trees, codebook ──_of_parts──▶ estimator
                                  └──_check_parts──▶ nothing, or an error

An estimator says what its parameters may be and what its fit learns, as constraints. Files hold
these attributes and no others, and what a file says is checked by the same constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dtrees.estimators.constraints import ArrayOf, Constraint, NumberOf, check_values
from dtrees.estimators.fit_plan import LARGEST_SEED
from dtrees.export.parts import Parts

MOST = LARGEST_SEED

# What all estimators learn, and what classifiers learn beside it.
LEARNS_COLUMNS: Mapping[str, tuple[Constraint, ...]] = {
    "n_features_in_": (NumberOf(1, MOST),),
    "feature_names_in_": (ArrayOf(1, np.dtype(object)),),
}
LEARNS_CLASSES: Mapping[str, tuple[Constraint, ...]] = {
    "classes_": (ArrayOf(1),),
    "n_classes_": (NumberOf(1, MOST),),
}


class Stored(BaseEstimator, ABC):
    """What estimators that model files hold have in common; not meant to be used itself."""

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    # What a fit learns, beside trees and codebook; model files hold nothing else.
    _learns: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    _learns_at_times: ClassVar[frozenset[str]] = frozenset({"feature_names_in_"})
    _adds_steps: ClassVar[bool] = False  # trees are of numbers, whatever the target

    @abstractmethod
    def _parts(self) -> Parts:
        """What a fitted estimator is made of, for model files."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, parts: Parts) -> Any:
        """The estimator that is made of these parts."""

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        """Refuse parameters and attributes that no fit of this class has.

        Raises InvalidParameterError where one is of the wrong type or outside its range, and
        ValueError where one is missing, or does not fit the others.
        """
        check_values(cls._constraints, parts.parameters, "parameter", cls.__name__)
        check_values(cls._learns, parts.attributes, "attribute", cls.__name__)
        missing = cls._learns.keys() - cls._learns_at_times - parts.attributes.keys()
        if missing:
            raise ValueError(f"there is no attribute {min(missing)!r}")

    def _learned_attributes(self) -> dict[str, Any]:
        """What `fit` learned, beside trees and codebook."""
        check_is_fitted(self)
        return {name: value for name, value in vars(self).items() if name in self._learns}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_fit_report", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
