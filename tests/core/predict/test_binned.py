"""Codes lead to the leaf that values lead to, whatever store the codes are in."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.core.model.tree import LEAF
from dtrees.core.predict import packed_forest
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.raw import apply
from dtrees.parallel import threaded


def table(kind: str, n_rows: int = 700):
    """Columns of the kind, and classes that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) + rng.normal(size=n_rows) > 0).astype(int)
    if kind == "sparse":
        X = scipy.sparse.csc_array(np.where(rng.random(X.shape) < 0.7, 0, X))
    if kind == "mixed":
        X = pd.DataFrame(X, columns=list("abcd"))
        X["few"] = pd.Categorical(rng.choice(list("abc"), n_rows))
        X["many"] = pd.Categorical(rng.integers(0, 400, n_rows))
        X["hybrid"] = np.where(rng.random(n_rows) < 0.5, "word", X["a"].astype(object))
    return X, y


def grown(kind: str, max_bins: int | None):
    """A table, its codes, and the tree and codebook of a fit."""
    X, y = table(kind)
    model = DecisionTreeClassifier(random_state=0, max_bins=max_bins).fit(X, y)
    return X, CodeBook.fit_encode(X, max_bins=max_bins)[1], model.tree_.model, model.tree_.codebook


@pytest.mark.parametrize("max_bins", [20, None])
@pytest.mark.parametrize("kind", ["numbers", "mixed", "sparse"])
def test_leaves_are_those_of_the_values(kind, max_bins):
    X, coded, tree, book = grown(kind, max_bins)
    leaves = apply(tree, book, X)
    for rows in (np.arange(700), np.arange(5), np.array([3, 3, 600, 2]), np.arange(0)):
        np.testing.assert_array_equal(CodedRows(coded).leaves(tree, rows), leaves[rows])


@pytest.mark.parametrize("max_bins", [20, None])
@pytest.mark.parametrize("most_slots", [3, 99])
def test_many_trees_of_a_sparse_table(most_slots, max_bins, monkeypatch):
    """In parts, or from the codes of the columns where a tree is too large."""
    monkeypatch.setattr(packed_forest, "MOST_SLOTS", most_slots)
    X, y = table("sparse", 2000)
    forest = RandomForestRegressor(5, random_state=0, max_bins=max_bins).fit(X, y).forest_
    coded = CodeBook.fit_encode(X, max_bins=max_bins)[1]
    for rows in (np.array([3, 3, 600, 2]), np.arange(2000), np.arange(0)):
        walked = CodedRows(coded)
        expected = [tree.value_of(walked.leaves(tree, rows))[:, 0] for tree in forest]
        np.testing.assert_array_equal(walked.means(forest.trees, rows), expected)


@pytest.mark.parametrize("n_rows", [1, 11, 12, 13, 40])
def test_few_and_many_rows_in_flight(n_rows):
    X, coded, tree, book = grown("mixed", 20)
    rows = np.arange(n_rows)
    np.testing.assert_array_equal(CodedRows(coded).leaves(tree, rows), apply(tree, book, X)[rows])


def test_a_tree_of_one_leaf():
    _, coded, _, _ = grown("numbers", None)
    stump = DecisionTreeClassifier(min_samples_split=10_000).fit(*table("numbers")).tree_.model
    np.testing.assert_array_equal(CodedRows(coded).leaves(stump, np.arange(30)), np.zeros(30))


def test_sums_are_in_the_order_of_the_trees():
    _, coded, tree, _ = grown("numbers", None)
    rows = np.arange(100)
    values = tree.value_of(CodedRows(coded).leaves(tree, rows))
    expected = np.zeros_like(values)
    for _ in range(40):
        expected += values
    found = CodedRows(coded).sums([tree] * 40, rows, threaded(2))
    np.testing.assert_array_equal(found, expected)


def test_stored_cells_are_copied_in_few_bytes():
    """Row, code, number and fill code of each, four bytes each, and a mark."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(40_000, 20, 0.5, "csc", random_state=rng)
    y = X[:, [0]].toarray().ravel() > X[:, [1]].toarray().ravel()
    tree = DecisionTreeClassifier(max_depth=8).fit(X, y).tree_.model
    walked = CodedRows(CodeBook.fit_encode(X)[1])
    tracemalloc.start()
    leaves = walked.leaves(tree, np.arange(40_000))
    peak = tracemalloc.get_traced_memory()[1] - leaves.nbytes
    tracemalloc.stop()
    n_used = len(np.unique(tree.feature[tree.test != LEAF]))
    assert peak < 20 * n_used * 20_000


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("max_leaf_nodes", [2, 17, None])
def test_many_rows_reach_the_leaves_of_a_walk(kind, max_leaf_nodes):
    X, y = table(kind)
    model = DecisionTreeClassifier(random_state=0, max_bins=40, max_leaf_nodes=max_leaf_nodes)
    tree, book = model.fit(X, y).tree_.model, model.tree_.codebook
    coded = CodeBook.fit_encode(X, max_bins=40)[1]
    every = np.arange(700)
    for rows in (every, every[::-1], every[:257], np.repeat(every[5:9], 80)):
        found = CodedRows(coded).leaves(tree, rows)
        np.testing.assert_array_equal(found, apply(tree, book, X)[rows])


def test_a_tree_that_is_a_chain():
    x = np.repeat(np.arange(64.0), 8)
    model = DecisionTreeRegressor(max_leaf_nodes=64).fit(x[:, None], 1.5**x)
    tree, coded = model.tree_.model, CodeBook.fit_encode(x[:, None], max_bins=None)[1]
    assert tree.max_depth > 20
    found = CodedRows(coded).leaves(tree, np.arange(512))
    np.testing.assert_array_equal(found, model.apply(x[:, None]))
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
