"""A user's script passes ``mypy --strict``, and gets the types that it expects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
from typing import Any, assert_type

import numpy as np

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GridSearchCV,
    RandomForestClassifier,
    cross_val_score,
    cross_validate,
    estimate_cost,
    export_text,
    plot_tree,
    save,
    shared_forest,
    stability_report,
    validation_surface,
)
from dtrees.callbacks import Callback
from dtrees.estimators import CostEstimate, TreeView
from dtrees.inspection import PartialDependence, SharedForest, StabilityReport, partial_dependence
from dtrees.model_selection import CrossValidation, HashKFold, ValidationSurface, boosting_curve

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = X[:, 0] > 0

tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=0.01, class_weight={True: 2.0})
assert_type(tree.fit(X, y), DecisionTreeClassifier)
assert_type(tree.max_depth, int | None)
assert_type(tree.n_features_in_, int)
assert_type(tree.n_classes_, int)
assert_type(tree.tree_, TreeView)
assert_type(tree.get_depth(), int)
assert_type(export_text(tree), str)
labels: np.ndarray[Any, Any] = tree.classes_
predicted: np.ndarray[Any, Any] = tree.predict(X)
axes = plot_tree(tree)

forest = RandomForestClassifier(10, oob_score=True, n_jobs=-1)
assert_type(forest.fit(X, y, callbacks=[Callback()]), RandomForestClassifier)
assert_type(forest.oob_score_, float)
assert_type(BaggingRegressor().fit(X, X[:, 0]), BaggingRegressor)
assert_type(ExtraTreesRegressor().fit(X, X[:, 0]), ExtraTreesRegressor)
save(forest, "forest.dtrees")

boosted = GradientBoostingClassifier(max_iter=5, early_stopping=True)
assert_type(boosted.fit(X, y, X_val=X, y_val=y), GradientBoostingClassifier)
assert_type(boosted.n_iter_, int)
boosted.fit(X, y, eval_set=[(X, y)], eval_names=["all"], eval_metric=["roc_auc"], init_score=y)
assert_type(boosted.evals_result_, dict[str, dict[str, list[float]]])
assert_type(boosted[:3], GradientBoostingClassifier)
assert_type(boosted.first_iterations(3), GradientBoostingClassifier)

result = cross_validate(tree, X, y, cv=HashKFold(5), return_estimator=True)
assert_type(result, CrossValidation)
scores: np.ndarray[Any, Any] = cross_val_score(tree, X, y)
search = GridSearchCV(tree, {"max_depth": [1, 2]}, cv=5)
assert_type(search.fit(X, y), GridSearchCV)
surface = validation_surface(tree, X, y)
assert_type(surface, ValidationSurface)
assert_type(surface.best, dict[str, int])
assert_type(boosting_curve(boosted, X, y).best, int)
assert_type(stability_report(result["estimator"], result.final_estimator), StabilityReport)
assert_type(shared_forest(result["estimator"]), SharedForest)
assert_type(estimate_cost(forest, X), CostEstimate)
assert_type(partial_dependence(forest, 0), PartialDependence)

tree.max_depth = "deep"  # an error: the only one
"""


@pytest.mark.long
@pytest.mark.rest
def test_a_script_of_a_user(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--ignore-missing-imports", f"--cache-dir={tmp_path / 'cache'}", script.name],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    assert lines[0].startswith(
        f"script.py:{len(SCRIPT.splitlines())}: error: Incompatible types"
    ), lines
    assert lines[1].startswith("Found 1 error")
