"""Columns whose splits gain the same: which of them a node takes."""

from __future__ import annotations

import numpy as np
import pytest

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.model_selection import cross_validate

N_COPIES = 5


@pytest.fixture(scope="module")
def copies():
    """Copies of one column of few values, and classes that follow it."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 8, 400).astype(float)
    y = (np.sin(x) + rng.normal(size=400) > 0).astype(int)
    return np.repeat(x[:, None], N_COPIES, axis=1), y


def times_chosen(trees) -> np.ndarray:
    """How many nodes test each column."""
    chosen = np.concatenate([tree.tree_.feature for tree in trees])
    return np.bincount(chosen[chosen >= 0], minlength=N_COPIES)


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(40, max_features=None, random_state=0),
        RandomForestClassifier(40, max_features=3, random_state=0),
        RandomForestRegressor(40, max_features=None, random_state=0),
        BaggingClassifier(40, random_state=0),
    ],
    ids=["all columns", "drawn columns", "numbers", "bagging"],
)
def test_forests_take_each_of_equal_columns_as_often(forest, copies):
    chosen = times_chosen(forest.fit(*copies).estimators_)
    assert chosen.sum() > 150
    expected = chosen.sum() / N_COPIES
    # chi squared of four degrees of freedom: above 24 once in ten thousand
    assert ((chosen - expected) ** 2 / expected).sum() < 24, chosen


def test_extra_trees_of_binary_columns(copies):
    # two values: all cuts are the same
    X, y = copies
    forest = ExtraTreesClassifier(200, max_features=None, random_state=0).fit(X > 3, y)
    chosen = times_chosen(forest.estimators_)
    assert chosen.sum() == 200
    assert chosen.min() > 20, chosen


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
class TestTrees:
    def test_without_random_state_the_lowest_column_is_taken(self, kind, copies):
        assert times_chosen([kind().fit(*copies)])[1:].sum() == 0

    def test_a_random_state_draws(self, kind, copies):
        trees = [kind(random_state=seed).fit(*copies) for seed in range(40)]
        assert (times_chosen(trees) > 0).all()
        again = kind(random_state=7).fit(*copies).tree_.feature
        np.testing.assert_array_equal(trees[7].tree_.feature, again)
        assert len({tree.tree_.feature.tobytes() for tree in trees}) > 20

    @pytest.mark.parametrize("random_state", [None, 5])
    def test_cross_validation_decides_as_fits_do(self, kind, random_state, copies):
        X, y = copies
        tree = kind(random_state=random_state)
        found = cross_validate(tree, X, y, cv=4, return_estimator=True, return_indices=True)
        for model, train in zip(found["estimator"], found["indices"]["train"], strict=True):
            weight = np.zeros(len(y))
            weight[train] = 1
            alone = kind(random_state=random_state).fit(X, y, sample_weight=weight)
            np.testing.assert_array_equal(model.tree_.feature, alone.tree_.feature)
            np.testing.assert_array_equal(model.tree_.threshold, alone.tree_.threshold)
            assert model.random_state == random_state


def test_a_tie_within_a_column_stays_with_the_lowest_value():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 0, 1])  # cuts at 0.5 and at 2.5 gain the same
    for seed in range(20):
        assert DecisionTreeClassifier(random_state=seed).fit(X, y).tree_.threshold[0] == 0.5
