"""What every forest does, whatever grows it: more trees, more threads, its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.core.model.tree import Tree
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import FORESTS, IRIS, assert_same, mixed_table


@pytest.mark.parametrize("kind", FORESTS)
def test_any_number_of_threads(kind):
    X, y = mixed_table()
    one = kind(12, random_state=3).fit(X, y)
    two = kind(12, random_state=3, n_jobs=2).fit(X, y)
    assert_same(one, two)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("kind", FORESTS)
def test_the_first_trees_do_not_depend_on_how_many_there_are(kind):
    few, many = (kind(n, random_state=3).fit(*IRIS) for n in (3, 7))
    for one, other in zip(few.forest_.trees, many.forest_.trees, strict=False):
        assert one.equals(other)
    other = kind(3, random_state=4).fit(*IRIS)
    assert not all(map(Tree.equals, few.forest_.trees, other.forest_.trees))


def test_a_fit_of_codes_is_the_fit_of_the_table():
    X, y = mixed_table()
    forest = RandomForestClassifier(5, max_leaf_nodes=8, random_state=1)
    found = cross_validate(forest, X, y, cv=3, return_estimator=True)
    for (train, _), model in zip(StratifiedKFold(3).split(X, y), found["estimator"], strict=True):
        weight = np.zeros(len(y))
        weight[train] = 1
        assert_same(model, clone(forest).fit(X, y, sample_weight=weight))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_more_columns_than_there_are_mean_all(kind):
    """As in scikit-learn."""
    many = kind(max_features=5, random_state=0).fit(*IRIS)
    everything = kind(max_features=None, random_state=0).fit(*IRIS)
    assert many.max_features_ == 4
    np.testing.assert_array_equal(many.predict_proba(IRIS[0]), everything.predict_proba(IRIS[0]))
