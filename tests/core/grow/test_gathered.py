"""Nodes that are finished in one place from rows of several blocks."""

import numpy as np

from dtrees.core.data.scale import scale_of
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.gathered import GatheredNode, grow_gathered, stacked
from dtrees.core.grow.source import DatasetSource
from dtrees.core.stores.blocks.block import EVERYONE, GatheredRows
from tests.laws.tables import coded, cut_in_parts, seeded

EXAMPLE = seeded("gini", 3, "none")
MATRIX, TARGET, RULES = coded(EXAMPLE.table), EXAMPLE.target, EXAMPLE.rules


def node(n_sets, scales):
    return GatheredNode(
        3, 0, 0, tuple(range(n_sets)), 2, 77, EXAMPLE.n_rows, (RULES,) * n_sets, tuple(scales)
    )


def assert_same(piece, other):
    for name in ("nodes", "statistics", "words"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(other, name))


def test_the_subtree_of_one_set():
    rows = [GatheredRows(*part, None, EVERYONE) for part in cut_in_parts(EXAMPLE, 30, 30, 100)]
    scale = scale_of(TARGET, RULES)
    (found,) = grow_gathered(rows, node(1, [scale]), None, Arena())
    assert_same(found, DatasetSource(MATRIX, TARGET, RULES, scale=scale).finish(2, 77))


def test_combinations_of_blocks_are_numbered_anew():
    masks = [np.array([3, 1], dtype=np.uint64), np.array([2, 3], dtype=np.uint64)]
    combinations = [np.arange(70, dtype=np.uint16) % 2, np.arange(80, dtype=np.uint16) % 2]
    parts = zip(cut_in_parts(EXAMPLE, 70), combinations, masks, strict=True)
    found = stacked([GatheredRows(*part, own, mask) for part, own, mask in parts])
    own = [mask[rows] for mask, rows in zip(masks, combinations, strict=True)]
    np.testing.assert_array_equal(found.masks[found.combination], np.concatenate(own))
    assert len(np.unique(found.masks)) == len(found.masks) == 3


def test_the_subtrees_of_sets():
    masks = np.array([0b01, 0b10, 0b11], dtype=np.uint64)
    combination = np.random.default_rng(0).integers(0, 3, EXAMPLE.n_rows).astype(np.uint16)
    has = (masks[combination][:, None] >> np.arange(2, dtype=np.uint64)) & np.uint64(1) > 0
    targets = [TARGET.only(has[:, number]) for number in range(2)]
    scales = [scale_of(target, RULES) for target in targets]
    ends = [40, 90]
    parts = zip(cut_in_parts(EXAMPLE, *ends), np.split(combination, ends), strict=True)
    rows = [GatheredRows(*part, own, masks) for part, own in parts]
    found = grow_gathered(rows, node(2, scales), None, Arena())
    for piece, target, scale in zip(found, targets, scales, strict=True):
        assert_same(piece, DatasetSource(MATRIX, target, RULES, scale=scale).finish(2, 77))
