"""Models of sets answer for rows of their table."""

import numpy as np
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import fit_sets

X, Y = load_iris(return_X_y=True)
SETS = np.arange(150) % 2 != np.arange(2)[:, None]


def test_a_tree_and_its_leaves():
    fitted = fit_sets(DecisionTreeClassifier(max_depth=3), X, Y, None, SETS)
    rows = np.array([3, 80, 149])
    leaves = fitted.leaves(1, rows)
    np.testing.assert_array_equal(leaves, fitted.models[1].apply(X[rows]))
    assert fitted.leaves(1, rows) is leaves  # at hand
    np.testing.assert_array_equal(fitted.values(1, rows), fitted.models[1].predict_proba(X[rows]))
    assert fitted.classes.tolist() == [0, 1, 2]
    assert fitted.n_live.tolist() == [75, 75]
    assert fitted.depth(0) == fitted.models[0].get_depth()
    assert not fitted.has_many_trees


def test_a_forest():
    fitted = fit_sets(RandomForestClassifier(4, random_state=0), X, Y, None, SETS)
    assert fitted.has_many_trees
    assert len(trees_of(fitted.models[0])) == 4
    expected = fitted.models[0].predict_proba(X)
    np.testing.assert_array_equal(fitted.values(0, np.arange(150)), expected)


def test_numbers_have_no_classes():
    fitted = fit_sets(DecisionTreeRegressor(max_depth=1), X, Y, None, SETS)
    assert fitted.classes is None
    assert fitted.y.dtype == np.float64
