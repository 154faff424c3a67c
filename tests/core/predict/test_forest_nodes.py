"""Packed nodes: counts and ranks are those of numpy, and forests in parts walk as those in one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.core.model.tree import ABOVE, IN_SUBSET, LEAF, Forest, Tree
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._forest_nodes import ForestNodes, GrownTrees, fill_nodes, rank_thresholds
from dtrees.core.predict._packed_forest import walk_leaves
from dtrees.parallel import threaded
from tests.core.predict.test_packed_forest import check, random_forest
from tests.core.predict.test_raw import SEEDS, mixed_frame, random_tree


@pytest.mark.parametrize("unseen", ["missing", "majority"])
@given(seed=SEEDS, n_rows=st.integers(1, 30), n_trees=st.integers(1, 30))
def test_few_rows_and_many_trees(unseen, seed, n_rows, n_trees):
    """More trees than are in flight at a time, or fewer, down which one row walks."""
    frame, _ = mixed_frame(60, seed)
    book, _ = CodeBook.fit_encode(frame, handle_unknown=unseen)
    forest = random_forest(book, seed, n_trees, 1 + seed % 20)
    other, rows = mixed_frame(n_rows, seed + 1, new=True)
    check(forest, book, other, rows)


@pytest.mark.parametrize(("limit", "most"), [("MOST_SLOTS", 5), ("MOST_THRESHOLDS", 4)])
def test_forests_in_parts(limit, most, monkeypatch):
    frame, _ = mixed_frame(200, seed=1)
    book, _ = CodeBook.fit_encode(frame)
    forest = random_forest(book, seed=2, n_trees=9, n_leaves=4)
    assert len(packed_forest.pack_forest(forest, book)) == 1
    monkeypatch.setattr(packed_forest, limit, most)
    again = Forest(forest.trees)
    parts = packed_forest.pack_forest(again, book)
    assert len(parts) > 1
    assert sum(part.n_trees for part in parts) == len(forest)
    other, rows = mixed_frame(90, seed=3, new=True)
    check(again, book, other, rows)


def test_threads_pack_the_same():
    frame, rows = mixed_frame(300, seed=4)
    book, _ = CodeBook.fit_encode(frame)
    forest = random_forest(book, seed=5, n_trees=20, n_leaves=40)
    check(forest, book, frame, rows, threaded(2))


@pytest.mark.parametrize("offset", [-1, 10**12])
def test_a_subset_that_is_not_there(offset):
    frame, _ = mixed_frame(300, seed=6)
    book, _ = CodeBook.fit_encode(frame)
    tree = random_forest(book, seed=7, n_trees=1, n_leaves=40)[0]
    offsets = np.where(tree.test == IN_SUBSET, offset, -1)
    broken = Forest((tree, replace(tree, subset_offset=offsets)))
    with pytest.raises(ValueError, match=r"Tree 1 is broken: node \d+ has no subset"):
        raw.forest_values(broken, book, frame)


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


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 5e-324, -5e-324, 1e308]
NUMBERS = st.floats(allow_nan=False) | st.sampled_from(SPECIAL)


def stump(threshold: float, column: int = 0, n_columns: int = 1) -> Tree:
    """A test and two leaves."""
    return Tree(
        feature=np.array([column, -2, -2], dtype=np.int32),
        children_left=np.array([1, -1, -1], dtype=np.int32),
        children_right=np.array([2, -1, -1], dtype=np.int32),
        test=np.array([1, 0, 0], dtype=np.uint8),
        code=np.zeros(3, dtype=np.uint32),
        threshold=np.array([threshold, np.nan, np.nan]),
        missing_go_to_left=np.zeros(3, dtype=np.uint8),
        subset_offset=np.full(3, -1, dtype=np.int64),
        subset_words=np.empty(0, dtype=np.uint64),
        n_node_samples=np.array([2, 1, 1]),
        statistics=np.array([[1, 1], [1, 0], [0, 1]]),
        impurity=np.zeros(3),
        gain=np.zeros(3),
        n_columns=n_columns,
        criterion="gini",
    )


def ranked(thresholds: list[float]) -> tuple[np.ndarray, ForestNodes]:
    """The distinct thresholds of stumps of one column, and the stumps as a forest."""
    grown = GrownTrees([stump(x) for x in thresholds], 1)
    forest = ForestNodes(grown, 1, None, False)
    first = np.array([0, len(thresholds)])
    compared, node_of = np.empty(len(thresholds)), np.empty(len(thresholds), dtype=np.int64)
    columns = np.array([[0, -1, 5, 5]])  # slots of numbers and codes, n_codes, n_ordered
    fill_nodes(forest, grown, columns, first[:1].copy(), compared, node_of)
    np.testing.assert_array_equal(compared, thresholds)
    n_distinct = np.zeros(1, dtype=np.int64)
    rank_thresholds(forest, compared, node_of, first, 0, 1, n_distinct)
    return compared[: n_distinct[0]].copy(), forest


def check_ranks(thresholds: list[float]) -> None:
    distinct, forest = ranked(thresholds)
    np.testing.assert_array_equal(distinct, np.unique(thresholds))
    codes = np.unique(np.linspace(0, len(distinct), 30).astype(np.uint16))[:, None]
    leaves = np.empty((len(thresholds), len(codes)), dtype=np.int32)
    walk_leaves(forest, codes, leaves)
    passes = np.searchsorted(distinct, thresholds)[:, None] >= codes.T
    np.testing.assert_array_equal(leaves, np.where(passes, 1, 2))


@given(st.lists(NUMBERS, min_size=1, max_size=50))
def test_few_thresholds(thresholds):
    check_ranks(thresholds)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", [31, 33, 9_000])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8])
def test_many_thresholds(n, kind):
    """By insertion, and by digits."""
    rng = np.random.default_rng(n)
    thresholds = (rng.normal(size=n) * 50).astype(kind).astype(float)
    thresholds[:3] = np.inf, -0.0, 0.0
    check_ranks(thresholds.tolist())


def test_numbers_of_all_sizes():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 5_000, dtype=np.uint64).view(np.float64)
    check_ranks(bits[~np.isnan(bits)].tolist())


def test_what_is_no_number_is_above_all():
    distinct, _ = ranked([np.nan, 1.0, -np.nan, 0.0])
    np.testing.assert_array_equal(distinct, [0.0, 1.0, np.nan])


def test_arrays_that_do_not_fit():
    distinct, forest = ranked([1.0, 2.0])
    first, nodes = np.array([0, 2]), np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="differ in length"):
        rank_thresholds(forest, distinct, nodes, first, 0, 2, np.zeros(1, dtype=np.int64))
