"""Rows that go down many trees reach the leaves that they reach in each tree alone."""

import numpy as np
import pandas as pd
import pytest

from dtrees import ExtraTreesClassifier, RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, Tree
from dtrees.core.predict._binned import find_leaves
from dtrees.core.predict.binned import CodedRows
from tests.core.predict.test_binned import table

N_ROWS = 3_000


def columns(kind, rng):
    """Numbers of few or many codes, subsets of few or many categories, hybrid ones; with gaps."""
    numbers = rng.normal(size=(N_ROWS, 4))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    if kind == "numbers":
        return numbers
    X = pd.DataFrame(numbers, columns=list("abcd"))
    n_categories = 63 if kind == "few categories" else 64
    X["k"] = pd.Categorical(rng.permutation(np.arange(N_ROWS) % n_categories))
    X.loc[rng.random(N_ROWS) < 0.1, "k"] = None
    X["hybrid"] = np.where(rng.random(N_ROWS) < 0.5, "word", X["a"].round(1).astype(object))
    return X


@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("kind", ["numbers", "few categories", "many categories"])
@pytest.mark.parametrize("model", [RandomForestClassifier, ExtraTreesClassifier])
def test_many_trees_lead_rows_as_each_alone(model, kind, max_bins):
    rng = np.random.default_rng(0)
    X = columns(kind, rng)
    y = rng.integers(0, 3, N_ROWS)
    forest = model(6, random_state=0, max_bins=max_bins).fit(X, y).forest_
    assert min(tree.node_count for tree in forest) > 200
    coded = CodeBook.fit_encode(X, max_bins=max_bins)[1]
    for rows in (np.arange(N_ROWS), np.array([7, 7, 2_999, 0]), np.arange(513), np.arange(0)):
        found = np.empty((6, len(rows)), dtype=np.intp)
        find_leaves(forest.trees, coded, rows, found)
        alone = [CodedRows(coded).leaves(tree, rows) for tree in forest]
        np.testing.assert_array_equal(found, alone)


def hand_made(rng, n_codes, n_ordered, n_inner, missing_right_of_above):
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
    if missing_right_of_above:
        missing_left[test == ABOVE] = 0
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


@pytest.mark.parametrize("most_codes", [63, 64, 255, 256, 65_534, 65_535])
@pytest.mark.parametrize("missing_right_of_above", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_trees_of_all_tests(seed, missing_right_of_above, most_codes):
    rng = np.random.default_rng(seed)
    n_codes = np.array([most_codes, 63 + seed % 2, 5, 63])  # 64 categories are too many
    n_ordered = np.array([most_codes, 0, 5, 30])  # of numbers, categories, numbers, both
    edges = np.stack([0 * n_codes, 0 * n_codes + 1, n_ordered, n_ordered + 1, n_codes - 1, n_codes])
    inside = rng.integers(0, n_codes + 1, (60, 4))
    codes = np.minimum(np.vstack([rng.permuted(np.tile(edges, (10, 1)), axis=0), inside]), n_codes)
    dtype = np.uint8 if most_codes < 256 else np.uint16
    coded = CodedMatrix.from_columns([own.astype(dtype) for own in codes.T], n_codes, n_ordered)
    trees = [
        hand_made(rng, n_codes, n_ordered, n_inner, missing_right_of_above)
        for n_inner in (64, 80, 127, 3)
    ]
    found = np.empty((4, len(codes)), dtype=np.intp)
    find_leaves(trees, coded, np.arange(len(codes)), found)
    expected = [[leaf_of(tree, own, n_ordered) for own in codes] for tree in trees]
    np.testing.assert_array_equal(found, expected)


def test_large_and_small_trees_together():
    X, y = table("numbers", 4_000)
    large = RandomForestClassifier(4, random_state=0).fit(X, y).forest_.trees
    small = RandomForestClassifier(4, random_state=0, max_depth=2).fit(X, y).forest_.trees
    coded = CodeBook.fit_encode(X)[1]
    rows, found = np.arange(4_000), np.empty((8, 4_000), dtype=np.intp)
    trees = [tree for pair in zip(large, small, strict=True) for tree in pair]
    find_leaves(trees, coded, rows, found)
    alone = [CodedRows(coded).leaves(tree, rows) for tree in trees]
    np.testing.assert_array_equal(found, alone)
