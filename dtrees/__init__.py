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
        BaggingClassifier,
        BaggingRegressor,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        estimate_cost,
    )
    from dtrees.inspection import (
        export_text,
        plot_shared_forest,
        shared_forest,
        stability_report,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "__version__",
    "estimate_cost",
    "export_text",
    "plot_shared_forest",
    "shared_forest",
    "stability_report",
]

_HOME = {
    "BaggingClassifier": "dtrees.estimators",
    "BaggingRegressor": "dtrees.estimators",
    "DecisionTreeClassifier": "dtrees.estimators",
    "DecisionTreeRegressor": "dtrees.estimators",
    "ExtraTreesClassifier": "dtrees.estimators",
    "ExtraTreesRegressor": "dtrees.estimators",
    "GradientBoostingClassifier": "dtrees.estimators",
    "GradientBoostingRegressor": "dtrees.estimators",
    "RandomForestClassifier": "dtrees.estimators",
    "RandomForestRegressor": "dtrees.estimators",
    "estimate_cost": "dtrees.estimators",
    "export_text": "dtrees.inspection",
    "plot_shared_forest": "dtrees.inspection",
    "shared_forest": "dtrees.inspection",
    "stability_report": "dtrees.inspection",
}
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
