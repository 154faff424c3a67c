"""Nodes are set aside where a narrower limit wants another test, and allows any; nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.known import KnownTrees
from tests.laws.tables import SEVEN_WAYS, seeded
from tests.laws.test_known_trees import grow_known
from tests.laws.test_shared import folds

KINDS = ("ties", "distinct", "hybrid", "categories", "missing")
ROWS = folds(300, 4, 0)


def wants_another(tree, least):
    """Nodes that a tree of larger leaves has, too, with other tests."""
    n, found, open_ = tree.n_node_samples, 0, [0]
    while open_:
        node = open_.pop()
        children = tree.children_left[node], tree.children_right[node]
        if children[0] < 0 or n[node] < 2 * least:
            continue
        if min(n[child] for child in children) >= least:
            open_ += children
        else:
            found += 1
    return found


@pytest.mark.parametrize("least", [2, 6, 40])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_node_that_wants_another_test_once(case, least):
    example = seeded(*case, kinds=KINDS, n_rows=300)
    known = KnownTrees(narrower=[least])
    trees, _ = grow_known(example, ROWS, known, tuning=Tuning(shared_rows=10**6))
    grown = KnownTrees(known).variants(least)
    assert sum(map(len, grown)) == sum(wants_another(tree, least) for tree in trees) > 0


def test_of_two_limits_the_first_that_does_not_allow_a_test():
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=300)
    known = KnownTrees(narrower=[3, 20])
    trees, _ = grow_known(example, ROWS, known, tuning=Tuning(shared_rows=10**6))
    narrower = replace(example, limits={**example.limits, "min_samples_leaf": 3})
    wider, _ = grow_known(narrower, ROWS, KnownTrees(), tuning=Tuning(shared_rows=10**6))
    follows = KnownTrees(known)
    n_first, n_second = (sum(map(len, follows.variants(least))) for least in (3, 20))
    assert n_first == sum(wants_another(tree, 3) for tree in trees)
    assert n_second == sum(wants_another(tree, 20) for tree in wider)
    assert np.all([n_first, n_second])
