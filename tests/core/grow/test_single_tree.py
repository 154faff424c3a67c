"""One tree from the rows of a dataset: the cut of the work is not seen."""

from __future__ import annotations

import random
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import _single_tree
from dtrees.core.grow.assembly import join
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


@pytest.mark.one_of(2)
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


@pytest.mark.one_of(2)
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

    def joined(pieces, run):
        n_pieces.append(len(pieces))
        return join(pieces, run)

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


@pytest.mark.one_of(2)
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
