"""What is known of a node before it is split: impurity, and whether it stays a leaf."""

import numpy as np
import pytest

from dtrees.core.model.tree import LEAF
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, fit, seeded
from tests.oracle.criterion import RowStatistics
from tests.oracle.greedy import assert_tree_is_greedy

LIMITS = [
    {"max_depth": 0},
    {"max_depth": 2},
    {"min_samples_split": 30},
    {"min_samples_leaf": 12},
    {"min_weight_leaf": 9.25},
    {"max_depth": 4, "min_samples_split": 9, "min_samples_leaf": 3, "min_weight_leaf": 1.5},
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_every_leaf_is_one_for_a_reason(case, limits):
    example = seeded(*case, kinds=("ties", "distinct", "categories"), n_rows=60, **limits)
    tree = fit(example)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)
    statistics = RowStatistics(example.target, example.criterion)
    rows, depth = rows_of_nodes(tree, example), {0: 0}
    for node in range(tree.node_count):
        weight = float(statistics.sums(rows[node].tolist()).weight * statistics.weight_unit)
        assert len(rows[node]) >= limits.get("min_samples_leaf", 1)
        assert node == 0 or weight >= limits.get("min_weight_leaf", 0.0)
        if tree.test[node] != LEAF:
            assert len(rows[node]) >= limits.get("min_samples_split", 2)
            assert depth[node] < limits.get("max_depth", 99)
            assert not statistics.is_pure(rows[node].tolist())
            for children in (tree.children_left, tree.children_right):
                depth[int(children[node])] = depth[node] + 1


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_pure_nodes_have_no_impurity_at_all(criterion):
    """Not a rounding of it."""
    rng = np.random.default_rng(0)
    y = (
        rng.integers(0, 3, 90)
        if criterion in ("gini", "entropy")
        else rng.random(3)[rng.integers(0, 3, 90)]
    )
    weight = rng.random(90)
    example = seeded(criterion, 3, "none", kinds=("distinct",), n_rows=90)
    example = type(example)(example.table, y, weight, criterion)
    tree = fit(example)
    rows = rows_of_nodes(tree, example)
    is_pure = [len(set(y[rows[node]])) == 1 for node in range(tree.node_count)]
    assert sum(is_pure) > 10
    np.testing.assert_array_equal(tree.impurity == 0.0, is_pure)
