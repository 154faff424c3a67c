import numpy as np
import pytest
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from dtrees.inspection import impurity_importances, split_counts
from dtrees.inspection.importance import summed_importances


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_as_in_scikit_learn(criterion, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = np.exp(X[:, 0] + X[:, 1] * X[:, 2])
    weight = rng.exponential(size=400) if weighted else None
    limits = {"criterion": criterion, "min_samples_leaf": 15}
    ours = DecisionTreeRegressor(**limits).fit(X, y, weight)
    theirs = sklearn.tree.DecisionTreeRegressor(**limits).fit(X, y, weight)
    for normalize in (True, False):
        assert_allclose(
            impurity_importances(ours.tree_.model, normalize=normalize),
            theirs.tree_.compute_feature_importances(normalize=normalize),
            rtol=1e-9,
        )


def test_they_sum_to_one_or_to_what_the_tree_gains():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 3, 200)
    view = DecisionTreeClassifier().fit(X, y).tree_
    assert impurity_importances(view.model).sum() == pytest.approx(1.0)
    total = impurity_importances(view.model, normalize=False).sum()
    assert total == pytest.approx(view.impurity[0])  # leaves are pure


def test_columns_never_tested_have_none():
    X = np.c_[np.zeros(20), np.arange(20), np.zeros(20)]
    tree = DecisionTreeClassifier().fit(X, np.arange(20) > 7)
    assert_array_equal(tree.feature_importances_, [0.0, 1.0, 0.0])


def test_a_single_leaf_has_none():
    tree = DecisionTreeClassifier().fit(np.zeros((5, 2)), np.arange(5))
    assert_array_equal(tree.feature_importances_, [0.0, 0.0])


def test_those_of_trees_that_add_up_are_weighted_by_what_trees_gain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = GradientBoostingRegressor(max_iter=20).fit(X, 10 * (X[:, 0] > 0) + (X[:, 1] > 0))
    gains = np.zeros(3)
    for tree in model.forest_.trees:
        for column, gain in zip(tree.feature, tree.gain, strict=True):
            gains[column] += gain  # of leaves: 0, to the last but one
    assert_allclose(model.feature_importances_, gains / gains.sum(), rtol=1e-12)
    assert_array_equal(summed_importances(model.forest_.trees), model.feature_importances_)
    assert model.feature_importances_[0] > 0.98  # most trees ask for the other one, too


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestRegressor(3, random_state=0),
        GradientBoostingClassifier(max_iter=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_counts_of_splits(model):
    rng = np.random.default_rng(2)
    X = np.c_[rng.normal(size=(200, 3)), np.zeros(200)]
    model.fit(X, rng.integers(0, 3, 200))
    trees = [model.tree_.model] if hasattr(model, "tree_") else model.forest_.trees
    counts = split_counts(model)
    assert counts.tolist() == [sum((t.feature == j).sum() for t in trees) for j in range(4)]
    assert counts.sum() == sum(tree.n_leaves - 1 for tree in trees)
    assert counts[3] == 0
    with pytest.raises(TypeError, match=r"model must be a fitted tree, .* Got StandardScaler"):
        split_counts(StandardScaler().fit(X))
    with pytest.raises(NotFittedError):
        split_counts(type(model)())
