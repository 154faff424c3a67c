"""What nodes are under limits to come: all of the trees that follow, where sets are alone."""

from dataclasses import replace

import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.known import KnownTrees
from dtrees.parallel import LocalRunner
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_known_trees import check_foretold, grow_known
from tests.laws.test_shared import folds

KINDS = ("ties", "distinct", "hybrid", "categories", "missing", "constant")
ROWS = folds(300, 4, 0)
ALONE = Tuning(shared_rows=10**6)
LEAVES = (1, 2, 5, 11, 30)


@pytest.mark.parametrize("largest_code", [None, 300])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_nothing_is_searched_twice(case, largest_code):
    example = seeded(*case, kinds=KINDS, n_rows=300)
    matrix, known = coded(example.table, largest_code), None
    for i, least in enumerate(LEAVES):
        mine = replace(example, limits={**example.limits, "min_samples_leaf": least})
        known = KnownTrees(known, narrower=LEAVES[i + 1 :])
        trees, work = grow_known(mine, ROWS, known, matrix, tuning=ALONE)
        n_nodes = sum(tree.node_count for tree in trees)
        assert work["known_nodes"] == (n_nodes if i > 0 else 0)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("shared_rows", [0, 40, 100, 10**6], ids=str)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_trees_are_those_of_fits(case, shared_rows):
    example = seeded(*case, kinds=KINDS, n_rows=300)
    n_known = check_foretold(example, ROWS, LEAVES, tuning=Tuning(shared_rows=shared_rows))
    assert n_known > 0


def test_more_limits_than_variants_have():
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=300)
    leaves = list(range(1, 41, 2))
    assert check_foretold(example, ROWS, leaves, tuning=ALONE) > 0


def test_variants_are_held_until_their_limit_has_grown():
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=300)
    known = None
    for i, least in enumerate(LEAVES):
        mine = replace(example, limits={**example.limits, "min_samples_leaf": least})
        known = KnownTrees(known, narrower=LEAVES[i + 1 :])
        grow_known(mine, ROWS, known, tuning=ALONE)
        follows = KnownTrees(known)
        assert follows.variants(least) == []
        for later in LEAVES[i + 1 :]:
            assert len(follows.variants(later)) > 0


def test_threads_know_as_much():
    example = seeded("gini", 3, "none", kinds=KINDS, n_rows=300)
    counts = []
    for n_threads in (1, 2):
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=40)
        how = {"run": LocalRunner(n_threads), "n_threads": n_threads, "tuning": tuning}
        counts.append(check_foretold(example, ROWS, LEAVES, **how))
    assert counts[0] == counts[1] > 0
