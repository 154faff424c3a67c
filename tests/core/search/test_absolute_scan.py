"""Scans of entries and of bins by absolute errors find the best split of each node."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor as Theirs

from dtrees import DecisionTreeRegressor, ExtraTreesRegressor, RandomForestRegressor
from tests.laws.tables import KINDS, arrays_of, coded_mixed, fit, grow_tree, seeded
from tests.oracle.greedy import assert_tree_is_greedy


@pytest.mark.one_of(10)
@pytest.mark.parametrize("weights", ["none", "integers", "fractions"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_columns(kind, weights):
    kinds = (kind, "many categories", "missing") if kind == "hybrid" else (kind, "ties")
    example = seeded("absolute_error", 0, weights, kinds, 50, category_penalty=0.3)
    assert_tree_is_greedy(fit(example), example.table, example.target, example.rules)
    assert arrays_of(grow_tree(example, coded_mixed(example.table, 1))) == arrays_of(fit(example))


@pytest.mark.parametrize("direction", [1, -1])
def test_values_of_monotonic_trees_are_medians_in_order(direction):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    y = direction * X[:, 0] + random.standard_cauchy(400)
    how = {"criterion": "absolute_error", "monotonic_cst": [direction, 0], "min_samples_leaf": 5}
    tree = DecisionTreeRegressor(**how).fit(X, y)
    assert tree.tree_.model.n_leaves > 5
    for leaf in np.unique(tree.apply(X)):
        own = tree.apply(X) == leaf
        np.testing.assert_allclose(tree.predict(X[own]), np.median(y[own]), atol=1e-10)
    grid = np.c_[np.linspace(-3, 3, 200), np.zeros(200)]
    assert (direction * np.diff(tree.predict(grid)) >= 0).all()


@pytest.mark.parametrize("limits", [{}, {"max_depth": 4}, {"min_samples_leaf": 7}])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_the_tree_of_scikit_learn(limits, n_targets):
    """No two splits tie, as weights are all different."""
    random = np.random.default_rng(3)
    X = random.normal(size=(600, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=(n_targets, 600))
    y = y.T.squeeze()
    w = random.integers(1, 1 << 20, 600) / 1024
    how = {"criterion": "absolute_error", "random_state": 0, "min_samples_split": 60, **limits}
    theirs = Theirs(**how).fit(X, y, w)
    ours = DecisionTreeRegressor(**how).fit(X, y, w)
    assert ours.tree_.node_count == theirs.tree_.node_count
    np.testing.assert_array_equal(ours.tree_.feature, theirs.tree_.feature)
    np.testing.assert_allclose(ours.tree_.threshold, theirs.tree_.threshold)
    np.testing.assert_allclose(ours.tree_.value, theirs.tree_.value, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.tree_.impurity[1:], theirs.tree_.impurity[1:], atol=1e-12)
    np.testing.assert_allclose(
        ours.cost_complexity_pruning_path(X, y, w).ccp_alphas[-5:],
        theirs.cost_complexity_pruning_path(X, y, w).ccp_alphas[-5:],
    )


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize(("n_jobs", "n_targets"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_forests_predict_means_of_medians(kind, n_jobs, n_targets):
    random = np.random.default_rng(4)
    X = random.normal(size=(500, 5))
    y = np.where(random.random(500) < 0.2, 1e3, X[:, 0] + 0.1 * random.normal(size=500))
    y = np.c_[y, 1e-3 * X[:, 1] ** 2][:, :n_targets].squeeze()
    how = {"criterion": "absolute_error", "min_samples_leaf": 15, "random_state": 0}
    forest = kind(10, **how, n_jobs=n_jobs).fit(X, y)
    tree, rows = forest.estimators_[0], forest.estimators_samples_[0]
    leaf = tree.apply(X[rows])
    for own in np.unique(leaf):
        expected = np.median(y[rows][leaf == own], axis=0)
        assert tree.tree_.value[own].ravel() == pytest.approx(expected, abs=1e-10)
    assert forest.predict(X).tolist() == kind(10, **how).fit(X, y).predict(X).tolist()
