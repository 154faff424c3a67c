"""One growth for all sets: each has the tree that it grows alone, together or when it goes."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.parallel import LocalRunner
from tests.laws.tables import SEVEN_WAYS, coded, fit, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets

KINDS = ("ties", "distinct", "hybrid", "counts")


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
