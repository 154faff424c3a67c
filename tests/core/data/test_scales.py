"""Units do not matter: weights and targets of any scale give the same tree."""

import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    return X, (X[:, 0] + X[:, 1] > rng.normal(size=400)).astype(int)


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**-50, 2.0**-100, 2.0**60])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_scale_of_weights(table, criterion, scale):
    X, y = table
    plain = DecisionTreeClassifier(criterion=criterion, random_state=0).fit(X, y).tree_
    scaled = DecisionTreeClassifier(criterion=criterion, random_state=0)
    scaled = scaled.fit(X, y, sample_weight=np.full(400, scale)).tree_
    np.testing.assert_array_equal(scaled.feature, plain.feature)
    np.testing.assert_array_equal(scaled.threshold, plain.threshold)
    np.testing.assert_allclose(scaled.impurity, plain.impurity, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        scaled.compute_feature_importances(), plain.compute_feature_importances(), rtol=1e-9
    )


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**-60, 2.0**60])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_scale_of_the_target(table, criterion, scale):
    X, _ = table
    y = np.exp(X[:, 0])
    plain = DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(X, y).tree_
    scaled = DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(X, scale * y).tree_
    power = 2 if criterion == "squared_error" else 1
    np.testing.assert_array_equal(scaled.feature, plain.feature)
    np.testing.assert_allclose(scaled.impurity, plain.impurity * scale**power, rtol=1e-9)
    np.testing.assert_allclose(scaled.value, plain.value * scale, rtol=1e-12)


@pytest.mark.parametrize("limit", [2**40, 2**63, 2**70])
def test_limits_beyond_any_table(table, limit):
    X, y = table
    tree = DecisionTreeClassifier(max_depth=limit, max_leaf_nodes=limit, random_state=0).fit(X, y)
    assert tree.tree_.node_count == DecisionTreeClassifier().fit(X, y).tree_.node_count
    assert DecisionTreeClassifier(min_samples_split=limit).fit(X, y).get_n_leaves() == 1
    assert DecisionTreeClassifier(min_samples_leaf=limit).fit(X, y).get_n_leaves() == 1


def test_draws_do_not_remember_other_nodes():
    # The permutation of a node's draws is undone, so a subtree grown alone is the same.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(3000, 40)), rng.integers(0, 2, 3000)
    one, two = (
        DecisionTreeClassifier(max_features=3, random_state=5, n_jobs=n).fit(X, y).tree_
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.feature, two.feature)
    np.testing.assert_array_equal(one.threshold, two.threshold)
