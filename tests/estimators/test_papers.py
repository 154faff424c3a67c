"""The papers' worked examples, through the estimators."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, export_text


@pytest.mark.parametrize("weights", [None, np.full(20, 0.1)])
@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_climbing_trees_categories(dtype, weights):
    # [CT], last section: four uniform columns and one of categories, 20 rows
    np.random.seed(42)  # noqa: NPY002
    X = pd.DataFrame(np.random.random(size=(20, 4)), columns=list("abcd"))  # noqa: NPY002
    X["cat"] = pd.Series(["B"] * 9 + ["A"] * 6 + ["C"] * 5, dtype=dtype)
    y = np.array([0] * 10 + [1] * 10)
    tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=3).fit(X, y, weights)
    first, second, third, *_ = export_text(tree).splitlines()
    assert (first, second) == ("|--- cat in {B}", "|   |--- class: 0")
    assert third == "|--- cat not in {B}"
    assert tree.tree_.value[1, 0].tolist() == [1.0, 0.0]
    assert tree.score(X, y) >= 0.95


def test_climbing_trees_diabetes():
    # [CT], last section
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=3).fit(X, y)
    assert round(mean_squared_error(y, tree.predict(X)), 2) == 3360.05
    view = tree.tree_
    leaf = view.children_left == -1
    assert view.feature[~leaf].tolist() == [8, 2, 2]
    assert_allclose(view.threshold[~leaf], [-0.00, 0.01, 0.01], atol=0.005)
    assert_allclose(view.value[leaf, 0, 0], [96.31, 159.74, 162.68, 225.88], atol=0.005)


@pytest.mark.parametrize("criterion", ["entropy", "log_loss"])
def test_superfast_selection(criterion):
    # [SF], Tables 1 and 4: one hybrid column
    values = {"a": [3, 4, 4, 5, "x", "x", "y"], "b": [1, 1, 2, 2, 3, "y", "y", "z"]}
    values["c"] = [3, 4, 4, 5, 5, "z", "z"]
    column = [value for group in values.values() for value in group]
    y = np.repeat(list(values), [len(v) for v in values.values()])
    X = pd.DataFrame({"value": pd.Series(column, dtype=object)})
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(X, y)
    view = tree.tree_
    assert export_text(tree).splitlines()[::2] == [
        "|--- value <= 2.50",  # numbers of the node around the paper's 2
        "|--- value >  2.50 or a category",
    ]
    sides = [view.children_left[0], view.children_right[0]]
    assert view.n_node_samples[sides].tolist() == [4, 18]
    bits = view.weighted_n_node_samples[sides] @ view.impurity[sides] / len(y)
    assert -bits * np.log(2) == pytest.approx(-0.874, abs=0.0005)  # -0.87 there, in nats
    assert_array_equal(tree.predict(X) == "b", [value in (1, 2) for value in column])
