"""One tree from the rows of a dataset: the cut of the work, and where it begins, are not seen."""

from __future__ import annotations

import copy
import pickle
import random
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import _single_tree
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.assembly import join
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.pruning import PruningLimits, cost_complexity_path
from dtrees.core.model.tree import LEAF
from tests.core.walk import rows_of_nodes
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    fill_column,
    fill_target,
    fit,
    grow_parts,
    seeded,
)
from tests.oracle.ties import ROOT, child

KINDS = ("ties", "categories", "distinct", "hybrid", "counts", "mostly", "mostly a category")
ROWS = 20_000  # enough for some large nodes on several threads
CRITERIA = ("gini", "entropy", "squared_error", "poisson")
some_weighted = pytest.mark.parametrize(
    ("criterion", "weights"),
    [
        *zip(CRITERIA, (False, True, False, True), strict=True),
        *(
            pytest.param(criterion, weights, marks=pytest.mark.long)
            for criterion, weights in zip(CRITERIA, (True, False, True, False), strict=True)
        ),
    ],
)


class Threads:
    """A runner on real threads."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.cancelled = Event()

    def __call__(self, tasks):
        with ThreadPoolExecutor(self.n_threads) as pool:
            return list(pool.map(lambda task: task(), tasks))


def large(criterion: str, n_rows: int, n_classes: int = 3, weights: bool = False, **limits):
    rng = random.Random(n_rows)
    table = [fill_column(kind, n_rows, rng, 7, 0.1) for kind in KINDS]
    y = fill_target(criterion, n_classes, table, rng, "real")
    weight = np.array([float(rng.randint(0, 3)) for _ in range(n_rows)]) if weights else None
    return Example(table, y, weight, criterion, limits)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_shards(criterion):
    # Rounds until 500 rows are left, subtrees below; the shards are of unequal size.
    example = large(criterion, ROWS)
    matrix, target = coded(example.table), example.target
    blocks = np.split(np.arange(example.n_rows), [100, 7_000])
    parts = [(matrix.take(rows), target.take(rows)) for rows in blocks]
    assert fit(example).equals(grow_parts(example, parts, gather_rows=500))


@pytest.mark.long
@some_weighted
def test_threads(criterion, weights):
    example = large(criterion, ROWS, weights=weights)
    alone = fit(example)
    assert alone.node_count > 1_000
    for n_threads in (2, 3):
        for tuning in (Tuning(), Tuning(level_entries=0), Tuning(counted_rows=0)):
            tree = fit(example, run=Threads(n_threads), n_threads=n_threads, tuning=tuning)
            assert alone.equals(tree)


def test_threads_draw_the_same_columns():
    example = large("gini", ROWS, n_classes=2, max_features=2, seed=3)
    assert fit(example).equals(fit(example, run=Threads(2), n_threads=2))


@pytest.mark.one_of(4)
@some_weighted
def test_sparse_on_threads(criterion, weights):
    # Dense columns of few codes are counted, sparse ones never are.
    example = large(criterion, ROWS, weights=weights)
    parts = [(coded_sparse(example.table, 1), example.target)]
    tree = grow_parts(example, parts, run=Threads(2), n_threads=2)
    assert fit(example).equals(tree)


def test_cancelled():
    run = Threads(1)
    run.cancelled.set()
    with pytest.raises(CancelledError):
        fit(large("gini", 100), run=run)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_any_cut_of_the_work(case, n_threads):
    """Large nodes and subtrees of any size, and more threads than there are columns."""
    example = seeded(*case, kinds=("ties", "distinct", "hybrid", "counts"), n_rows=250)
    expected = arrays_of(fit(example))
    for level_entries, task_entries in ((0, 0), (0, 1 << 40), (1 << 40, 0), (100, 100)):
        tuning = Tuning(level_entries=level_entries, task_entries=task_entries)
        assert arrays_of(fit(example, n_threads=n_threads, tuning=tuning)) == expected


@pytest.mark.parametrize("limits", [{}, {"max_features": 1}], ids=["presorted", "drawn"])
def test_subtrees_are_left_to_the_team(limits, monkeypatch):
    example = seeded("gini", 3, "none", kinds=("ties", "distinct"), n_rows=600, **limits)
    n_pieces = []

    def joined(pieces):
        n_pieces.append(len(pieces))
        return join(pieces)

    monkeypatch.setattr(_single_tree, "join", joined)
    tuning = Tuning(level_entries=0, task_entries=0)
    tree = fit(example, run=Threads(3), n_threads=3, tuning=tuning)
    assert arrays_of(tree) == arrays_of(fit(example))
    assert n_pieces[0] > 3


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("criterion", "n_classes", "weights"),
    [
        ("gini", 2, False),
        pytest.param("gini", 3, False, marks=pytest.mark.long),
        pytest.param("gini", 2, True, marks=pytest.mark.long),
        pytest.param("entropy", 3, True, marks=pytest.mark.long),
        pytest.param("squared_error", 0, False, marks=pytest.mark.long),
        ("poisson", 0, True),
    ],
)
def test_more_rows_than_16_bits_count(criterion, n_classes, weights):
    # Above 65,535 rows entries have 64 bits, below they have 32.
    example = large(criterion, 70_000, n_classes, weights=weights, max_depth=7)
    alone = fit(example)
    assert weights or alone.n_node_samples[0] == 70_000
    assert alone.equals(fit(example, run=Threads(2), n_threads=2))
    sparse = [(coded_sparse(example.table, 1), example.target)]
    assert alone.equals(grow_parts(example, sparse))
    matrix, target = coded(example.table), example.target
    halves = [slice(0, 35_000), slice(35_000, None)]
    rows = [np.arange(70_000)[half] for half in halves]
    parts = [(matrix.take(r), target.take(r)) for r in rows]
    assert alone.equals(grow_parts(example, parts, gather_rows=20_000))


def test_more_cells_than_rows():
    # Codes times classes are many more than rows: the column is sorted, not counted.
    rng = np.random.default_rng(0)
    column = rng.integers(0, 3_000, 70_000).astype(float).tolist()
    y = rng.integers(0, 200, 70_000)
    example = Example([column, [v % 7 for v in column]], y, None, "gini", {"max_depth": 3})
    alone = fit(example)
    assert alone.equals(fit(example, run=Threads(2), n_threads=2))
    assert alone.equals(grow_parts(example, [(coded_sparse(example.table, 1), example.target)]))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("n_rows", [1, 2, 127, 128, 129, 700])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_are_counted_or_sorted(case, n_rows):
    """The root counts a column where its cells are few for its rows; else it sorts entries."""
    example = seeded(*case, n_rows=n_rows)
    matrix, target = coded(example.table), example.target
    expected = arrays_of(fit(example, tuning=Tuning(counted_rows=1 << 40)))
    for n_threads in (1, 3):
        found = grow_parts(example, [(matrix, target)], n_threads=n_threads)
        assert arrays_of(found) == expected
    narrow = grow_parts(example, [(matrix, target)], tuning=Tuning(counted_rows=n_rows))
    assert arrays_of(narrow) == expected


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
    scale = scale_of(target, rules)
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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_of_sets_stay_while_others_grow(case):
    arena, pieces, copies = Arena(), [], []
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


def test_copies_and_pickles_are_empty_pools():
    arena = Arena()
    for other in (copy.copy(arena), copy.deepcopy(arena), pickle.loads(pickle.dumps(arena))):
        assert type(other) is Arena
        assert other is not arena


IN_CHUNKS = {"n_threads": 2, "tuning": Tuning(level_entries=0, task_entries=0)}


def table_with(column, places, n_columns=40):
    """One column at some places among constant ones."""
    return [column if j in places else [7.0] * len(column) for j in range(n_columns)]


@pytest.mark.parametrize("places", [[0, 39], [13, 14], [5, 20, 33]])
@pytest.mark.parametrize("counted_rows", [0, 1 << 40], ids=["counted", "sorted"])
def test_equal_columns_of_several_chunks(places, counted_rows):
    """The lowest wins, whichever chunk is done first."""
    column = [float(i // 9) for i in range(300)]
    y = (np.arange(300) > 130).astype(int)
    example = Example(table_with(column, places), y, None, "gini")
    tuning = replace(IN_CHUNKS["tuning"], counted_rows=counted_rows)
    tree = fit(example, n_threads=3, tuning=tuning)
    assert set(tree.feature[tree.test > 0].tolist()) == {places[0]}
    assert tree.equals(fit(example))


def test_ties_are_drawn_among_all_chunks():
    column = [float(i // 9) for i in range(100)]
    y = (np.arange(100) > 50).astype(int)
    found = set()
    for seed in range(40):
        limits = {"random_ties": True, "seed": seed, "max_depth": 1}
        example = Example(table_with(column, [2, 17, 38]), y, None, "gini", limits)
        tree = fit(example, **IN_CHUNKS)
        assert tree.equals(fit(example))
        found.add(int(tree.feature[0]))
    assert found == {2, 17, 38}


@pytest.mark.parametrize("seed", range(5))
def test_draws_go_on_until_a_column_varies(seed):
    column = [float(i) for i in range(60)]
    limits = {"max_features": 2, "seed": seed}
    example = Example(table_with(column, [23]), np.arange(60) % 2, None, "gini", limits)
    tree = fit(example, **IN_CHUNKS)
    assert set(tree.feature[tree.test > 0].tolist()) == {23}
    assert tree.n_leaves == 60
    assert tree.equals(fit(example))
