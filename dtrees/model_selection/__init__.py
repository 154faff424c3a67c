"""Validation of trees, forests and boosted models: folds, and their results.

One floor above the estimators: everything here fits and scores them through their public names.
"""

from dtrees.model_selection.boosting_curve import BoostingCurve, boosting_curve
from dtrees.model_selection.cost_complexity import CostComplexity, cost_complexity_cv
from dtrees.model_selection.folds import HashKFold
from dtrees.model_selection.intervals import CrossValidation
from dtrees.model_selection.nested_errors import NestedStandardError, nested_standard_error
from dtrees.model_selection.search import GridSearchCV, RandomizedSearchCV
from dtrees.model_selection.surface import ValidationSurface, validation_surface
from dtrees.model_selection.tuned_size import SizeChoice, TunedSize, tuned_size
from dtrees.model_selection.validation import cross_val_predict, cross_val_score, cross_validate

__all__ = [
    "BoostingCurve",
    "CostComplexity",
    "CrossValidation",
    "GridSearchCV",
    "HashKFold",
    "NestedStandardError",
    "RandomizedSearchCV",
    "SizeChoice",
    "TunedSize",
    "ValidationSurface",
    "boosting_curve",
    "cost_complexity_cv",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "nested_standard_error",
    "tuned_size",
    "validation_surface",
]


def __dir__() -> list[str]:
    return sorted(__all__)
