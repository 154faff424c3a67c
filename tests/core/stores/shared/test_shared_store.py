"""The search of a shared node: one pass over a column for all members, and a split for each."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.shared import LOGARITHMS, n_alone
from dtrees.core.membership.resampling import of_sets
from tests.laws.tables import SEVEN_WAYS, Example, coded, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets, masks
from tests.oracle.greedy import assert_tree_is_greedy

TOGETHER = Tuning(shared_rows=0)


@pytest.mark.parametrize("limits", [{}, {"max_features": 2, "seed": 3}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, limits):
    example = seeded(*case, n_rows=70, **limits)
    rows = folds(70, 3, 2)
    together = n_alone(coded(example.table), example.target, example.rules, of_sets(rows))
    assert case[0] in LOGARITHMS or together == (0, "")
    check_sets(example, rows, tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS[:4], ids=str)
def test_which_is_the_greedy_one(case):
    example = seeded(*case, kinds=("ties", "hybrid", "distinct"), n_rows=40, max_depth=3)
    rows = masks(40, 3, 5)
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    for mine, tree in zip(rows, trees, strict=True):
        target = example.target.only(mine)
        assert_tree_is_greedy(tree, example.table, target, example.rules)


def test_members_that_choose_one_column_and_other_thresholds_stay_together():
    """Each row whose side they disagree on goes to both children."""
    rng = np.random.default_rng(4)
    column = rng.normal(size=200)
    y = (column + rng.normal(size=200) > 0).astype(int)
    example = Example([column.tolist(), [1.0] * 200], y, None, "gini", {"min_samples_leaf": 5})
    rows = folds(200, 8, 0)
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    assert len({tree.threshold[0] for tree in trees}) > 1
    check_sets(example, rows, tuning=TOGETHER)
