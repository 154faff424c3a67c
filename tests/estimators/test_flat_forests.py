"""Forests of several sets that end each at a tree of its own: they grow together until then."""

import functools
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import KFold

from dtrees import BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from dtrees.estimators import flat_forests
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import assert_same

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SHALLOW = {"max_depth": 4, "random_state": 0}
CASES = {
    "two classes": (RandomForestClassifier(90, oob_tol=0.004, **SHALLOW), CANCER),
    "balanced": (
        RandomForestClassifier(60, oob_tol=0.004, class_weight="balanced", **SHALLOW),
        CANCER,
    ),
    "numbers": (RandomForestRegressor(70, oob_tol=0.02, **SHALLOW), DIABETES),
    "bagging": (BaggingRegressor(n_estimators=50, oob_tol=0.03, random_state=0), DIABETES),
    "none ends": (RandomForestRegressor(25, oob_tol=0.0, max_depth=2, random_state=0), DIABETES),
}
FACTS = ("oob_scores_", "oob_score_", "oob_decision_function_", "oob_prediction_")


def validated(model, X, y, splits):
    """Models of the splits, and of all rows."""
    found = cross_validate(model, X, y, cv=splits, return_estimator=True)
    return [*found["estimator"], found["final_estimator"]]


def alone(model, X, y, splits):
    """The same, each by a fit with weights of zero."""
    models = [clone(model).fit(X, y, sample_weight=weight_of(train, len(y))) for train, _ in splits]
    return [*models, clone(model).fit(X, y)]


@functools.cache
def alone_of(name):
    """The same of a case, whatever the threads of what is compared."""
    model, (X, y) = CASES[name]
    return alone(model, X, y, list(KFold(4, shuffle=True, random_state=0).split(X)))


def weight_of(rows, n_rows):
    weight = np.zeros(n_rows)
    weight[rows] = 1
    return weight


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_each_is_the_forest_of_its_fit(name, n_jobs, grown):
    model, (X, y) = CASES[name]
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    found = validated(clone(model).set_params(n_jobs=n_jobs), X, y, splits)
    shared = sum(sets.n_shared_nodes for sets in grown)
    if getattr(model, "class_weight", None):  # bags are drawn by weight, for each side anew
        assert shared == 0
    else:
        assert shared > 15
        assert sum(sets.n_shared_rows for sets in grown) > 15 * 300
    sizes = []
    for ours, fit in zip(found, alone_of(name), strict=True):
        assert_same(ours, fit)
        sizes.append(ours.n_estimators_)
        for fact in FACTS:
            assert hasattr(ours, fact) == hasattr(fit, fact)
            if hasattr(fit, fact):
                np.testing.assert_array_equal(getattr(ours, fact), getattr(fit, fact))
    assert min(sizes) >= 20
    assert (name == "none ends") == (set(sizes) == {model.n_estimators})


@pytest.mark.parametrize("share", [1, 40])
def test_waves_change_nothing(share, monkeypatch):
    model, (X, y) = CASES["numbers"]
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    usual = validated(model, X, y, splits)
    monkeypatch.setattr(flat_forests, "SHARE", share)
    monkeypatch.setattr(flat_forests, "FIRST", 3 if share == 1 else 21)
    for ours, same in zip(usual, validated(model, X, y, splits), strict=True):
        assert_same(ours, same)


def test_own_scores_and_their_errors():
    """Scorers of the user are asked in this thread, and their errors are those of the fit."""
    threads = set()

    def score(y, found):
        threads.add(threading.get_ident())
        return -np.abs(y - found).mean()

    def fails(y, found):
        raise ValueError("too few rows")

    X, y = DIABETES
    model = RandomForestRegressor(30, oob_tol=0.5, max_depth=4, random_state=0, n_jobs=2)
    splits = list(KFold(3).split(X))
    found = validated(model.set_params(oob_score=score), X, y, splits)
    assert threads == {threading.get_ident()}
    for ours, fit in zip(found, alone(model, X, y, splits), strict=True):
        assert_same(ours, fit)
    with pytest.raises(ValueError, match="too few rows"):
        cross_validate(model.set_params(oob_score=fails), X, y, cv=splits)
