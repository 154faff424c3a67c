"""Pieces of a tree put together: the cuts are not seen."""

import numpy as np
import pytest

from dtrees.core.grow.assembly import SUBTREE, join, subsets_of_trees, trees_of
from dtrees.core.grow.node_record import RECORD, PartialTree, RecordsOfTrees
from dtrees.core.grow.source import DatasetSource
from tests.laws.tables import SEVEN_WAYS, coded, fit, seeded, thresholds_of
from tests.laws.test_growth import assert_equal

EXAMPLE = seeded("gini", 4, "none")
MATRIX = coded(EXAMPLE.table)


def whole(example=EXAMPLE):
    return DatasetSource(coded(example.table), example.target, example.rules).finish()


def cut(piece, rng):
    """A tree as several pieces: any subtrees apart, and the other records in any order."""
    nodes, inner = piece.nodes, np.flatnonzero(piece.nodes["left"] > 0)
    end = np.arange(1, len(nodes) + 1)  # of the subtree of each node, which is in preorder
    for node in inner[::-1]:
        end[node] = end[nodes["right"][node]]
    roots, at = [], 1
    while at < len(nodes):
        if rng.random() < 0.3:
            roots.append(at)
            at = end[at]
        else:
            at += 1
    inside = np.zeros(len(nodes), dtype=int)
    for root in roots:
        inside[root + 1 : end[root]] = 1
    kept = np.flatnonzero(inside == 0)
    kept[1:] = rng.permutation(kept[1:])
    place = np.full(len(nodes), -1)
    place[kept] = np.arange(len(kept))
    top = nodes[kept].copy()
    for side in ("left", "right"):
        top[side] = np.where(top[side] > 0, place[top[side]], top[side])
    found = []
    for root in roots:
        subtree = nodes[root : end[root]].copy()
        for side in ("left", "right"):
            subtree[side] = np.where(subtree[side] > 0, subtree[side] - root, subtree[side])
        top["column"][place[root]] = SUBTREE
        found.append(PartialTree(subtree, piece.statistics[root : end[root]], piece.words))
        top["left"][place[root]] = len(found)
    return [PartialTree(top, piece.statistics[kept], piece.words), *found]


@pytest.mark.parametrize("seed", range(4))
def test_cuts_are_not_seen(seed):
    piece = whole()
    pieces = cut(piece, np.random.default_rng(seed))
    assert len(pieces) > 1
    arguments = EXAMPLE.target, MATRIX.n_codes, thresholds_of(EXAMPLE.table), EXAMPLE.rules
    (tree,) = trees_of([join(pieces)], *arguments)
    assert_equal(tree, fit(EXAMPLE))


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_trees_side_by_side_are_those_that_are_alone(case):
    """Their arrays are stretches of common ones."""
    example = seeded(*case)
    matrix, thresholds = coded(example.table), example.thresholds
    arguments = example.target, matrix.n_codes, thresholds, example.rules
    piece = whole(example)
    for tree in trees_of([piece, piece, piece], *arguments):
        assert_equal(tree, fit(example))


def test_a_root_that_is_a_subtree():
    top = np.zeros(1, dtype=RECORD)
    top["column"], top["left"] = SUBTREE, 1
    piece = whole()
    assert join([PartialTree(top, np.zeros((1, 4), dtype=np.int64), piece.words), piece]) is piece


def test_subsets_are_stored_in_the_order_of_nodes():
    """Two words for a column of 64 codes, one for a column of 9."""
    nodes = np.zeros(4, dtype=RECORD)
    nodes["column"] = [1, 0, 0, 1]
    nodes["subset"] = [3, -1, 0, 2]
    words = np.array([10, 11, 12, 13], dtype=np.uint64)
    records = RecordsOfTrees(nodes, np.zeros((4, 2)), words, np.array([3, 1]), np.ones(2))
    offset, found, n_words = subsets_of_trees(records, np.array([0, 3]), np.array([64, 9]))
    assert offset.tolist() == [0, -1, 1, 0]
    assert found.tolist() == [13, 10, 11, 12]
    assert n_words.tolist() == [3, 1]
