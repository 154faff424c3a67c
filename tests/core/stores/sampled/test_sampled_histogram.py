"""Drawn columns by histogram: cells of every size and kind, and codes that most rows hold."""

import numpy as np
import pytest

from tests.core.walk import assert_drawn_tree_is_greedy
from tests.laws.tables import SEVEN_WAYS, Example, arrays_of, coded, fit, grow_tree, seeded

LIMITS = {"max_features": 2, "seed": 9}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["ties", "counts", "mostly", "mostly a category", "hybrid"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_cells_hold_the_sums_of_their_rows(case, kind):
    example = seeded(
        *case, kinds=(kind, "ties", kind, "categories"), n_rows=60, **LIMITS, max_depth=3
    )
    assert_drawn_tree_is_greedy(fit(example), example)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_many_rows_and_few_codes(case):
    example = seeded(*case, kinds=("ties", "counts", "mostly", "hybrid"), n_rows=3000, **LIMITS)
    limited = Example(
        example.table, example.y, example.weight, example.criterion, {**LIMITS, "max_depth": 6}
    )
    tree = fit(limited)
    assert arrays_of(tree) == arrays_of(grow_tree(limited, coded(limited.table, 300)))
    assert arrays_of(tree) == arrays_of(fit(limited, n_threads=2))


@pytest.mark.parametrize("common", [0, 3, 6])
def test_a_common_code_has_what_the_others_leave(common):
    """Wherever it stands among the codes, in a node in which it still is the most common one."""
    rng = np.random.default_rng(common)
    column = np.where(rng.random(400) < 0.06, rng.integers(0, 7, 400), common)
    other = rng.integers(0, 3, 400)
    y = (column > 3) + 2 * (other == 1) + (rng.random(400) < 0.05)
    table = [column.astype(float).tolist(), other.astype(float).tolist()]
    for criterion in ("gini", "squared_error"):
        target = y if criterion == "gini" else y * 1.5
        limits = {"max_features": 1, "seed": 0, "max_depth": 4}
        example = Example(table, target, None, criterion, limits)
        tree = fit(example)
        assert_drawn_tree_is_greedy(tree, example)
        assert arrays_of(tree) == arrays_of(fit(example, n_threads=2))


@pytest.mark.parametrize("largest", [None, 300], ids=["8 bits", "16 bits"])
def test_a_node_without_the_common_code(largest):
    """Which stands between two codes of the node, and is no neighbour of its threshold."""
    column = np.full(400, 3)
    column[:20] = [1, 2, 4, 5] * 5
    rare = (np.arange(400) < 20).astype(int)
    y = np.where(rare == 1, 1 + (column > 3), 0)
    table = [column.astype(float).tolist(), rare.astype(float).tolist()]
    for criterion in ("gini", "squared_error"):
        example = Example(table, y, None, criterion, {"max_features": 1, "seed": 1})
        tree = grow_tree(example, coded(table, largest))
        assert tree.feature.tolist() == [1, -2, 0, -2, -2]
        assert tree.threshold[2] == 3.0  # between 2 and 4
        assert arrays_of(tree) == arrays_of(fit(example, n_threads=2))


@pytest.mark.parametrize("largest", [1, 10**4, 10**9])
def test_sums_of_any_size(largest):
    """Cells are as narrow as the sums of a node allow."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 6, (3, 200)).astype(float).tolist()
    y = rng.integers(0, largest + 1, 200).astype(float)
    example = Example(table, y, None, "squared_error", {**LIMITS, "max_depth": 3})
    assert_drawn_tree_is_greedy(fit(example), example)
