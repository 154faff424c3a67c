"""Nodes that are finished in one place from rows of several blocks."""

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.gathered import GatheredNode, each_node, grow_gathered, stacked
from dtrees.core.grow.source import DatasetSource
from dtrees.core.stores.blocks.block import GatheredRows
from tests.laws.tables import coded, cut_in_parts, seeded

EXAMPLE = seeded("gini", 3, "none")
MATRIX, TARGET, RULES = coded(EXAMPLE.table), EXAMPLE.target, EXAMPLE.rules


def node(n_sets, scales):
    return GatheredNode(
        3, 0, 0, tuple(range(n_sets)), 2, 77, EXAMPLE.n_rows, (RULES,) * n_sets, tuple(scales)
    )


def gathered(coded, target, masks=None):
    return GatheredRows(coded, target, None, masks, np.array([coded.n_rows]))


def assert_same(piece, other):
    for name in ("nodes", "statistics", "words"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(other, name))


def test_the_subtree_of_one_set():
    rows = [gathered(*part) for part in cut_in_parts(EXAMPLE, 30, 30, 100)]
    scale = scale_of(TARGET, RULES)
    (found,) = grow_gathered(stacked(rows), node(1, [scale]), None, Arena())
    assert_same(found, DatasetSource(MATRIX, TARGET, RULES, scale=scale).finish(2, 77))


@pytest.mark.parametrize("n_nodes", [1, 3])
def test_rows_of_nodes_are_told_apart(n_nodes):
    """Those of each node come in the order of the parts, of which some have none of them."""
    rng, parts, of_node = np.random.default_rng(0), [], [[] for _ in range(n_nodes)]
    first = 0
    for coded_part, target in cut_in_parts(EXAMPLE, 70, 71):
        n = coded_part.n_rows
        n_rows = np.bincount(rng.integers(0, n_nodes, n), minlength=n_nodes)
        times, masks = np.arange(n) + first, np.arange(n, dtype=np.uint64) * 3 + first
        parts.append(GatheredRows(coded_part, target, times, masks, n_rows))
        for node, own in enumerate(np.split(np.arange(n) + first, n_rows.cumsum()[:-1])):
            of_node[node] += own.tolist()
        first += n
    for found, rows in zip(each_node(parts), of_node, strict=True):
        assert found.n_rows.sum() == len(rows)
        np.testing.assert_array_equal(found.coded.column(0), MATRIX.column(0)[rows])
        np.testing.assert_array_equal(found.target.y, TARGET.y[rows])
        np.testing.assert_array_equal(found.times, rows)
        np.testing.assert_array_equal(found.masks, np.concatenate([p.masks for p in parts])[rows])


def test_the_subtrees_of_sets():
    masks = np.array([0b01, 0b10, 0b11], dtype=np.uint64)
    combination = np.random.default_rng(0).integers(0, 3, EXAMPLE.n_rows).astype(np.uint16)
    has = (masks[combination][:, None] >> np.arange(2, dtype=np.uint64)) & np.uint64(1) > 0
    targets = [TARGET.only(has[:, number]) for number in range(2)]
    scales = [scale_of(target, RULES) for target in targets]
    ends = [40, 90]
    parts = zip(cut_in_parts(EXAMPLE, *ends), np.split(combination, ends), strict=True)
    rows = [gathered(*part, masks[own]) for part, own in parts]
    found = grow_gathered(stacked(rows), node(2, scales), None, Arena())
    for piece, target, scale in zip(found, targets, scales, strict=True):
        assert_same(piece, DatasetSource(MATRIX, target, RULES, scale=scale).finish(2, 77))
