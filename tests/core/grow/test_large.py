"""Tables large enough for threads, rounds and 64-bit entries: the cut of the work is not seen."""

from __future__ import annotations

import random
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.model import pruning
from dtrees.core.model.pruning import PruningLimits
from tests.laws.tables import (
    Example,
    coded,
    coded_sparse,
    fill_column,
    fill_target,
    fit,
    grow_parts,
)
from tests.laws.test_shared import folds, grow_sets

KINDS = ("ties", "categories", "distinct", "hybrid", "counts", "mostly", "mostly a category")
ROWS = 20_000  # enough for some levels on several threads
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


@some_weighted
def test_sparse_on_threads(criterion, weights):
    # Dense columns of few codes are counted, sparse ones never are.
    example = large(criterion, ROWS, weights=weights)
    parts = [(coded_sparse(example.table, 1), example.target)]
    tree = grow_parts(example, parts, run=Threads(2), n_threads=2)
    assert fit(example).equals(tree)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_shards(criterion):
    # Rounds until 500 rows are left, subtrees below; the shards are of unequal size.
    example = large(criterion, ROWS)
    matrix, target = coded(example.table), example.target
    blocks = np.split(np.arange(example.n_rows), [100, 7_000])
    parts = [(matrix.take(rows), target.take(rows)) for rows in blocks]
    assert fit(example).equals(grow_parts(example, parts, gather_rows=500))


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


@pytest.mark.parametrize("n_rows", [46_340, 46_341])
def test_sets_of_more_rows_than_squares_fit(n_rows):
    # Up to 46,340 rows of several classes the members of a node are searched side by side.
    example = large("gini", n_rows, 12, max_depth=4, min_samples_leaf=5)
    rows = folds(n_rows, 2, 0)
    trees = grow_sets(example, coded(example.table), rows)
    for mine, tree in zip(rows, trees.trees, strict=True):
        alone = replace(example, weight=mine.astype(float))
        assert fit(alone).equals(tree)


def test_more_cells_than_rows():
    # Codes times classes are many more than rows: the column is sorted, not counted.
    rng = np.random.default_rng(0)
    column = rng.integers(0, 3_000, 70_000).astype(float).tolist()
    y = rng.integers(0, 200, 70_000)
    example = Example([column, [v % 7 for v in column]], y, None, "gini", {"max_depth": 3})
    alone = fit(example)
    assert alone.equals(fit(example, run=Threads(2), n_threads=2))
    assert alone.equals(grow_parts(example, [(coded_sparse(example.table, 1), example.target)]))


def test_depth_does_not_matter():
    # The depth limit stops growth early and cuts the grown tree to the same nodes.
    example = large("gini", ROWS)
    full = fit(example, n_threads=2)
    for depth in (1, 5, 9):
        early = fit(large("gini", ROWS, max_depth=depth), n_threads=2)
        assert early.equals(PruningLimits(max_depth=depth).cut(full))


def test_cancelled():
    run = Threads(1)
    run.cancelled.set()
    with pytest.raises(CancelledError):
        fit(large("gini", 100), run=run)


def test_a_tree_as_deep_as_it_is_large():
    # Alternating classes: every split takes one row off. Nothing recurses on the depth.
    column = [float(i) for i in range(5_000)]
    example = Example([column] * 8, np.arange(5_000) % 2, None, "gini")
    tree = fit(example)
    assert tree.max_depth > 1_000
    assert tree.n_leaves == 5_000
    assert tree.equals(fit(example, run=Threads(2), n_threads=2))
    assert PruningLimits(max_depth=700).cut(tree).max_depth == 700
    assert PruningLimits(max_leaf_nodes=900).cut(tree).n_leaves == 900
    assert len(pruning.cost_complexity_path(tree)[0]) > 1
