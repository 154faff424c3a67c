"""Codes lead to the leaf that values lead to, whatever store the codes are in."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, Tree
from dtrees.core.predict import packed_forest
from dtrees.core.predict._binned import find_leaves, find_means
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


def test_what_does_not_fit():
    _, coded, tree, _ = grown("mixed", None)
    rows, leaves = np.arange(3), np.empty((1, 3), dtype=np.intp)
    for trees, room in (([tree], np.empty((1, 2), dtype=np.intp)), ([tree, tree], leaves)):
        with pytest.raises(ValueError, match="one leaf for each row and tree"):
            find_leaves(trees, coded, rows, room)
    with pytest.raises(ValueError, match="no row 700"):
        find_leaves([tree], coded, rows + 698, leaves)
    column = np.where(tree.test == LEAF, tree.feature, 7).astype(np.int32)
    with pytest.raises(ValueError, match="is broken"):
        find_leaves([replace(tree, feature=column)], coded, rows, leaves)
    assert (tree.test == IN_SUBSET).any()
    offset = np.where(tree.test == IN_SUBSET, len(tree.subset_words), -1)
    with pytest.raises(ValueError, match="no subset"):
        find_leaves([replace(tree, subset_offset=offset)], coded, rows, leaves)


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


def hand_made(rng, n_codes, n_ordered, n_inner):
    """A tree that tests what it likes, its children behind their parent."""
    n = 2 * n_inner + 1
    children = np.arange(1, n).reshape(n_inner, 2)  # of the first nodes
    feature, test, code = np.full(n, -2, np.int32), np.zeros(n, np.uint8), np.zeros(n, np.uint32)
    missing_left, offset, words = np.zeros(n, np.uint8), np.full(n, -1, np.int64), []
    for node in range(n_inner):
        j = feature[node] = rng.integers(len(n_codes))
        numbers = [AT_MOST, ABOVE] * bool(n_ordered[j])
        test[node] = rng.choice(numbers + [IN_SUBSET] * bool(n_ordered[j] < n_codes[j]))
        missing_left[node] = rng.integers(2)
        if test[node] == IN_SUBSET:
            offset[node] = len(words)
            words += rng.integers(0, 2**64, n_codes[j] // 64 + 1, dtype=np.uint64).tolist()
        else:
            code[node] = rng.choice([rng.integers(n_ordered[j] + 1), n_ordered[j], 2**32 - 1, 0])
    left, right = (np.append(side, np.full(n_inner + 1, -1)) for side in children.T)
    zeros = np.zeros(n)
    return Tree(
        *(feature, left.astype(np.int32), right.astype(np.int32), test, code, zeros, missing_left),
        *(offset, np.array(words, dtype=np.uint64), np.ones(n, dtype=np.int64)),
        *(np.ones((n, 2), dtype=np.int64), zeros, zeros, len(n_codes), "gini"),
    )


def leaf_of(tree, codes, n_ordered):
    node = 0
    while tree.test[node] != LEAF:
        j = tree.feature[node]
        code = int(codes[j])
        if code == 0:
            goes_left = tree.missing_go_to_left[node]
        elif tree.test[node] == IN_SUBSET:
            word = int(tree.subset_words[tree.subset_offset[node] + code // 64])
            goes_left = word >> code % 64 & 1
        else:
            passes = code <= tree.code[node]
            goes_left = code <= n_ordered[j] and passes == (tree.test[node] == AT_MOST)
        node = (tree.children_left if goes_left else tree.children_right)[node]
    return node


@pytest.mark.parametrize("most_codes", [63, 255, 256, 65_535])
@pytest.mark.parametrize("seed", range(4))
def test_trees_of_all_tests(seed, most_codes):
    rng = np.random.default_rng(seed)
    n_codes = np.array([most_codes, 64, 5, 63])
    n_ordered = np.array([most_codes, 0, 5, 30])  # of numbers, categories, numbers, both
    edges = np.stack([0 * n_codes, 0 * n_codes + 1, n_ordered, n_ordered + 1, n_codes - 1, n_codes])
    inside = rng.integers(0, n_codes + 1, (60, 4))
    codes = np.minimum(np.vstack([rng.permuted(np.tile(edges, (10, 1)), axis=0), inside]), n_codes)
    dtype = np.uint8 if most_codes < 256 else np.uint16
    coded = CodedMatrix.from_columns([own.astype(dtype) for own in codes.T], n_codes, n_ordered)
    trees = [hand_made(rng, n_codes, n_ordered, n_inner) for n_inner in (64, 127, 3)]
    found = np.empty((3, len(codes)), dtype=np.intp)
    find_leaves(trees, coded, np.arange(len(codes)), found)
    expected = [[leaf_of(tree, own, n_ordered) for own in codes] for tree in trees]
    np.testing.assert_array_equal(found, expected)


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


def test_means_that_do_not_fit():
    X, y = table("numbers")
    coded = CodeBook.fit_encode(X, max_bins=None)[1]
    tree = DecisionTreeClassifier().fit(X, y).tree_.model
    with pytest.raises(ValueError, match="one mean for each row and tree"):
        find_means([tree], coded, np.arange(3), np.empty((1, 3)))
