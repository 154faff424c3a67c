"""Leaves that many rows look up are those that few rows walk to."""

import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.coding import CodeBook
from dtrees.core.predict._binned import find_means
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.raw import apply
from tests.core.predict.test_binned import table

FEW = 100  # rows, which walk


def walked(rows, tree, of_rows):
    return np.concatenate(
        [rows.leaves(tree, of_rows[at : at + FEW]) for at in range(0, len(of_rows), FEW)]
    )


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("max_leaf_nodes", [2, 3, 17, 63, 64, 65, None])
def test_many_rows_reach_the_leaves_of_a_walk(kind, max_leaf_nodes):
    X, y = table(kind)
    model = DecisionTreeClassifier(random_state=0, max_bins=40, max_leaf_nodes=max_leaf_nodes)
    tree, book = model.fit(X, y).tree_.model, model.tree_.codebook
    coded = CodeBook.fit_encode(X, max_bins=40)[1]
    every = np.arange(700)
    for rows in (every, every[::-1], every[:257], np.repeat(every[5:9], 80)):
        found = CodedRows(coded).leaves(tree, rows)
        np.testing.assert_array_equal(found, walked(CodedRows(coded), tree, rows))
        np.testing.assert_array_equal(found, apply(tree, book, X)[rows])


def test_a_tree_that_is_a_chain():
    x = np.repeat(np.arange(64.0), 8)
    model = DecisionTreeRegressor(max_leaf_nodes=64).fit(x[:, None], 1.5**x)
    tree, coded = model.tree_.model, CodeBook.fit_encode(x[:, None], max_bins=None)[1]
    assert tree.max_depth > 20
    found = CodedRows(coded).leaves(tree, np.arange(512))
    np.testing.assert_array_equal(found, walked(CodedRows(coded), tree, np.arange(512)))
    assert len(set(found.tolist())) == tree.n_leaves == 64


@pytest.mark.parametrize("n_rows", [0, 30, 700])
@pytest.mark.parametrize("kind", ["numbers", "mixed", "sparse"])
def test_means_are_the_values_of_the_leaves(kind, n_rows):
    X, y = table(kind)
    trees = [
        DecisionTreeRegressor(max_leaf_nodes=n, random_state=0).fit(X, y + 0.1, y + 1).tree_.model
        for n in (4, 30, 200)
    ]
    rows = CodedRows(CodeBook.fit_encode(X, max_bins=None)[1])
    numbers = np.arange(n_rows)
    found = rows.means(trees, numbers)
    assert found.shape == (3, n_rows)
    for mean, tree in zip(found, trees, strict=True):
        np.testing.assert_array_equal(mean, tree.value[rows.leaves(tree, numbers), 0])


def test_means_that_do_not_fit():
    X, y = table("numbers")
    coded = CodeBook.fit_encode(X, max_bins=None)[1]
    tree = DecisionTreeClassifier().fit(X, y).tree_.model
    with pytest.raises(ValueError, match="one mean for each row and tree"):
        find_means([tree], coded, np.arange(3), np.empty((1, 3)))
