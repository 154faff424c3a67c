"""One growth for all sets: each has the tree that it grows alone, together or when it goes."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.core.membership.shares import Shares
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.parallel import LocalRunner
from dtrees.typing import serial
from tests.laws.tables import SEVEN_WAYS, Example, coded, examples, fit, seeded
from tests.laws.test_shared import check, check_sets, folds, grow_sets, masks

KINDS = ("ties", "distinct", "hybrid", "counts")
WITH_SUBSETS = ("ties", "hybrid", "counts")  # whose words are counted, too
N_ROWS = 20_000
ALONE = 2**40  # rows of a shared node that would pay
TOGETHER = Tuning(shared_rows=0)
SHARES = [
    Shares(min_samples_split=0.2),
    Shares(min_samples_leaf=0.07),
    Shares(min_weight_leaf=0.05),
    Shares(min_samples_split=0.15, min_samples_leaf=0.04, min_weight_leaf=0.03),
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_nodes_stay_together_as_long_as_that_pays(case, shared_rows, grown):
    example = seeded(*case, kinds=KINDS, n_rows=200, min_samples_leaf=3)
    check_sets(example, folds(200, 4, 0), tuning=Tuning(shared_rows=shared_rows))
    assert (sum(sets.n_shared_nodes for sets in grown) > 0) == (shared_rows < 10**6)
    assert (sum(sets.n_shared_rows for sets in grown) >= 200) == (shared_rows < 10**6)


def test_shared_nodes_and_their_rows_are_counted(grown):
    """Without splits that gain there is one node, of all rows that count."""
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=90, min_impurity_decrease=1e9)
    grow_sets(example, coded(example.table), folds(90, 3, 0), tuning=Tuning(shared_rows=0))
    assert [(sets.n_shared_nodes, sets.n_shared_rows) for sets in grown] == [(1, 90)]


@pytest.mark.parametrize("task_entries", [0, 1, 1 << 40])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_on_threads(n_threads, task_entries):
    example = seeded("gini", 3, "none", kinds=KINDS, n_rows=250)
    tuning = Tuning(shared_rows=0, task_entries=task_entries, level_entries=0)
    run = LocalRunner(2)
    check_sets(example, folds(250, 5, 0), run=run, n_threads=n_threads, tuning=tuning)


def test_equal_sets_have_equal_trees():
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=90)
    rows = np.repeat(folds(90, 2, 0), 3, axis=0)
    trees = grow_sets(example, coded(example.table), rows, tuning=Tuning(shared_rows=0)).trees
    assert all(trees[i].equals(trees[i - i % 3]) for i in range(9))
    assert trees[6].equals(fit(example))  # of all rows


def test_limits_on_depth_end_all_of_them():
    for depth in (0, 1, 3):
        example = seeded("gini", 4, "none", kinds=KINDS, n_rows=120, max_depth=depth)
        rows = folds(120, 3, 0)
        trees = grow_sets(example, coded(example.table), rows, tuning=Tuning(shared_rows=0)).trees
        assert [tree.max_depth for tree in trees] == [depth] * 4
        check_sets(example, rows, tuning=Tuning(shared_rows=0))


def test_rows_without_weight_are_left_out():
    example = seeded("squared_error", 0, "none", kinds=("ties", "distinct"), n_rows=80)
    weight = np.arange(80) % 3 > 0
    weighed = replace(example, weight=weight.astype(float))
    rows = folds(80, 4, 0)
    check_sets(weighed, rows, tuning=Tuning(shared_rows=0))
    trees = grow_sets(weighed, coded(weighed.table), rows, tuning=Tuning(shared_rows=0)).trees
    assert [tree.n_node_samples[0] for tree in trees] == [(mine & weight).sum() for mine in rows]


@given(examples(draws=True, max_rows=120), st.integers(2, 7), st.integers(0, 99))
def test_every_set_leaves_at_the_root(example, n_folds, seed):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, tuning=Tuning(shared_rows=ALONE))


@pytest.mark.parametrize("shared_rows", [20, 90])
@given(examples(max_rows=120), st.integers(2, 6), st.integers(0, 99))
def test_sets_leave_below_the_root(shared_rows, example, n_sets, seed):
    """By then there are rows that only some of the sets have."""
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, tuning=Tuning(shared_rows=shared_rows))


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_one_thread_grows_subtrees_of_many_nodes(case):
    """Work is divided for three threads, and one does it all: each set has its tree."""
    example = seeded(*case, kinds=WITH_SUBSETS, n_rows=250)
    tuning = Tuning(shared_rows=0, task_entries=0, level_entries=1 << 40)
    how = {"run": serial, "n_threads": 3, "tuning": tuning, "arena": Arena()}
    check_sets(example, folds(250, 5, 0), **how)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux says it exactly")
def test_records_of_a_set_are_given_back_with_its_tree():
    """And a heap keeps what the first tree has taken, not what the records of all took."""
    numbers = np.random.default_rng(0).random((2, N_ROWS))
    example = replace(seeded("squared_error", 0, "none"), table=numbers[:1].tolist(), y=numbers[1])
    arena = Arena()
    how = {"arena": arena, "n_threads": 3, "tuning": Tuning(task_entries=0)}
    source = DatasetSource(coded(example.table), example.target, example.rules, **how)
    sets = of_sets(folds(N_ROWS, 4, 0))
    list(pieces_of_sets(source, [example.rules] * 5, sets))  # heaps have what they need
    before = resident()
    n_bytes, held = [], []
    for piece in pieces_of_sets(source, [example.rules] * 5, sets):
        n_bytes.append(piece.nodes.nbytes + piece.statistics.nbytes)
        del piece
        held.append(resident() - before)
    assert min(n_bytes) > 10**6
    assert held[0] < sum(n_bytes[1:]) + 2 * n_bytes[0]
    assert -np.diff(held[:-1]) == pytest.approx(n_bytes[1:-1], rel=0.2)
    assert held[-1] < n_bytes[-1]


def resident():
    """Bytes of resident memory of this process; `statm` is off by some pages for each processor."""
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("shares", SHARES, ids=range(4))
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_limits_of_each_set_are_its_own(case, shares):
    """Sets of very different sizes, so that a share is another number in each."""
    example = seeded(*case, kinds=("ties", "distinct", "categories"), n_rows=100)
    rows = np.random.default_rng(1).random((4, 100)) < np.array([[0.25], [0.5], [0.8], [1.0]])
    check_sets(example, rows, shares=shares, tuning=TOGETHER)


@pytest.mark.parametrize("n_sets", [MOST_SETS - 1, MOST_SETS, MOST_SETS + 1])
def test_as_many_sets_as_there_are_bits(n_sets):
    example = seeded("gini", 2, "none", kinds=("ties", "distinct"), n_rows=70)
    check_sets(example, masks(70, n_sets, 4), tuning=TOGETHER)


@pytest.mark.parametrize("weight", [1, 2**18, 2**22, 2**45])
def test_sums_of_two_classes_are_one_number_while_they_fit(weight):
    """Weights of all rows around the largest field, which is left at 2,097,151."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 60) * float(weight)
    weights[0] = 1.0  # so that the unit is not the weight
    table = rng.integers(0, 9, (3, 60)).astype(float).tolist()
    example = Example(table, rng.integers(0, 2, 60), weights, "gini", {"min_samples_leaf": 2})
    check_sets(example, folds(60, 4, 0), tuning=TOGETHER)


def test_a_set_that_has_no_row_of_a_class():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], 20)
    table = rng.integers(0, 5, (2, 60)).astype(float).tolist()
    example = Example(table, y, None, "gini")
    rows = np.array([y != k for k in range(3)])
    trees = grow_sets(example, coded(table), rows, tuning=TOGETHER).trees
    for k, tree in enumerate(trees):
        assert not tree.value[:, k].any()
    check_sets(example, rows, tuning=TOGETHER)
