"""The node step on histograms: columns that are asked for, and trees that are grown."""

import numpy as np
import pytest

from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._histogram_store import histogram_sizes
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, grow_parts, seeded
from tests.oracle.greedy import assert_tree_is_greedy


def test_histograms_have_a_cell_for_every_code_and_for_missing_values():
    example = seeded("gini", 3, "none", n_rows=30)
    matrix = coded(example.table)
    sizes = histogram_sizes(Dataset(matrix, example.target, example.rules))
    n_cells = np.array(matrix.n_codes) + 1
    assert len(set((sizes // n_cells).tolist())) == 1
    np.testing.assert_array_equal(sizes, n_cells * (sizes // n_cells))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_greedy_tree_from_histograms_of_blocks(case, sparse):
    kinds = ("ties", "hybrid", "categories", "distinct", "mostly")
    example = seeded(*case, kinds=kinds, n_rows=40, max_depth=3)
    matrix = coded_sparse(example.table, 2) if sparse else coded(example.table)
    blocks = np.split(np.arange(40), [11, 29])
    parts = [(matrix.take(rows), example.target.take(rows)) for rows in blocks]
    tree = grow_parts(example, parts, gather_rows=0)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)
