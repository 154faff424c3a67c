"""The node step on row lists: columns are drawn until one splits, and the best of them is taken."""

import numpy as np
import pytest

from tests.core.walk import assert_drawn_tree_is_greedy, drawn_columns
from tests.laws.tables import SEVEN_WAYS, Example, arrays_of, fit, seeded
from tests.oracle.ties import ROOT

KINDS = ("ties", "distinct", "mostly", "counts", "categories", "constant", "hybrid")


@pytest.mark.one_of(8)
@pytest.mark.parametrize("max_features", [1, 3, 6])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_best_of_the_drawn_columns(case, max_features):
    example = seeded(*case, kinds=KINDS, n_rows=50, max_features=max_features, seed=3, max_depth=5)
    tree = fit(example)
    assert tree.node_count > 9
    assert_drawn_tree_is_greedy(tree, example)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_threads_search_all_columns_of_entries_instead(case):
    example = seeded(*case, kinds=KINDS, n_rows=300, max_features=2, seed=1)
    assert arrays_of(fit(example)) == arrays_of(fit(example, n_threads=2))


def test_constant_columns_are_drawn_and_passed_over():
    """One column of forty varies; it is found wherever it stands in the order of the draws."""
    places = set()
    for seed in range(12):
        column = [float(i) for i in range(10)]
        table = [column if j == 23 else [7.0] * 10 for j in range(40)]
        limits = {"max_features": 1, "seed": seed, "max_depth": 1}
        example = Example(table, np.arange(10) % 2, None, "gini", limits)
        tree = fit(example)
        assert tree.feature[0] == 23
        places.add(drawn_columns(example, ROOT).index(23))
    assert len(places) > 5


def test_each_column_is_drawn_as_often():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (5, 40)).astype(float).tolist()
    y = rng.integers(0, 2, 40)
    first = [
        drawn_columns(Example(table, y, None, "gini", {"max_features": 2, "seed": seed}), ROOT)
        for seed in range(600)
    ]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in first)
    counts = np.bincount([order[0] for order in first], minlength=5)
    assert counts.min() > 80
    assert counts.max() < 160
