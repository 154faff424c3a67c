"""What stands of a tree under narrower limits: all of it, a part, nothing."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.known import KnownTrees
from tests.laws.tables import SEVEN_WAYS, Example, seeded
from tests.laws.test_known_trees import check_rules, grow_known
from tests.laws.test_shared import folds

KINDS = ("ties", "distinct", "hybrid", "categories", "missing")
ROWS = folds(200, 4, 0)


def n_nodes(trees):
    return sum(tree.node_count for tree in trees)


@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_of_equal_limits_nothing_is_searched(case, shared_rows):
    example = seeded(*case, kinds=KINDS, n_rows=200, min_samples_leaf=2)
    how = {"tuning": Tuning(shared_rows=shared_rows)}
    known = KnownTrees()
    grow_known(example, ROWS, known, **how)
    trees, work = grow_known(example, ROWS, KnownTrees(known), **how)
    assert work["known_nodes"] == n_nodes(trees) > 0
    assert work["shared_nodes"] == 0


@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_of_larger_leaves_a_part_is(case, shared_rows):
    example = seeded(*case, kinds=KINDS, n_rows=200)
    how = {"tuning": Tuning(shared_rows=shared_rows)}
    known = KnownTrees()
    grow_known(example, ROWS, known, **how)
    narrower = replace(example, limits={**example.limits, "min_samples_leaf": 5})
    trees, work = grow_known(narrower, ROWS, KnownTrees(known), **how)
    assert 0 < work["known_nodes"] < n_nodes(trees)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ({"max_depth": 2}, {"max_depth": 4}),
        ({"min_samples_split": 40}, {}),
        ({"min_impurity_decrease": 0.02}, {}),
        ({}, {"max_depth": 2}),
        ({}, {"min_samples_split": 60}),
        ({}, {"min_impurity_decrease": 0.01}),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_other_limits_may_be_wider_or_narrower(case, wider, narrower):
    """A leaf that was cut off is searched; one that is now is not."""
    example = seeded(*case, kinds=KINDS, n_rows=200)
    leaves = [(1, 0.0), (4, 0.0)]
    check_rules(example, ROWS, leaves, [wider, narrower], tuning=Tuning(shared_rows=0))


def test_the_best_of_fewer_splits_may_gain_more_where_categories_pay():
    """The order of splits has the penalty, the gain has not: the best split of leaves of one row
    gains too little, and that of larger leaves, of many categories, does not."""
    n, found = 60, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n)
        names = [f"c{k}" for k in rng.integers(0, 16, n)]
        number = [float(k) for k in rng.integers(0, 30, n)]
        limits = {"category_penalty": 0.4, "min_impurity_decrease": 0.03}
        example = Example([names, number], y, None, "gini", limits)
        found += check_rules(example, folds(n, 3, seed), [(1, 0.0), (6, 0.0)], [{}, {}])
    assert found > 0
