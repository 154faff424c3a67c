"""The node step on presorted entries, and histograms that go down with a node."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    fit,
    grow_parts,
    grow_tree,
    seeded,
)
from tests.oracle.greedy import assert_tree_is_greedy

SORTED = Tuning(counted_rows=1 << 40)
N_COLUMNS = 300  # more than are searched in the order of their keys


def wide(n_values: int, n_classes: int = 2, **limits) -> Example:
    """Few rows and many columns, some of which are constant or copies of each other."""
    rng = np.random.default_rng(n_values)
    columns = rng.integers(0, n_values, (N_COLUMNS, 24)).astype(float)
    columns[::7] = 1.0
    columns[200:220] = columns[20:40]
    y = rng.integers(0, n_classes, 24)
    return Example([column.tolist() for column in columns], y, None, "gini", limits)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("random_ties", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_values", [2, 12])
def test_many_columns_of_few_rows(n_values, n_classes, random_ties):
    example = wide(n_values, n_classes, random_ties=random_ties, seed=5)
    tree = fit(example, tuning=SORTED)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)
    assert arrays_of(tree) == arrays_of(grow_tree(example, coded_sparse(example.table, 2)))
    assert arrays_of(tree) == arrays_of(fit(example, tuning=SORTED, n_threads=2))


def test_a_column_that_is_constant_on_one_side_is_searched_on_the_other():
    left = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    inner = [5.0, 5.0, 5.0, 5.0, 1.0, 2.0, 3.0, 4.0]
    example = Example([left, inner], np.array([0, 0, 0, 0, 1, 2, 1, 2]), None, "gini")
    tree = fit(example, tuning=SORTED)
    assert tree.feature.tolist()[:3] == [0, -2, 1]
    assert tree.n_leaves == 5
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("least", [2, 3, 7])
def test_columns_that_leave_no_side_for_a_leaf(least):
    """Runs in the middle, and few rows beside the value of most: passed over below, and there only
    (columns that may be divided yet have one row more on a side)."""
    rng = np.random.default_rng(least)
    n, columns = 120, []
    for more in (-1, 0, 1):
        for low, high in ((least + more, 30), (30, least + more), (least + more, least + more)):
            for lowest in (1.0, None):
                cells = [lowest] * low + [2.0] * (n - low - high) + [3.0] * high
                columns.append([cells[i] for i in rng.permutation(n)])
    y = rng.integers(0, 2, n)
    for criterion in ("gini", "entropy"):
        example = Example(columns, y, None, criterion, {"min_samples_leaf": least})
        tree = fit(example, tuning=SORTED)
        assert tree.node_count > 10
        assert_tree_is_greedy(tree, example.table, example.target, example.rules)
        sparse = grow_tree(example, coded_sparse(example.table, 2))
        assert arrays_of(tree) == arrays_of(sparse)


def test_no_column_varies():
    tree = fit(Example([[1.0] * 6, ["a"] * 6], np.arange(6) % 2, None, "gini"))
    assert tree.node_count == 1


COUNTED = Tuning(counted_rows=0)
FEW_CODES = ("ties", "counts", "mostly", "categories", "hybrid", "constant", "missing")


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_kept_ones_are_those_of_entries(case):
    """Eight rows for each cell keep the histogram with its node; below they are counted anew."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=900, min_samples_leaf=2)
    counted = fit(example, tuning=COUNTED)
    assert counted.node_count > 100
    assert arrays_of(counted) == arrays_of(fit(example, tuning=SORTED))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_no_boundary_is_better(case):
    example = seeded(*case, kinds=FEW_CODES, n_rows=60, max_depth=3)
    tree = fit(example, tuning=COUNTED)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("n_ways", [1, 2, 3])
def test_columns_of_many_codes_beside_counted_ones(n_ways):
    """Some columns have entries and some are counted, in blocks of one thread or of several."""
    example = seeded(
        "gini", 2, "none", kinds=("ties", "distinct", "counts", "distinct"), n_rows=500
    )
    wide = (coded(example.table, 300), example.target)
    found = grow_parts(
        example, [wide], tuning=Tuning(counted_rows=0, level_entries=0), n_threads=n_ways
    )
    assert arrays_of(found) == arrays_of(fit(example, tuning=SORTED))
    assert len(np.unique(found.feature)) > 3
