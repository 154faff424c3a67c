"""A node is split if that gains enough, and otherwise stays as it is."""

import numpy as np
import pytest

from dtrees.core.model.tree import LEAF
from tests.laws.tables import SEVEN_WAYS, fit, seeded
from tests.oracle.greedy import assert_tree_is_greedy
from tests.oracle.tree import EPSILON

WAYS = [{}, {"max_features": 6, "seed": 1}]  # by entries, by rows


@pytest.mark.parametrize("limits", WAYS, ids=["entries", "rows"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_a_least_decrease_ends_growth_where_it_is_not_met(case, limits):
    """It is a share of the weight of the root."""
    example = seeded(*case, n_rows=80, **limits)
    full = fit(example)
    total = full.weighted_n_node_samples[0]
    gains = full.gain[full.test != LEAF] / total
    least = float(np.quantile(gains, 0.6))
    tree = fit(type(example)(
        example.table, example.y, example.weight, example.criterion,
        {**limits, "min_impurity_decrease": least},
    ))  # fmt: skip
    assert 1 < tree.node_count < full.node_count
    assert (tree.gain[tree.test != LEAF] / total >= least * (1 - 1e-12) - EPSILON).all()
    at = {0: 0}  # nodes of the full tree
    for node in range(tree.node_count):
        twin = at[node]
        assert tree.n_node_samples[node] == full.n_node_samples[twin]
        if tree.test[node] == LEAF:
            assert (
                full.test[twin] == LEAF or full.gain[twin] / total < least * (1 + 1e-12) + EPSILON
            )
            continue
        assert tree.feature[node] == full.feature[twin]
        at[int(tree.children_left[node])] = int(full.children_left[twin])
        at[int(tree.children_right[node])] = int(full.children_right[twin])


@pytest.mark.one_of(3)
@pytest.mark.parametrize("least", [0.0, 0.02, 0.3])
def test_with_the_slow_tree(least):
    example = seeded("gini", 3, "integers", n_rows=50, min_impurity_decrease=least)
    tree = fit(example)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)
