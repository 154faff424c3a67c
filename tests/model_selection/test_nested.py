"""Nested cross-validation has scikit-learn's results, from one coded table."""

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import f1_score, make_scorer

import dtrees
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)

CANCER = tuple(part[:250] for part in load_breast_cancer(return_X_y=True))
DIABETES = load_diabetes(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, None], "ccp_alpha": [0.0, 0.01], "criterion": ["gini", "entropy"]}
OUTER = theirs.KFold(3, shuffle=True, random_state=5)
INNER = theirs.KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def codings(monkeypatch):
    """Calls that code a table."""
    found, code = [], FitPlan.code
    monkeypatch.setattr(FitPlan, "code", lambda *args: found.append(args) or code(*args))
    return found


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("scoring", "refit", "outer"),
    [
        (None, True, None),
        ("neg_log_loss", True, None),
        ("neg_log_loss", True, ["accuracy", "neg_brier_score"]),
        (make_scorer(f1_score), True, None),
        (["accuracy", "roc_auc"], "roc_auc", None),
        ({"a": "accuracy", "f": make_scorer(f1_score)}, "f", None),
        (lambda model, X, y: -abs(model.get_n_leaves() - 5.0), True, None),
        (None, True, lambda model, X, y: model.best_score_ + len(X)),
    ],
    ids=["none", "name", "name and names", "scorer", "names", "dict", "function", "outer"],
)
def test_against_brute_force(scoring, refit, outer, codings):
    how = {"cv": OUTER, "scoring": outer, "return_estimator": True}
    ours = cross_validate(
        GridSearchCV(TREE, GRID, cv=INNER, scoring=scoring, refit=refit), *CANCER, **how
    )
    assert len(codings) == 1
    expected = theirs.cross_validate(
        theirs.GridSearchCV(TREE, GRID, cv=INNER, scoring=scoring, refit=refit), *CANCER, **how
    )
    assert ours.keys() == expected.keys()
    for name, values in expected.items():
        if name.startswith("test_"):
            np.testing.assert_allclose(ours[name], values, 1e-10, 1e-15, err_msg=name)
    for a, b in zip(ours["estimator"], expected["estimator"], strict=True):
        assert a.best_params_ == b.best_params_
        for mine, other in zip(
            trees_of(a.best_estimator_), trees_of(b.best_estimator_), strict=True
        ):
            np.testing.assert_array_equal(mine.feature, other.feature)
            np.testing.assert_array_equal(mine.statistics, other.statistics)
    whole = GridSearchCV(TREE, GRID, cv=INNER, scoring=scoring, refit=refit).fit(*CANCER)
    assert ours["final_estimator"].best_params_ == whole.best_params_


def test_regression_and_random_candidates():
    limits = {"max_depth": [1, 2, 3, 4], "min_samples_split": list(range(2, 60))}
    tree = dtrees.DecisionTreeRegressor()
    ours, expected = (
        score(search(tree, limits, n_iter=20, random_state=1, cv=3), *DIABETES, cv=OUTER)
        for score, search in (
            (cross_val_score, RandomizedSearchCV),
            (theirs.cross_val_score, theirs.RandomizedSearchCV),
        )
    )
    np.testing.assert_allclose(ours, expected, 1e-9)


def test_predictions():
    ours = cross_val_predict(GridSearchCV(TREE, GRID, cv=INNER), *CANCER, cv=OUTER)
    expected = theirs.cross_val_predict(
        theirs.GridSearchCV(TREE, GRID, cv=INNER), *CANCER, cv=OUTER
    )
    np.testing.assert_array_equal(ours, expected)


def test_weights():
    weight = np.random.default_rng(0).integers(1, 4, len(CANCER[1])).astype(float)
    how = {"cv": OUTER, "params": {"sample_weight": weight}}
    ours = cross_val_score(GridSearchCV(TREE, GRID, cv=INNER), *CANCER, **how)
    expected = theirs.cross_val_score(theirs.GridSearchCV(TREE, GRID, cv=INNER), *CANCER, **how)
    np.testing.assert_allclose(ours, expected, 1e-10)


def test_what_cannot_be_nested():
    search = GridSearchCV(TREE, GRID, refit=False)
    with pytest.raises(AttributeError, match="refit"):
        cross_validate(search, *CANCER, cv=3, error_score="raise")


def test_a_search_that_fails():
    search = GridSearchCV(TREE, {"max_depth": [-1]})
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        cross_validate(search, *CANCER, cv=3)


def test_inner_splits_that_list_rows_twice():
    inner = [(np.r_[0, 0, 1:60], np.arange(60, 100))]
    ours, expected = (
        score(search(TREE, {"max_depth": [1, 3]}, cv=inner), *CANCER, cv=OUTER)
        for score, search in (
            (cross_val_score, GridSearchCV),
            (theirs.cross_val_score, theirs.GridSearchCV),
        )
    )
    np.testing.assert_allclose(ours, expected)
