"""The split of a node: the largest gain, by rule among equal ones, and where a search may end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.search._criterion import xlogx_table
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    cut_in_parts,
    fit,
    grow_parts,
    grow_tree,
    seeded,
)
from tests.oracle.greedy import assert_tree_is_greedy
from tests.oracle.ties import ROOT, order_of_columns


@pytest.mark.one_of(8)
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


TUNINGS = [Tuning(), Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)]


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tuning", TUNINGS, ids=["default", "counted", "sorted"])
def test_the_first_of_perfect_columns_is_taken(criterion, n_classes, tuning):
    """Wherever it stands, however many codes it has, and whatever is searched first."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 200)
    y = np.where(y == 0, 0, 1) if n_classes == 2 else y
    is_right = y > 0
    few = is_right.astype(float)
    many = np.where(is_right, 500.0, 0.0) + rng.permutation(200)
    noise = rng.integers(0, 9, 200).astype(float)
    for columns, first in (
        ([noise, many, few], 1),
        ([noise, few, many], 1),
        ([noise, noise, few, many, few], 2),
    ):
        table = [column.tolist() for column in columns]
        example = Example(table, y, None, criterion, {"max_depth": 1})
        tree = fit(example, tuning=tuning)
        assert tree.feature[0] == first
        if n_classes == 2:
            assert tree.impurity[1:].tolist() == [0.0, 0.0]
        assert arrays_of(grow_tree(example, coded_sparse(table, 0), None)) == arrays_of(tree)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("places", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
@pytest.mark.parametrize("tuning", TUNINGS, ids=["default", "counted", "sorted"])
def test_a_good_column_is_not_taken_for_a_perfect_one(criterion, tuning, places):
    """Two of three classes are left where the one is as good as perfect, and the other is."""
    y = np.repeat([0, 1, 2], [60, 80, 60])
    good = np.where(np.arange(200) == 7, 2 - y, y)
    columns = [good.astype(float), y.astype(float), np.where(y == 1, 9.0, 5.0)]
    for labels in (y, (y > 0).astype(int)):
        table = [columns[place].tolist() for place in places]
        example = Example(table, labels, None, criterion, {})
        tree = fit(example, tuning=tuning)
        assert_tree_is_greedy(tree, example.table, example.target, example.rules)
        assert (tree.impurity[tree.test == 0] == 0).all()
        assert places.index(0) not in tree.feature


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_ties_that_are_drawn_are_drawn_among_perfect_columns(criterion):
    y = np.arange(40) % 2
    table = [y.astype(float).tolist() for _ in range(6)]
    found = {
        int(fit(Example(table, y, None, criterion, {"random_ties": True, "seed": seed})).feature[0])
        for seed in range(60)
    }
    assert found == set(range(6))


def test_two_rows_of_a_regression():
    """Every split of two rows gains the same."""
    table = [[3.0, 3.0], [1.0, 2.0], [2.0, 1.0]]
    tree = fit(Example(table, np.array([1.0, 5.0]), None, "squared_error"))
    assert tree.feature.tolist() == [1, -2, -2]
    assert tree.gain[0] == pytest.approx(8.0)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("random_ties", [False, True])
@pytest.mark.parametrize("n", range(3, 12))
def test_few_rows_of_a_regression(n, random_ties):
    """Where columns behind the best one are passed over, and where rows are one too many for it."""
    rng = np.random.default_rng(n)
    for seed in range(6):
        y = rng.integers(0, 4, n).astype(float)
        table = [rng.permutation(n).astype(float).tolist() for _ in range(20)]
        table.append(y.tolist())
        limits = {"random_ties": random_ties, "seed": seed}
        example = Example(table, y, None, "squared_error", limits)
        tree = fit(example)
        in_rounds = grow_parts(example, cut_in_parts(example, n // 2), gather_rows=0)
        assert arrays_of(in_rounds) == arrays_of(tree)
        if not random_ties:
            assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("fixed_point", [1.0, 2.0, 2.0**17, 2.0**40])
def test_no_side_adds_to_an_entropy(fixed_point):
    """What a pure side adds, nothing, is the most: rounded, too, and of many rows."""
    table = np.array(xlogx_table(2**10, fixed_point))
    a, b = np.triu_indices(2**9, 1)
    assert (table[a] + table[b] <= table[a + b]).all()


def test_scores_of_more_weight_than_they_are_exact_for():
    """Above 131,072 rows no bound is known, and all columns are searched."""
    n = (1 << 17) + 2
    y = np.arange(n) % 2
    table = np.column_stack([np.where(np.arange(n) < 3, 1 - y, y), y]).astype(float)
    example = Example([column.tolist() for column in table.T], y, None, "gini", {"max_depth": 1})
    tree = grow_tree(example, coded(example.table))
    assert tree.feature[0] == 1
    assert tree.impurity[1:].tolist() == [0.0, 0.0]
