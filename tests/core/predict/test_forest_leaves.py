"""Values of the leaves of packed forests: those of the trees, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.core.model.tree import Forest
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._forest_leaves import ReachedLeaves, are_dense
from tests.core.predict.test_raw import SEEDS, numbers, random_tree


def trees_with(book: CodeBook, seed: int, n_classes: int, share: float, largest: int) -> Forest:
    """Random trees whose statistics are zero but for a share of them."""
    rng = np.random.default_rng(seed)
    trees = []
    for i in range(5):
        tree = random_tree(book, 12, seed + i)
        shape = (tree.node_count, n_classes)
        counts = rng.integers(1, largest, shape) * (rng.random(shape) < share)
        trees.append(replace(tree, statistics=counts))
    return Forest(tuple(trees))


def sums(forest: Forest, leaves: np.ndarray) -> np.ndarray:
    total = np.zeros((len(leaves), forest[0].n_values))
    for tree, of_tree in zip(forest.trees, leaves.T, strict=True):
        total += tree.value[of_tree]
    return total / len(forest)


@pytest.mark.filterwarnings("ignore:invalid value")
@given(
    seed=SEEDS,
    n_classes=st.integers(1, 30),
    share=st.sampled_from([0.02, 0.1, 0.7, 1.0]),
    largest=st.sampled_from([2, 50, 2**40]),
)
def test_shares_of_classes(seed, n_classes, share, largest):
    """A leaf without weight has no shares, and so have the rows that reach it."""
    X = numbers(80, 3, seed=seed)
    book, _ = CodeBook.fit_encode(X)
    forest = trees_with(book, seed, n_classes, share, largest)
    leaves = raw.forest_apply(forest, book, X)
    for n in (1, 3, len(X)):
        found = raw.forest_values(forest, book, X[:n])
        np.testing.assert_array_equal(found, sums(forest, leaves[:n]))


@given(seed=SEEDS, offset=st.sampled_from([0.0, -3.5, 1e6]))
def test_means(seed, offset):
    X = numbers(80, 3, seed=seed)
    book, _ = CodeBook.fit_encode(X)
    rng = np.random.default_rng(seed)
    trees = [
        replace(
            random_tree(book, 12, seed + i),
            statistics=rng.integers(1, 2**40, (23, 2)),
            criterion="squared_error",
            unit=2.0**-20,
            weight_unit=0.1,
            offset=offset,
        )
        for i in range(4)
    ]
    forest = Forest(tuple(trees))
    leaves = raw.forest_apply(forest, book, X)
    for n in (1, len(X)):
        found = raw.forest_values(forest, book, X[:n])
        np.testing.assert_array_equal(found, sums(forest, leaves[:n]))


@pytest.mark.parametrize(("share", "is_few"), [(0.05, True), (0.9, False)])
def test_zeros_are_left_out_where_they_are_many(share, is_few):
    X = numbers(80, 3, seed=0)
    book, _ = CodeBook.fit_encode(X)
    forest = trees_with(book, 0, 20, share, 50)
    grown = packed_forest.GrownTrees(forest.trees, book.n_columns)
    assert are_dense(grown) != is_few


N_ROWS = 900


def trees_of(kind):
    """Trees of 1, 2, 3 or 30 values, and leaves of some rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    if kind == 1:
        y = 1e3 * X[:, 0] + rng.normal(size=N_ROWS)
        model = RandomForestRegressor(5, random_state=0, min_samples_leaf=3)
    else:
        y = rng.integers(0, kind, N_ROWS)
        model = RandomForestClassifier(5, random_state=0, min_samples_leaf=4 if kind < 30 else 1)
    model.fit(X, y, rng.random(N_ROWS))
    return model.forest_.trees, np.ascontiguousarray(model.apply(X).T, dtype=np.intp)


def added(trees, leaves):
    total = np.zeros((leaves.shape[1], trees[0].n_values))
    for tree, own in zip(trees, leaves, strict=True):
        total += tree.value[own]
    return total


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 300, N_ROWS])
@pytest.mark.parametrize("kind", [1, 2, 3, 30])
def test_sums_of_values(kind, n_rows, is_wide):
    trees, leaves = trees_of(kind)
    if is_wide:
        trees = [replace(tree, statistics=tree.statistics.astype(np.int64)) for tree in trees]
    leaves = leaves[:, :n_rows].copy()
    total = np.zeros((n_rows, trees[0].n_values))
    reached = ReachedLeaves(trees, leaves)
    for begin, end in ((n_rows // 3, n_rows), (0, n_rows // 3)):
        reached.add_to(total, begin, end)
    assert total.tobytes() == added(trees, leaves).tobytes()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_leaves_of_no_weight_are_nan():
    """A file may say so."""
    trees, leaves = trees_of(30)
    statistics = trees[1].statistics.copy()
    statistics[leaves[1, 0]] = 0
    trees = [trees[0], replace(trees[1], statistics=statistics)]
    total = np.zeros((N_ROWS, 30))
    ReachedLeaves(trees, leaves[:2]).add_to(total, 0, N_ROWS)
    assert np.isnan(total[0]).all()
    np.testing.assert_array_equal(total, added(trees, leaves[:2]))


def test_trees_of_one_leaf():
    X, y = np.zeros((20, 2)), np.arange(20.0)
    trees = RandomForestRegressor(2, random_state=0).fit(X, y).forest_.trees
    total, leaves = np.zeros((20, 1)), np.zeros((2, 20), dtype=np.intp)
    ReachedLeaves(trees, leaves).add_to(total, 0, 20)
    np.testing.assert_array_equal(total, added(trees, leaves))


def test_what_does_not_fit():
    trees, leaves = trees_of(3)
    for wrong in (-1, trees[2].node_count):
        broken = leaves.copy()
        broken[2, 17] = wrong
        with pytest.raises(ValueError, match="no node of tree 2"):
            ReachedLeaves(trees, broken)
    with pytest.raises(ValueError, match="one leaf for each row and tree"):
        ReachedLeaves(trees[:3], leaves)
    reached = ReachedLeaves(trees, leaves)
    for shape in ((N_ROWS, 2), (N_ROWS - 1, 3)):
        with pytest.raises(ValueError, match="do not fit the trees"):
            reached.add_to(np.zeros(shape), 0, 1)
    for begin, end in ((-1, 3), (3, 2), (0, N_ROWS + 1)):
        with pytest.raises(ValueError, match="There are no rows"):
            reached.add_to(np.zeros((N_ROWS, 3)), begin, end)
