"""The scikit-learn skin: parameters in, one growth, attributes out."""

from dtrees.estimators.constraints import InvalidParameterError
from dtrees.estimators.estimate import CostEstimate, estimate_cost
from dtrees.estimators.forests import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.estimators.view import TreeView

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "CostEstimate",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "InvalidParameterError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "TreeView",
    "estimate_cost",
]
