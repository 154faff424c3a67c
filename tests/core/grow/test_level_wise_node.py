"""Tables large enough for threads, rounds and 64-bit entries: the cut of the work is not seen."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import (
    Example,
    coded,
    fill_column,
    fill_target,
    fit,
    grow_parts,
)

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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_shards(criterion):
    # Rounds until 500 rows are left, subtrees below; the shards are of unequal size.
    example = large(criterion, ROWS)
    matrix, target = coded(example.table), example.target
    blocks = np.split(np.arange(example.n_rows), [100, 7_000])
    parts = [(matrix.take(rows), target.take(rows)) for rows in blocks]
    assert fit(example).equals(grow_parts(example, parts, gather_rows=500))


IN_BLOCKS = {"n_threads": 2, "tuning": Tuning(level_entries=0, task_entries=0)}


def table_with(column, places, n_columns=40):
    """One column at some places among constant ones."""
    return [column if j in places else [7.0] * len(column) for j in range(n_columns)]


@pytest.mark.parametrize("places", [[0, 39], [13, 14], [5, 20, 33]])
@pytest.mark.parametrize("counted_rows", [0, 1 << 40], ids=["counted", "sorted"])
def test_equal_columns_of_several_blocks(places, counted_rows):
    """The lowest wins, whichever block is done first."""
    column = [float(i // 9) for i in range(300)]
    y = (np.arange(300) > 130).astype(int)
    example = Example(table_with(column, places), y, None, "gini")
    tuning = replace(IN_BLOCKS["tuning"], counted_rows=counted_rows)
    tree = fit(example, n_threads=3, tuning=tuning)
    assert set(tree.feature[tree.test > 0].tolist()) == {places[0]}
    assert tree.equals(fit(example))


def test_ties_are_drawn_among_all_blocks():
    column = [float(i // 9) for i in range(100)]
    y = (np.arange(100) > 50).astype(int)
    found = set()
    for seed in range(40):
        limits = {"random_ties": True, "seed": seed, "max_depth": 1}
        example = Example(table_with(column, [2, 17, 38]), y, None, "gini", limits)
        tree = fit(example, **IN_BLOCKS)
        assert tree.equals(fit(example))
        found.add(int(tree.feature[0]))
    assert found == {2, 17, 38}


@pytest.mark.parametrize("seed", range(5))
def test_draws_go_on_until_a_column_of_some_block_varies(seed):
    column = [float(i) for i in range(60)]
    limits = {"max_features": 2, "seed": seed}
    example = Example(table_with(column, [23]), np.arange(60) % 2, None, "gini", limits)
    tree = fit(example, **IN_BLOCKS)
    assert set(tree.feature[tree.test > 0].tolist()) == {23}
    assert tree.n_leaves == 60
    assert tree.equals(fit(example))
