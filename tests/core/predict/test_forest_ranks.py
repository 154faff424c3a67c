"""Thresholds of a packed forest: distinct ones, ascending, and which codes each node lets pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.model.tree import Tree
from dtrees.core.predict._forest_nodes import ForestNodes, fill_nodes
from dtrees.core.predict._forest_ranks import rank_thresholds
from dtrees.core.predict._grown_trees import GrownTrees
from dtrees.core.predict._packed_forest import walk_leaves

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
    forest = ForestNodes(grown, 1, None, True, False)
    first = np.array([0, len(thresholds)])
    compared, node_of = np.empty(len(thresholds)), np.empty(len(thresholds), dtype=np.int64)
    columns = np.array([[0, -1, 5, 5]])  # slots of numbers and codes, n_codes, n_ordered
    fill_nodes(forest, grown, columns, first[:1].copy(), compared, node_of, False)
    fill_nodes(forest, grown, columns, first[1:].copy(), compared, node_of, True)
    half = len(thresholds) // 2
    np.testing.assert_array_equal(compared, [*thresholds[:half], *reversed(thresholds[half:])])
    n_distinct = np.zeros(1, dtype=np.int64)
    rank_thresholds(forest, compared, node_of, first, 0, 1, n_distinct)
    return compared[: n_distinct[0]].copy(), forest


def check(thresholds: list[float]) -> None:
    distinct, forest = ranked(thresholds)
    np.testing.assert_array_equal(distinct, np.unique(thresholds))
    codes = np.unique(np.linspace(0, len(distinct), 30).astype(np.uint16))[:, None]
    leaves = np.empty((len(thresholds), len(codes)), dtype=np.int32)
    walk_leaves(forest, codes, False, leaves)
    passes = np.searchsorted(distinct, thresholds)[:, None] >= codes.T
    np.testing.assert_array_equal(leaves, np.where(passes, 1, 2))


@given(st.lists(NUMBERS, min_size=1, max_size=50))
def test_few_thresholds(thresholds):
    check(thresholds)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", [31, 33, 500, 4_095, 4_096, 9_000])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8])
def test_many_thresholds(n, kind):
    """By insertion, by digits of a byte, and by longer ones."""
    rng = np.random.default_rng(n)
    thresholds = (rng.normal(size=n) * 50).astype(kind).astype(float)
    thresholds[:3] = np.inf, -0.0, 0.0
    check(thresholds.tolist())


def test_numbers_of_all_sizes():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 5_000, dtype=np.uint64).view(np.float64)
    check(bits[~np.isnan(bits)].tolist())


def test_what_is_no_number_is_above_all():
    distinct, _ = ranked([np.nan, 1.0, -np.nan, 0.0])
    np.testing.assert_array_equal(distinct, [0.0, 1.0, np.nan])


def test_arrays_that_do_not_fit():
    distinct, forest = ranked([1.0, 2.0])
    first, nodes = np.array([0, 2]), np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="differ in length"):
        rank_thresholds(forest, distinct, nodes, first, 0, 2, np.zeros(1, dtype=np.int64))
