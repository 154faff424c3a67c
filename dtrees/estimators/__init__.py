"""The scikit-learn skin: parameters in, one growth, attributes out."""

from dtrees.constraints import InvalidParameterError
from dtrees.estimators.adaboost import AdaBoostClassifier, AdaBoostRegressor
from dtrees.estimators.boosting import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from dtrees.estimators.estimate import CostEstimate, estimate_cost
from dtrees.estimators.forest_kinds import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.estimators.isolation import IsolationForest
from dtrees.estimators.tree_view import TreeView
from dtrees.estimators.trees import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "CostEstimate",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "InvalidParameterError",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "TreeView",
    "estimate_cost",
]
