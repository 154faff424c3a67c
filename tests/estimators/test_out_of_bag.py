"""Out-of-bag predictions are those of a loop over trees, and tell when there are enough trees."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.membership.resampling import Bags
from tests.estimators.forest_cases import CANCER

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor]


def mixed(n_rows=300):
    """Numbers of many values, missing ones, categories and a hybrid column."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=n_rows)
    number[::9] = np.nan
    letters = rng.choice(list("abcdef"), n_rows).astype(object)
    hybrid = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 9, n_rows), letters)
    X = pd.DataFrame({"x": number, "letter": letters, "hybrid": hybrid})
    return X, (np.nan_to_num(number) > 0).astype(int) + (letters == "a")


def counts(n_rows=300):
    rng = np.random.default_rng(1)
    X = rng.poisson(0.4, size=(n_rows, 12)).astype(float)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n_rows) > 1).astype(int)


def reference(forest, X, groups=None, n_trees=None):
    """Means by the trees whose bag lacks a row, row by row."""
    rows = np.arange(len(forest.apply(X)), dtype=np.uint64)
    keys = rows if groups is None else np.unique(groups, return_inverse=True)[1].astype(np.uint64)
    bags = Bags(forest._fit_seed, forest.max_samples or 1.0, keys)
    trees = forest.estimators_[:n_trees]
    method = "predict_proba" if hasattr(forest, "classes_") else "predict"
    predicted = [np.atleast_2d(getattr(tree, method)(X).T).T for tree in trees]
    times = [bags.multiplicity(i) for i in range(len(trees))]
    means = np.full((len(rows), predicted[0].shape[1]), np.nan)
    for row in rows.astype(int):
        total, votes = np.zeros(means.shape[1]), 0
        for each, bag in zip(predicted, times, strict=True):
            if bag[row] == 0:
                total += each[row]
                votes += 1
        if votes:
            means[row] = total / votes
    return means


def fitted(forest, X, y, **more):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB")
        return forest.fit(X, y, **more)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("table", [mixed, counts])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"max_bins": 8}, {"max_bins": None}, {"max_samples": 0.3, "max_leaf_nodes": 9}],
)
def test_a_loop_over_rows_and_trees(kind, table, parameters):
    X, y = table()
    forest = kind(9, bootstrap=True, oob_score=True, random_state=0, **parameters)
    name = "oob_decision_function_" if kind in CLASSIFIERS else "oob_prediction_"
    expected = np.squeeze(reference(fitted(forest, X, y), X))
    np.testing.assert_array_equal(getattr(forest, name), expected)
    others = [(X, 2), (sp.csr_array(X), 1), (sp.csc_array(X), 2)] if table is counts else [(X, 2)]
    for other, n_jobs in others:
        again = fitted(clone(forest).set_params(n_jobs=n_jobs), other, y)
        np.testing.assert_array_equal(getattr(again, name), expected)
        assert again.oob_score_ == forest.oob_score_


def test_groups():
    X, y = mixed()
    groups = np.arange(len(y)) // 10
    forest = RandomForestClassifier(9, oob_score=True, random_state=0)
    fitted(forest, X, y, bootstrap_groups=groups)
    np.testing.assert_array_equal(forest.oob_decision_function_, reference(forest, X, groups))


@pytest.mark.parametrize("labels", [np.array(["no", "maybe", "yes"]), np.array([-1, 0, 7])])
def test_scores_are_those_of_scikit_learn(labels):
    X, y = mixed()
    y = labels[y]
    forest = fitted(RandomForestClassifier(9, oob_score=True, random_state=0), X, y)
    mean = forest.oob_decision_function_
    voted = ~np.isnan(mean[:, 0])
    predicted = forest.classes_[mean[voted].argmax(axis=1)]
    assert forest.oob_score_ == accuracy_score(y[voted], predicted)
    same = fitted(clone(forest).set_params(oob_score=accuracy_score), X, y)
    assert same.oob_score_ == forest.oob_score_
    column = fitted(clone(forest), X, y.tolist())
    assert column.oob_score_ == forest.oob_score_


def test_warm_start_adds_up_the_trees_that_are_there():
    X, y = mixed()
    whole = RandomForestClassifier(60, oob_score=True, oob_tol=0.01, random_state=0).fit(X, y)
    n_trees = whole.n_estimators_
    assert 20 <= n_trees < 60
    forest = RandomForestClassifier(12, oob_score=True, random_state=0, warm_start=True)
    fitted(forest, X, y).set_params(n_estimators=n_trees, oob_tol=0.01).fit(X, y)
    np.testing.assert_array_equal(forest.oob_scores_, whole.oob_scores_)
    np.testing.assert_array_equal(forest.oob_decision_function_, whole.oob_decision_function_)


def test_warm_start_on_other_values():
    # the codes of the first fit mean something else in the second
    X, y = CANCER
    forest = RandomForestClassifier(30, oob_score=True, random_state=0, warm_start=True).fit(X, y)
    other = X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0) / 10
    forest.set_params(n_estimators=60).fit(other, y)
    np.testing.assert_allclose(forest.oob_decision_function_, reference(forest, other), rtol=1e-13)


def test_scores_of_a_former_fit_do_not_stay():
    X, y = CANCER
    forest = RandomForestClassifier(30, random_state=0, oob_tol=0.0).fit(X, y)
    forest.set_params(oob_tol=None).fit(X, y)
    assert not [name for name in vars(forest) if name.startswith("oob_") and name.endswith("_")]


class TestBagsOfAWarmStart:
    """Out-of-bag needs to know the bags of the trees that are kept."""

    @staticmethod
    def grow(first, then, groups=None, **asked):
        X, y = mixed()
        forest = RandomForestClassifier(5, warm_start=True, random_state=0, **first)
        forest.fit(X, y, bootstrap_groups=groups)
        return forest.set_params(n_estimators=9, **{"oob_score": True, **then, **asked}).fit(X, y)

    @pytest.mark.parametrize(
        "first", [{"bootstrap": False}, {"max_samples": 0.5}], ids=["no bags", "smaller bags"]
    )
    def test_other_bags_are_refused(self, first):
        then = {"bootstrap": True, "max_samples": None}
        with pytest.raises(ValueError, match="bags were drawn otherwise"):
            self.grow(first, then)
        assert len(self.grow(first, then, oob_score=False).estimators_) == 9

    def test_other_groups_are_refused(self):
        with pytest.raises(ValueError, match="bags were drawn otherwise"):
            self.grow({}, {}, groups=np.arange(len(mixed()[1])) // 5)

    def test_the_same_bags(self):
        assert len(self.grow({}, {}).estimators_) == 9


def test_rows_of_the_only_weight_do_not_vote_for_themselves():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    weights = np.zeros(60)
    weights[:2] = 1.0
    forest = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, y, weights)
    votes = forest.oob_decision_function_[:2]
    # each of the two is out of the bag of trees that know the other class only
    np.testing.assert_array_equal(votes, [[0.0, 1.0], [1.0, 0.0]])
