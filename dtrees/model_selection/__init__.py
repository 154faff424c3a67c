"""Validation of trees and forests: the problem in a table, its folds, and their results.

One floor above the estimators: everything here fits and scores them through their public names.
"""

from dtrees.model_selection.cost_complexity import CostComplexity, cost_complexity_cv
from dtrees.model_selection.cross_validation import (
    FoldResult,
    cross_validation,
    mean_and_standard_error,
    shuffled_folds,
)
from dtrees.model_selection.files import read_table
from dtrees.model_selection.problem import MOST_CLASSES, Problem, problem_of, task_of
from dtrees.model_selection.search import GridSearchCV, RandomizedSearchCV
from dtrees.model_selection.size import ModelSize, size_of
from dtrees.model_selection.surface import ValidationSurface, validation_surface
from dtrees.model_selection.validation import cross_val_predict, cross_val_score, cross_validate

__all__ = [
    "MOST_CLASSES",
    "CostComplexity",
    "FoldResult",
    "GridSearchCV",
    "ModelSize",
    "Problem",
    "RandomizedSearchCV",
    "ValidationSurface",
    "cost_complexity_cv",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "cross_validation",
    "mean_and_standard_error",
    "problem_of",
    "read_table",
    "shuffled_folds",
    "size_of",
    "task_of",
    "validation_surface",
]
