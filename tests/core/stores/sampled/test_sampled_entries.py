"""Drawn columns by sorted entries: sparse ones, many codes, and few rows."""

import numpy as np
import pytest

from tests.core.walk import assert_drawn_tree_is_greedy
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    arrays_of,
    coded,
    coded_sparse,
    fit,
    grow_tree,
    seeded,
)

KINDS = ("counts", "mostly", "distinct", "categories", "mostly a category", "hybrid", "ties")
LIMITS = {"max_features": 3, "seed": 7}


@pytest.mark.parametrize("storage", ["sparse", "16 bits", "32 bits"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_storage_does_not_matter(case, storage):
    example = seeded(*case, kinds=KINDS, n_rows=400, **LIMITS)
    matrix = {
        "sparse": lambda: coded_sparse(example.table, 5),
        "16 bits": lambda: coded(example.table, 300),
        "32 bits": lambda: coded(example.table, 70_000),
    }[storage]()
    expected = fit(example)
    assert expected.node_count > 40
    assert arrays_of(grow_tree(example, matrix)) == arrays_of(expected)


@pytest.mark.parametrize("n_rows", [2, 15, 16, 17, 60])
def test_few_rows_of_sparse_columns(n_rows):
    """Rows are found by their places or by search; columns without any are not looked at."""
    rng = np.random.default_rng(n_rows)
    cells = np.where(rng.random((30, n_rows)) < 0.15, rng.integers(1, 4, (30, n_rows)), 0)
    table = cells.astype(float).tolist()
    y = rng.integers(0, 2, n_rows)
    y[:2] = 0, 1
    example = Example(table, y, None, "gini", {"max_features": 4, "seed": 1})
    tree = grow_tree(example, coded_sparse(table, n_rows))
    assert_drawn_tree_is_greedy(tree, example)
    assert arrays_of(tree) == arrays_of(fit(example))


def test_small_nodes_of_a_large_sparse_table():
    """A column has many more stored rows than the node: these are looked for one by one."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((8, 4000)) < 0.4, rng.integers(1, 6, (8, 4000)), 0).astype(float)
    cells[0] = np.arange(4000) < 20  # few rows part from the others at once
    y = np.where(cells[0] == 1, rng.integers(0, 2, 4000), 2)
    example = Example(cells.tolist(), y, None, "gini", {"max_features": 7, "seed": 2})
    tree = grow_tree(example, coded_sparse(example.table, 3))
    assert arrays_of(tree) == arrays_of(fit(example))
    assert (tree.impurity[tree.test == 0] == 0).all()
