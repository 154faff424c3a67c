"""A plugin of pytest that puts classes and functions of dtrees in the place of scikit-learn's.

Public modules of scikit-learn have ours before modules of tests are imported. So lists of classes
that a module makes hold ours, too. The classes in `LATER` come when a module has been imported: in
its own names, and in the parameters of its tests.
"""

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.model_selection
import sklearn.tree
from sklearn.utils import all_estimators

import dtrees
from dtrees.model_selection import validation
from tests.peers import classic

CLASSIC = ("GradientBoostingClassifier", "GradientBoostingRegressor")
HIST = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
NAMES = {
    sklearn.tree: ("DecisionTreeClassifier", "DecisionTreeRegressor", "export_text", "plot_tree"),
    sklearn.ensemble: (
        *("AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor"),
        *("ExtraTreesClassifier", "ExtraTreesRegressor", "IsolationForest"),
        *("RandomForestClassifier", "RandomForestRegressor"),
        *(CLASSIC + HIST),
    ),
    sklearn.model_selection: (
        *("GridSearchCV", "RandomizedSearchCV"),
        *("cross_val_predict", "cross_val_score", "cross_validate"),
    ),
}
# Modules make some of these as they are imported, with parameters that ours refuse.
LATER = {"BaggingClassifier", "BaggingRegressor"}
# Defaults of scikit-learn, where ours are others on purpose (decision 20).
DEFAULTS = {"l2_regularization": 0.0, "use_best_model": False}

os.environ["SKLEARN_SEED"] = "0"  # of what scikit-learn seeds before its tests
all_estimators()  # imports all of scikit-learn, which goes on with its own classes
theirs = SimpleNamespace(**vars(sklearn.model_selection))
validation.sklearn = SimpleNamespace(model_selection=theirs)  # ours call what they replace
later = {}
for name in HIST:
    getattr(dtrees, name).__init__.__wrapped__.__kwdefaults__.update(DEFAULTS)
for place, names in NAMES.items():
    for name in names:
        mine = getattr(classic if name in CLASSIC else dtrees, name)
        if name in LATER:
            later[getattr(place, name)] = mine
        else:
            setattr(place, name, mine)
states = {}  # of generators of modules, as they were when their tests began


def pytest_itemcollected(item):
    """Replace what comes later, in the names of a test's module and in its parameters."""
    for original, mine in later.items():
        if vars(item.module).get(mine.__name__) is original:
            setattr(item.module, mine.__name__, mine)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for name, value in parameters.items():
        if isinstance(value, type):
            parameters[name] = later.get(value, value)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let a test draw the same, whichever tests came before it."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    for name, made in vars(item.module).items():
        if isinstance(made, np.random.RandomState):
            made.set_state(states.setdefault((item.module.__name__, name), made.get_state()))
