"""Warnings point to the line of the user, whoever calls whom in between."""

import ast
import warnings
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import dtrees
from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.model_selection import GridSearchCV, cross_validate

PACKAGE = Path(dtrees.__file__).parent
X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b"])
LABELS = pd.DataFrame({"a": [f"id {i}" for i in range(60)]})
DAYS = pd.DataFrame({"a": [f"2024-02-{1 + i % 28:02}" for i in range(60)]})
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
PIPE = make_pipeline(FunctionTransformer(), TREE)
OF_LABELS = clone(TREE).fit(pd.DataFrame({"a": ["x", "y"] * 30}), Y)


def search_one_by_one():
    search = GridSearchCV(make_pipeline(StandardScaler(), TREE), {"memory": [None]}, cv=3)
    with config_context(enable_metadata_routing=True):
        search.fit(X, Y)


def final_of_a_failed_fit():
    y = np.where(np.arange(60) == 59, np.nan, Y)
    return cross_validate(TREE, X, y, cv=[(range(40), range(40, 59))]).final_estimator


def predicted_late():
    lazy = OF_LABELS.predict(da.from_array(LABELS.to_numpy(), chunks=(30, 1)))
    with dask.config.set(scheduler="sync"):
        return lazy.compute()


WARNED = {
    "fits failed out of": lambda: GridSearchCV(TREE, {"max_depth": [1, -1]}, cv=3).fit(X, Y),
    "is fitted on its own": search_one_by_one,
    "A column-vector groups": lambda: cross_validate(
        TREE, X, Y, cv=GroupKFold(3), groups=np.arange(60)[:, None]
    ),
    "A column-vector y": lambda: clone(TREE).fit(X, Y[:, None]),
    "The fit to all rows failed": final_of_a_failed_fit,
    "Scores are nan": lambda: cross_validate(
        TREE, X, Y, cv=[(range(60), np.flatnonzero(Y))] * 2, scoring="roc_auc"
    ),
    "do not have OOB scores": lambda: RandomForestClassifier(1, oob_score=True).fit(X, Y),
    "Warm-start fitting": lambda: RandomForestClassifier(1, warm_start=True).fit(X, Y).fit(X, Y),
    "was fitted without feature names": lambda: clone(TREE).fit(X, Y).predict(FRAME),
    "was fitted with feature names": lambda: clone(PIPE).fit(FRAME, Y).predict_proba(X),
    "none of its values was there at fit": lambda: OF_LABELS.predict(LABELS),
    "Is this an id": lambda: GradientBoostingClassifier(max_iter=1).fit(LABELS, Y),
    "look like dates": lambda: clone(TREE).fit(DAYS, Y),
    "Is each an id": lambda: cross_validate(
        PIPE, LABELS.assign(b=LABELS["a"]), Y, cv=[(range(60), range(9))]
    ),
    "none of its values was": lambda: LABELS.pipe(OF_LABELS.predict),
    "X has chunks along columns": lambda: clone(TREE).fit(da.from_array(X, chunks=(30, 1)), Y),
}


def filenames(words, call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return [each.filename for each in heard if words in str(each.message)]


@pytest.mark.parametrize("words", WARNED)
def test_they_point_to_who_calls(words):
    assert set(filenames(words, WARNED[words])) == {__file__}


def test_they_point_to_who_computes():
    assert filenames("none of its values", predicted_late) == [__file__] * 2


def test_the_package_warns_in_one_place():
    """Elsewhere a fixed level of the stack would say which line a warning points to."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("warn", "warn_explicit")
    ]
    assert [each.partition(":")[0] for each in found] == ["_warnings.py"]
    kernels = [path for path in PACKAGE.rglob("*.pyx") if "warn(" in path.read_text("utf-8")]
    assert kernels == []
