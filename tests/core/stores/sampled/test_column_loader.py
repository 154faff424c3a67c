"""What the rows of a node add to a sum: classes, weights and targets of drawn columns."""

import numpy as np
import pytest

import dtrees
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Bags
from tests.core.walk import assert_drawn_tree_is_greedy
from tests.laws.tables import Example, arrays_of, coded, fit, grow_tree, thresholds_of
from tests.pairs import parametrize_pairs
from tests.registers import wide_registers

LIMITS = {"max_features": 2, "seed": 4}


def table(n_rows, n_columns=5):
    return np.random.default_rng(n_rows).integers(0, 9, (n_columns, n_rows)).astype(float).tolist()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_classes", [2, 3, 30, 70])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_numbered_anew_in_each_node(n_classes, weighted):
    """A node holds some of many classes only."""
    rng = np.random.default_rng(n_classes)
    columns = table(160)
    y = np.array([int(v) * n_classes // 9 for v in columns[0]])
    y = np.where(rng.random(160) < 0.2, rng.integers(0, n_classes, 160), y)
    weight = rng.integers(0, 3, 160) / 2 if weighted else None
    example = Example(columns, y, weight, "gini", {**LIMITS, "max_depth": 3})
    assert_drawn_tree_is_greedy(fit(example), example)


@pytest.mark.parametrize("n_rows", [3, 40, 300])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_rows_of_a_bag_count_as_often_as_they_are_in_it(kind, n_rows):
    """Small weights are packed beside the class of a row; a bag is the same as weights."""
    columns, rng = table(n_rows), np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows) if kind == "classes" else rng.integers(-9, 9, n_rows) * 1.0
    criterion = "gini" if kind == "classes" else "squared_error"
    make = Target.classification if kind == "classes" else Target.regression
    times = Bags(3, 1.0, np.arange(n_rows, dtype=np.uint64)).multiplicity(0)
    rules = GrowthRules(criterion=criterion, **LIMITS)
    bags = Bags(3, 1.0, np.arange(n_rows, dtype=np.uint64))
    matrix = coded(columns)
    growth = ForestGrowth(matrix, make(y, spare_bits=5), rules, bags, thresholds_of(columns))
    tree = growth.tree(0)
    example = Example(columns, y, times.astype(float), criterion, LIMITS)
    alone = grow_tree(example, matrix)
    for name in ("feature", "code", "n_node_samples", "weighted_n_node_samples"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(alone, name))


def test_memory_serves_the_next_tree_whatever_it_is_of():
    """Trees of other sizes and kinds between two of one growth change nothing."""
    columns = table(200)
    matrix, y = coded(columns), np.random.default_rng(1).integers(0, 3, 200)
    rules = GrowthRules(criterion="gini", **LIMITS)
    bags = Bags(3, 0.7, np.arange(200, dtype=np.uint64))
    growth = ForestGrowth(
        matrix, Target.classification(y, spare_bits=5), rules, bags, thresholds_of(columns)
    )
    expected = [arrays_of(growth.tree(number)) for number in range(4)]
    assert len({tree["feature"] for tree in expected}) == 4
    assert [arrays_of(growth.tree(number)) for number in (3, 1, 0, 2)] == [
        expected[number] for number in (3, 1, 0, 2)
    ]


WORK = {
    "numbers of 32 bits": (70_000, None, "Classifier"),
    "with values": (70_000, None, "Regressor"),
}


@pytest.mark.one_of(2)
@parametrize_pairs(work=WORK, forest=["RandomForest", "ExtraTrees"], missing=[0.2])
def test_wide_and_plain_loops_grow_the_same_trees(work, forest, missing):
    n_rows, max_bins, kind = WORK[work]
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 9))
    X[:, 7] = rng.integers(0, 4, n_rows)
    y = X[:, 0] + X[:, 7] + rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    y = y > 1 if kind == "Classifier" else y
    forest = getattr(dtrees, forest + kind)(
        3, max_bins=max_bins, max_features=3, random_state=0, bootstrap=True
    )
    found = []
    for wide in (True, False):
        with wide_registers(wide):
            found.append(forest.fit(X, y).forest_.trees)
    assert found[0][0].node_count > 300
    for a, b in zip(*found, strict=True):
        assert a.equals(b)
