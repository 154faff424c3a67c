"""Wrong arguments of public functions, and of methods of results, are refused by name.

The walk is over ``__all__`` of the packages, so that a new function has to join: `right_arguments`
has a call of each, and `TAKEN` which of the `WRONG` values a parameter takes after all.
"""

import inspect
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dtrees
from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.callbacks import BoostingFit, Callback, ForestFit, ProgressBar
from dtrees.export import save
from dtrees.inspection import partial_dependence, shap_values
from dtrees.losses import Loss
from dtrees.model_selection import (
    GridSearchCV,
    HashKFold,
    RandomizedSearchCV,
    boosting_curve,
    cost_complexity_cv,
    cross_validate,
    nested_standard_error,
    validation_surface,
)

PACKAGES = ["", ".model_selection", ".inspection", ".export", ".io", ".losses", ".callbacks"]
X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)
UNFITTED = DecisionTreeClassifier(max_depth=2, random_state=0)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
FOREST = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y)
BOOSTED = GradientBoostingClassifier(max_iter=3, min_samples_leaf=3).fit(X, Y)
WRONG = {
    "None": None,
    "-1": -1,
    "2.5": 2.5,
    "True": True,
    "nan": float("nan"),
    "inf": float("inf"),
    "'x'": "x",
    "[1, 2]": [1, 2],
    "array": np.array([1.0, 2.0]),
    "{}": {},
    "object": object(),
    "class": DecisionTreeClassifier,
    "unfitted": UNFITTED,
    "tree": TREE,
    "boosted": BOOSTED,
}
# What parameters take after all, by their names, or by function and name where they differ.
TAKEN = {
    "X": "",
    "y": "",
    "ax": "None",
    "background": "None",
    "as_text": "[1, 2]|array",
    "callbacks": "None",
    "ccp_alpha": "2.5",
    "checkpoint": "None|'x'",
    "class_names": "None|[1, 2]|array",
    "client": "None",
    "color": "None",
    "console": "None",
    "cv": "None",
    "dayfirst": "True",
    "decimal": "None",
    "encoding": "None",
    "error_score": "True|-1|2.5|nan|inf",
    "estimator": "unfitted|tree|boosted",
    "feature_names": "None|[1, 2]|array",
    "filled": "True",
    "final": "None|tree",
    "groups": "None",
    "importances": "None|[1, 2]|array",
    "impurity": "True",
    "interactions": "True",
    "max_categories": "None",
    "max_columns": "None",
    "max_iter": "None",
    "max_width": "None",
    "min_samples_split": "None",
    "mmap": "True",
    "model": "tree|boosted",
    "n_jobs": "None|-1|True",
    "n_repeats": "None",
    "node_ids": "True",
    "normalize": "True",
    "out_file": "None|'x'",
    "output": "None",
    "params": "None|{}",
    "path": "'x'",
    "pre_dispatch": "None|-1|True|'x'",
    "cross_validate pre_dispatch": "-1|True|'x'",
    "random_state": "None|True",
    "return_estimator": "True",
    "return_indices": "True",
    "return_train_score": "True",
    "scoring": "None",
    "separator": "None|'x'",
    "show_weights": "True",
    "sample_weight": "None",
    "bootstrap_groups": "None",
    "thousands": "None",
    "tol": "2.5",
    "values": "None|[1, 2]|array",
    "verbose": "True",
    "BoostingCurve.model max_iter": "",
    "HashKFold.folds y": "None",
    "HashKFold.split y": "None",
    "ValidationSurface.model min_samples_split": "",
    "Explanation.of_output output": "",
    "boosting_curve estimator": "boosted",
    "cross_val_score scoring": "None|class",  # it fails in every split, with a warning
    "cross_validate scoring": "None|class",
    "cost_complexity_cv estimator": "unfitted|tree",
    "estimate_cost model": "None",
    "export_graphviz decision_tree": "tree|boosted",
    "export_graphviz max_depth": "None",
    "export_text decision_tree": "tree|boosted",
    "export_text tree": "None",
    "held_out_importances model": "tree",
    "outlier_scores y": "None",
    "proximities other": "None",
    "load path": "",
    "nested_standard_error cv": "",
    "plot_metric dataset_names": "None",
    "plot_metric metric": "None",
    "plot_metric model": "",
    "plot_shared_forest max_depth": "None",
    "plot_tree decision_tree": "tree|boosted",
    "plot_tree max_depth": "None",
    "shared_forest max_depth": "None",
    "to_lightgbm path": "None|'x'",
    "to_onnx dtype": "None",
    "to_onnx missing": "'x'",
    "to_onnx path": "None|'x'",
    "to_sklearn model": "tree",
    "to_sklearn tree": "None",
    "validation_surface estimator": "unfitted|tree",
    "validation_surface max_depth": "None|[1, 2]",
}
# Sentences of scikit-learn's, and of ours, that name what is wrong by another word.
OTHER_WORDS = (
    "Expected 2D array|inconsistent numbers of samples|of n_samples=2 rows|no column |"
    "The list/tuple elements must be|An empty dict was passed"
)
NOT_CALLED = {  # by users: what a fit calls, what is scikit-learn's, what is a dict's
    *(Callback, Loss, BoostingFit, GridSearchCV, RandomizedSearchCV),
    *(f"CrossValidation.{name}" for name in dir(dict)),
    "HashKFold.get_n_splits",
}


def public():
    """Functions, and methods of classes that are no estimators, by their names."""
    found = {}
    for package in PACKAGES:
        module = import_module(f"dtrees{package}")
        for value in (getattr(module, name) for name in module.__all__):
            if inspect.isfunction(value):
                found[value.__name__] = value
            elif value is ProgressBar:
                found["ProgressBar"] = value
            elif inspect.isclass(value) and value not in NOT_CALLED and not hasattr(value, "fit"):
                for name, method in inspect.getmembers(value, inspect.isfunction):
                    found[f"{value.__name__}.{name}"] = method
    return {
        name: value
        for name, value in found.items()
        if "._" not in name and name not in NOT_CALLED and set(parameters_of(value))
        if value.__module__.startswith("dtrees.")
    }


def parameters_of(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.fixture(scope="module")
def right_arguments(tmp_path_factory):
    """Arguments of every function, that it takes; of a method also its object."""
    folder = tmp_path_factory.mktemp("arguments")
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    table.to_csv(folder / "table.csv", index=False)
    save(TREE, folder / "tree.dtrees")
    data = {"estimator": UNFITTED, "X": X, "y": Y}
    regressor = dtrees.DecisionTreeRegressor(max_depth=2)
    curve = boosting_curve(BOOSTED, X, Y, cv=3)
    surface = validation_surface(UNFITTED, X, Y, cv=3)
    path = cost_complexity_cv(UNFITTED, X, Y, cv=3)
    validated = cross_validate(regressor, X, X[:, 0], cv=3, return_estimator=True)
    error = nested_standard_error(UNFITTED, X, Y, cv=3, n_repeats=1)
    forest = ForestFit(FOREST, range(2), list(FOREST.forest_.trees), lambda tree: tree)
    of_methods = [
        (curve, {"model": [2], "plot": [], "shrunken": [0.5], "stopped": []}),
        (surface, {"model": [1], "plot": []}),
        (path, {"model": [0.0], "plot": []}),
        (validated, {"prediction_interval": [X]}),
        (error, {"interval": []}),
        (forest, {"tree": [0]}),
        (HashKFold(3, random_state=0), {"split": [X], "folds": [X]}),
        (shap_values(FOREST, X), {"of_output": ["1"]}),
    ]
    found = {}
    for owner, methods in of_methods:
        for name, given in methods.items():
            names = ["self", *parameters_of(getattr(owner, name))]
            found[f"{type(owner).__name__}.{name}"] = dict(
                zip(names, [owner, *given], strict=False)
            )
    return found | {
        "ProgressBar": {},
        "boosting_curve": data | {"estimator": BOOSTED, "cv": 3},
        "cost_complexity_cv": data | {"cv": 3},
        "cross_val_predict": data,
        "cross_val_score": data,
        "cross_validate": data,
        "estimate_cost": {"estimator": UNFITTED, "X": X},
        "export_graphviz": {"decision_tree": TREE},
        "export_text": {"decision_tree": TREE},
        "held_out_importances": {"model": TREE, "X": X, "y": Y},
        "nodes": {"model": TREE},
        "oob_importances": {"forest": FOREST, "X": X, "y": Y},
        "impurity_importances": {"tree": TREE.tree_.model},
        "load": {"path": str(folder / "tree.dtrees")},
        "nested_standard_error": data | {"cv": 3, "n_repeats": 1},
        "partial_dependence": {"model": TREE, "column": 0},
        "plot_beeswarm": {"explanation": shap_values(BOOSTED, X)},
        "plot_shap_dependence": {"explanation": shap_values(BOOSTED, X), "column": 0},
        "plot_waterfall": {"explanation": shap_values(BOOSTED, X)},
        "outlier_scores": {"model": TREE, "X": X, "y": Y},
        "proximities": {"model": TREE, "X": X, "other": X},
        "plot_shared_forest": {"models": [TREE, TREE]},
        "plot_importance": {"model": TREE},
        "plot_metric": {
            "model": dtrees.GradientBoostingClassifier(max_iter=2).fit(X, Y, eval_set=[(X, Y)])
        },
        "plot_tree": {"decision_tree": TREE},
        "problem_of": {"table": table, "target": "y"},
        "read_table": {"source": folder / "table.csv"},
        "save": {"model": TREE, "path": folder / "other.dtrees"},
        "shap_values": {"model": TREE, "X": X},
        "shared_forest": {"models": [TREE, TREE]},
        "split_counts": {"model": TREE},
        "stability_report": {"models": [TREE, TREE]},
        "to_lightgbm": {"model": TREE},
        "to_onnx": {"model": TREE},
        "to_sklearn": {"model": TREE},
        "trees_to_dataframe": {"model": TREE},
        "tuned_size": data | {"splits": 3},
        "validation_surface": data | {"cv": 3},
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(public()))
def test_wrong_values_are_refused_by_the_name_of_their_parameter(
    name, right_arguments, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # 'x' is a file to write
    function, right = public()[name], right_arguments[name]
    if "plot" in name:
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("agg")
        monkeypatch.setattr("matplotlib.pyplot.figure", lambda **_: matplotlib.figure.Figure())
    function(**right)
    unexpected = []
    for parameter in parameters_of(function):
        taken = TAKEN.get(f"{name} {parameter}", TAKEN.get(parameter, "")).split("|")
        for words, value in WRONG.items():
            try:
                function(**{**right, parameter: value})
                said = None
            except (ValueError, TypeError, OSError, NotFittedError) as error:
                is_named = re.search(rf"\b{parameter}\b|{OTHER_WORDS}", str(error)) is not None
                is_named |= isinstance(value, str) and repr(value) in str(error)
                is_named |= hasattr(value, "fit") and type(value).__name__ in str(error)
                said = "" if is_named else str(error)
            if (said is None) != (words in taken) or said:
                unexpected.append((parameter, words, said))
    assert unexpected == []


def test_a_missing_argument_is_named_with_its_function():
    with pytest.raises(TypeError, match=r"^cross_validate\(\) missing 1 .* argument: 'estimator'"):
        cross_validate(X=X)
    with pytest.raises(TypeError, match=r"^validation_surface\(\) got an unexpected .* 'depth'"):
        validation_surface(UNFITTED, X, Y, depth=3)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Index, pd.Series])
def test_names_of_columns_in_any_array(kind):
    tree = clone(UNFITTED).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert partial_dependence(tree, column=kind(["a", "b"])).names == ("a", "b")
    assert partial_dependence(tree, column=kind(["b"])).name == "b"
