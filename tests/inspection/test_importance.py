import numpy as np
import pytest
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.inspection import impurity_importances


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
