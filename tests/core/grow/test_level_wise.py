"""One tree on several threads: levels of large nodes, then subtrees as tasks."""

from __future__ import annotations

from concurrent.futures import CancelledError

import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.grow.test_level_wise_node import ROWS, Threads, large, some_weighted
from tests.laws.tables import (
    SEVEN_WAYS,
    arrays_of,
    coded_sparse,
    fit,
    grow_parts,
    seeded,
)


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
    """Levels and tasks of any size, and more threads than there are columns."""
    example = seeded(*case, kinds=("ties", "distinct", "hybrid", "counts"), n_rows=250)
    expected = arrays_of(fit(example))
    for level_entries, task_entries in ((0, 0), (0, 1 << 40), (1 << 40, 0), (100, 100)):
        tuning = Tuning(level_entries=level_entries, task_entries=task_entries)
        assert arrays_of(fit(example, n_threads=n_threads, tuning=tuning)) == expected


def test_tasks_are_handed_out_and_their_order_does_not_matter():
    example = seeded("gini", 3, "none", kinds=("ties", "distinct", "counts"), n_rows=600)
    sizes = []

    def backwards(tasks):
        sizes.append(len(tasks))
        return [task() for task in reversed(tasks)][::-1]

    tuning = Tuning(level_entries=0, task_entries=0)
    tree = fit(example, run=backwards, n_threads=3, tuning=tuning)
    assert arrays_of(tree) == arrays_of(fit(example))
    assert max(sizes) > 1
