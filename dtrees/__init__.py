"""Exact decision trees on coded tables.

The public names stand here and nothing else. They are loaded at first use, so that
``import dtrees`` (and the import of a single floor, ``import dtrees.coding``) costs next to
nothing and never drags in what the floor below does not need.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from os.path import dirname
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtrees.estimators import (
        AdaBoostClassifier,
        AdaBoostRegressor,
        BaggingClassifier,
        BaggingRegressor,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        IsolationForest,
        RandomForestClassifier,
        RandomForestRegressor,
        estimate_cost,
    )
    from dtrees.export import load, save
    from dtrees.inspection import (
        export_text,
        plot_shared_forest,
        plot_tree,
        shared_forest,
        stability_report,
    )
    from dtrees.model_selection import (
        GridSearchCV,
        RandomizedSearchCV,
        cross_val_predict,
        cross_val_score,
        cross_validate,
        validation_surface,
    )

__version__ = "0.1.0"

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "GridSearchCV",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomizedSearchCV",
    "__version__",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "estimate_cost",
    "export_text",
    "load",
    "plot_shared_forest",
    "plot_tree",
    "save",
    "shared_forest",
    "stability_report",
    "validation_surface",
]

_NAMES = {
    "dtrees.estimators": (
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "IsolationForest",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "estimate_cost",
    ),
    "dtrees.export": (
        "load",
        "save",
    ),
    "dtrees.inspection": (
        "export_text",
        "plot_shared_forest",
        "plot_tree",
        "shared_forest",
        "stability_report",
    ),
    "dtrees.model_selection": (
        "GridSearchCV",
        "RandomizedSearchCV",
        "cross_val_predict",
        "cross_val_score",
        "cross_validate",
        "validation_surface",
    ),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}
_PACKAGES = ("export", "inspection", "io", "model_selection")

if find_spec("dtrees._random") is None:
    raise ImportError(
        f"dtrees in {dirname(dirname(__file__))} is not compiled for Python "
        f"{sys.version_info.major}.{sys.version_info.minor}. Run \"pip install -e '.[cli,plot]'\" "
        "in that folder. Where dtrees is also installed elsewhere, leave the folder: Python "
        "prefers what lies in it.",
        name="dtrees",
    )


def __getattr__(name: str) -> Any:
    """Load a public name from its home, or a package, at first use (PEP 562)."""
    if name in _PACKAGES:
        return import_module(f"dtrees.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'dtrees' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
