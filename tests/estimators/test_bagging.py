"""Bagged trees: those of a random forest that searches all columns."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


@pytest.mark.parametrize(
    ("bagging", "forest", "data"),
    [
        (BaggingClassifier, RandomForestClassifier, load_iris),
        (BaggingRegressor, RandomForestRegressor, load_diabetes),
    ],
)
def test_the_trees_are_those_of_a_forest_that_searches_all_columns(bagging, forest, data):
    X, y = data(return_X_y=True)
    mine = bagging(4, random_state=3).fit(X, y)
    other = forest(4, random_state=3, max_features=None).fit(X, y)
    for one, same in zip(mine.forest_.trees, other.forest_.trees, strict=True):
        assert one.equals(same)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_there_is_no_max_features(kind):
    assert "max_features" not in inspect.signature(kind).parameters
    assert "max_features :" not in inspect.getdoc(kind)
