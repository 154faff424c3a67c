"""The split of a node: the largest gain in the user's units, and by rule among equal ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.tables import SEVEN_WAYS, Example, coded, coded_sparse, fit, grow_tree, seeded
from tests.oracle.greedy import assert_tree_is_greedy
from tests.oracle.ties import ROOT, order_of_columns


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("random_ties", [False, True])
def test_the_greedy_tree(case, random_ties):
    example = seeded(*case, n_rows=36, max_depth=3, random_ties=random_ties, seed=4)
    for matrix in (coded(example.table), coded_sparse(example.table, 3)):
        tree = grow_tree(example, matrix)
        assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("unit", [2.0**-20, 0.3, 1e6])
def test_gains_are_in_the_users_units(criterion, unit):
    """Weight of the node times the decrease of its impurity; weights in any unit."""
    rng = np.random.default_rng(1)
    classes = criterion in ("gini", "entropy")
    y = rng.integers(0, 3, 80) if classes else rng.gamma(2.0, size=80)
    weight = rng.integers(1, 5, 80) * unit
    table = [rng.normal(size=80).tolist(), rng.integers(0, 4, 80).astype(float).tolist()]
    tree = fit(Example(table, y, weight, criterion, {"max_depth": 3}))
    of_node = tree.weighted_n_node_samples * tree.impurity
    for node in np.flatnonzero(tree.test):
        left, right = tree.children_left[node], tree.children_right[node]
        expected = of_node[node] - of_node[left] - of_node[right]
        assert tree.gain[node] == pytest.approx(expected, rel=1e-7, abs=1e-9 * of_node[0])


@settings(max_examples=max(20, settings.default.max_examples // 10))
@given(st.integers(0, 2**32 - 1), st.integers(0, 99), st.booleans())
def test_which_of_equal_columns_wins(seed, tree_number, random_ties):
    """The lowest, or that with the largest key; copies stand anywhere among the columns."""
    rng = np.random.default_rng(seed)
    column = rng.integers(0, 4, 30).astype(float).tolist()
    copies = sorted(rng.choice(7, 3, replace=False).tolist())
    table = [column if j in copies else [1.0] * 30 for j in range(7)]
    limits = {"random_ties": random_ties, "seed": seed % 1000, "tree": tree_number, "max_depth": 1}
    example = Example(table, rng.integers(0, 2, 30), None, "gini", limits)
    tree = fit(example)
    expected = min(copies, key=order_of_columns(example.rules, ROOT))
    assert tree.feature[0] in (expected, -2)
