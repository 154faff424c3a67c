"""Values of the leaves of packed forests: those of the trees, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.core.model.tree import Forest
from dtrees.core.predict import packed_forest, raw
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
    assert (packed_forest.share_of_zeros(grown) > 0.5) == is_few
