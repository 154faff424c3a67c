"""Training sets that grow together: what they share, and the limits of each."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.membership.shares import Shares
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from tests.laws.tables import SEVEN_WAYS, Example, coded, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets, masks

TOGETHER = Tuning(shared_rows=0)
SHARES = [
    Shares(min_samples_split=0.2),
    Shares(min_samples_leaf=0.07),
    Shares(min_weight_leaf=0.05),
    Shares(min_samples_split=0.15, min_samples_leaf=0.04, min_weight_leaf=0.03),
]


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
