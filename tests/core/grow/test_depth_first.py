"""A whole subtree in one call: of any depth, and the same wherever it begins."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._depth_first import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.pruning import PruningLimits, cost_complexity_path
from dtrees.core.model.tree import LEAF
from tests.core.grow.test_single_tree import ROWS, Threads, large
from tests.core.walk import rows_of_nodes
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    fit,
    seeded,
)
from tests.oracle.ties import ROOT, child


def test_depth_does_not_matter():
    # The depth limit stops growth early and cuts the grown tree to the same nodes.
    example = large("gini", ROWS)
    full = fit(example, n_threads=2)
    for depth in (1, 5, 9):
        early = fit(large("gini", ROWS, max_depth=depth), n_threads=2)
        assert early.equals(PruningLimits(max_depth=depth).prune(full))


def test_a_tree_as_deep_as_it_is_large():
    # Alternating classes: every split takes one row off. Nothing recurses on the depth.
    column = [float(i) for i in range(5_000)]
    example = Example([column] * 8, np.arange(5_000) % 2, None, "gini")
    tree = fit(example)
    assert tree.max_depth > 1_000
    assert tree.n_leaves == 5_000
    assert tree.equals(fit(example, run=Threads(2), n_threads=2))
    assert PruningLimits(max_depth=700).prune(tree).max_depth == 700
    assert PruningLimits(max_leaf_nodes=900).prune(tree).n_leaves == 900
    assert len(cost_complexity_path(tree)[0]) > 1


@pytest.mark.parametrize("limits", [{}, {"max_features": 3, "seed": 2}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_a_subtree_is_that_of_the_whole_tree(case, limits):
    """Of the rows of a node, with its depth, its key and the scale of all rows."""
    example = seeded(*case, n_rows=150, max_depth=6, **limits)
    matrix, target, rules = coded(example.table), example.target, example.rules
    scale = scale_of([target], rules)
    whole = DatasetSource(matrix, target, rules).finish().nodes
    rows = rows_of_nodes(fit(example), example)
    at = {0: (0, ROOT)}  # depths and keys
    for node in range(min(len(whole), 15)):  # in preorder
        if node not in at or whole["test"][node] == LEAF:
            continue
        depth, key = at[node]
        left, right = int(whole["left"][node]), int(whole["right"][node])
        at[left], at[right] = (depth + 1, child(key, True)), (depth + 1, child(key, False))
        mine = rows[node]
        part = DatasetSource(matrix.take(mine), target.take(mine), rules, scale=scale)
        nodes = part.finish(depth, key).nodes
        stretch = whole[node : node + len(nodes)]
        for name in ("n", "column", "boundary", "test", "missing_left", "gain", "impurity"):
            np.testing.assert_array_equal(nodes[name], stretch[name])


@pytest.mark.parametrize("n_rows", [63, 64, 1023, 1024, 1025, 9000])
def test_rows_move_to_buffers_of_their_own(n_rows):
    """Nodes of few rows leave a much larger workspace."""
    example = seeded("gini", 2, "none", kinds=("distinct", "ties", "categories"), n_rows=n_rows)
    whole = fit(example)
    assert whole.n_leaves > n_rows // 20
    assert arrays_of(whole) == arrays_of(fit(example, tuning=Tuning(counted_rows=1 << 40)))


FIELDS = ("nodes", "statistics", "words")


@pytest.mark.parametrize("limits", [{}, {"max_features": 2, "seed": 1}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_stay_while_other_trees_grow(case, limits):
    arena, pieces, copies = Arena(), [], []
    for n_rows in (60, 200, 20, 200):
        example = seeded(*case, n_rows=n_rows, **limits)
        matrix, target = coded(example.table), example.target
        piece = DatasetSource(matrix, target, example.rules, arena=arena).finish()
        pieces.append(piece)
        copies.append((piece.nodes.copy(), piece.statistics.copy(), piece.words.copy()))
    for piece, (nodes, statistics, words) in zip(pieces, copies, strict=True):
        np.testing.assert_array_equal(piece.nodes, nodes)
        np.testing.assert_array_equal(piece.statistics, statistics)
        np.testing.assert_array_equal(piece.words, words)
    np.testing.assert_array_equal(copies[1][0], copies[3][0])  # of the same rows


@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_of_sets_stay_while_others_grow(case, lends):
    arena, pieces, copies = Arena(lends_records=lends), [], []
    for n_rows in (60, 200, 20, 200):
        example = seeded(*case, n_rows=n_rows)
        rows = np.arange(n_rows) % 4 != np.arange(5)[:, None]
        source = DatasetSource(coded(example.table), example.target, example.rules, arena=arena)
        for piece in pieces_of_sets(source, [example.rules] * 5, of_sets(rows)):
            pieces.append(piece)
            copies.append([getattr(piece, name).copy() for name in FIELDS])
    for piece, copied in zip(pieces, copies, strict=True):
        for name, array in zip(FIELDS, copied, strict=True):
            np.testing.assert_array_equal(getattr(piece, name), array)
    for first, last in zip(copies[5:10], copies[15:], strict=True):  # of the same rows
        np.testing.assert_array_equal(first[0], last[0])


@pytest.mark.parametrize("lends", [True, False])
def test_copies_and_pickles_are_empty_pools(lends):
    arena = Arena(lends_records=lends)
    for other in (copy.copy(arena), copy.deepcopy(arena), pickle.loads(pickle.dumps(arena))):
        assert type(other) is Arena
        assert other is not arena
        assert other.lends_records == lends
