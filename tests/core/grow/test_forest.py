"""Trees of a forest: functions of the table, the rules, the seed and a number."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.grow.forest import ForestGrowth, units_of
from dtrees.core.membership.resampling import Bags, of_sets
from dtrees.core.model.pruning import PruningLimits
from tests.laws.tables import coded, grow_tree, seeded, thresholds_of
from tests.laws.test_growth import assert_equal
from tests.laws.test_shared import folds

EXAMPLE = seeded("gini", 3, "zeros", max_features=3, seed=2)
MATRIX = coded(EXAMPLE.table)
BAGS = Bags(6, 1.0, np.arange(EXAMPLE.n_rows, dtype=np.uint64))
ROWS = folds(EXAMPLE.n_rows, 4, 0)


def growth(**how):
    thresholds = thresholds_of(EXAMPLE.table)
    return replace(ForestGrowth(MATRIX, EXAMPLE.target, EXAMPLE.rules, BAGS, thresholds), **how)


def test_a_tree_depends_on_its_number_alone():
    forest = growth()
    first = [forest.tree(number) for number in (0, 1)]
    again = [growth().tree(number, n_threads=2) for number in (1, 0)]
    assert_equal(first[0], again[1])
    assert_equal(first[1], again[0])
    assert not first[0].equals(first[1])


def test_the_first_tree_without_bags_is_that_of_a_table():
    forest = growth(bags=None)
    assert_equal(forest.tree(0), grow_tree(EXAMPLE, MATRIX))
    assert forest.times(3).tolist() == [1] * EXAMPLE.n_rows


def test_limits_that_are_decided_afterwards():
    tree = growth().tree(0)
    found = growth(max_leaf_nodes=6, ccp_alpha=0.01).tree(0)
    assert_equal(found, PruningLimits(max_leaf_nodes=6, ccp_alpha=0.01).prune(tree))
    assert found.n_leaves <= 6


def test_sets_are_forests_of_their_rows():
    forest = growth()
    trees = forest.trees_of_sets(1, of_sets(ROWS))
    times = forest.times_of_sets(1, of_sets(ROWS))
    for rows, tree, own in zip(ROWS, trees, times, strict=True):
        alone = growth(target=EXAMPLE.target.only(rows))
        assert_equal(tree, alone.tree(1))
        np.testing.assert_array_equal(own, alone.times(1))


@pytest.mark.parametrize("n_bundles", [1, 2, 5])
@pytest.mark.parametrize("rows", [ROWS, np.ones_like(ROWS)], ids=["folds", "all rows"])
def test_units_have_every_tree_of_every_set_once(rows, n_bundles):
    units = units_of([3], len(rows), n_bundles)
    assert [k for unit in units for k in unit.sets] == list(range(len(rows)))
    found = [tree for unit in units for tree in growth().trees(unit, of_sets(rows))]
    for tree, other in zip(found, growth().trees_of_sets(3, of_sets(rows)), strict=True):
        assert_equal(tree, other)


def test_the_only_set_counts_rows_as_a_fit_does():
    unweighted = growth(target=replace(EXAMPLE.target, w=None))
    alone = unweighted.of_set(of_sets(ROWS[:1]), 0)
    assert alone.target.bagged(unweighted.times(0)).times is not None
    (unit,) = units_of([2])
    (tree,) = unweighted.trees(unit, of_sets(ROWS[:1]))
    assert_equal(tree, alone.tree(2))
    assert_equal(tree, unweighted.trees_of_sets(2, of_sets(ROWS))[0])


@pytest.mark.parametrize("n_rows", [100, 5_000])
def test_sets_without_a_row_in_a_bag(n_rows):
    number = np.arange(n_rows)
    sets = of_sets(np.stack([number < 30, number >= n_rows - 2, number % 2 == 0, number >= 0]))
    times = np.ones(n_rows, dtype=np.uint16)
    target = replace(EXAMPLE.target, w=None).take(np.zeros(n_rows, dtype=np.int64))
    forest = growth(target=target)
    for gone, expected in (([], []), ([n_rows - 1, n_rows - 2], [1]), (number[:30], [0])):
        times[gone] = 0
        assert np.flatnonzero(forest._without_a_row(sets, times)).tolist() == expected
        times[gone] = 1
