"""The arrays of trees before packing: counts are those of numpy, and what is broken is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from dtrees.coding import CodeBook
from dtrees.core.model.tree import ABOVE, IN_SUBSET, LEAF
from dtrees.core.predict._grown_trees import GrownTrees
from tests.core.predict.test_forest_ranks import stump
from tests.core.predict.test_raw import SEEDS, mixed_frame, random_tree


@given(seed=SEEDS)
def test_counts(seed):
    frame, _ = mixed_frame(60, seed)
    book, _ = CodeBook.fit_encode(frame)
    trees = [random_tree(book, n_leaves, seed) for n_leaves in (1, 7, 30)]
    grown = GrownTrees(trees, book.n_columns)
    inner = [tree.test != LEAF for tree in trees]
    np.testing.assert_array_equal(np.diff(grown.start), [of.sum() for of in inner])
    np.testing.assert_array_equal(np.diff(grown.first_leaf), [(~of).sum() for of in inner])
    feature = np.concatenate([tree.feature for tree in trees])
    test = np.concatenate([tree.test for tree in trees])
    subset, compared = feature[test == IN_SUBSET], feature[(test != IN_SUBSET) & (test != LEAF)]
    n = book.n_columns
    np.testing.assert_array_equal(grown.n_subsets, np.bincount(subset, minlength=n))
    np.testing.assert_array_equal(grown.n_compared, np.bincount(compared, minlength=n))
    assert grown.with_above == (test == ABOVE).any()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("feature", [1, -2, -2]),
        ("test", [4, 0, 0]),
        ("children_left", [0, -1, -1]),
        ("children_right", [3, -1, -1]),
    ],
)
def test_what_no_tree_has(name, wrong):
    tree = stump(0.5)
    broken = replace(tree, **{name: np.array(wrong, dtype=getattr(tree, name).dtype)})
    with pytest.raises(ValueError, match="Tree 1 is broken: node 0 cannot be"):
        GrownTrees([tree, broken], 1)


@pytest.mark.parametrize("name", ["threshold", "test", "statistics", "missing_go_to_left"])
def test_lengths(name):
    tree = stump(0.5)
    with pytest.raises(ValueError, match="differ in length"):
        GrownTrees([replace(tree, **{name: getattr(tree, name)[:2].copy()})], 1)


def test_trees_of_other_classes():
    more = replace(stump(0.5), statistics=np.ones((3, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="differ in length"):
        GrownTrees([stump(0.5), more], 1)
