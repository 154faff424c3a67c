"""Units do not matter: weights and targets of any scale give the same tree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import scale_of, scale_of_sums, units_of


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


@given(st.integers(0, 2**40), st.integers(1, 2**30), st.sampled_from(["entropy", "poisson"]))
def test_no_sum_of_logarithms_overflows(units, largest, criterion):
    """However the weight is shared out, the sum is at most that of all in one place."""
    scale = scale_of_sums(units, largest, 0.25, criterion)
    assert math.frexp(scale.fixed_point)[0] == 0.5  # a power of two
    assert scale.total_weight == units / 4
    if criterion == "entropy":
        most = units * math.log2(units) if units > 1 else 0.0
        assert 2 * most * scale.fixed_point < 2**62
    else:  # of a row
        assert largest * math.log(largest) * scale.fixed_point < 2**58


def test_units_are_weights_times_those_of_classes():
    y = [0, 1, 1, 2]
    assert units_of(Target.classification(y)) is None
    weight = units_of(Target.classification(y, [1.0, 2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(weight, [1, 2, 0, 3])
    target = Target.classification(y, [1.0, 2.0, 0.0, 3.0], {0: 1.0, 1: 0.5, 2: 4.0})
    found = units_of(target) * target.weight_unit
    np.testing.assert_allclose(found, [1.0, 1.0, 0.0, 12.0])
    scale = scale_of(target, GrowthRules(criterion="entropy"))
    assert scale.total_weight == pytest.approx(14.0)
