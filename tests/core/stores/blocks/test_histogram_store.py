"""The node step on histograms: columns that are asked for, and trees that are grown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._histogram_store import drawn_columns, histogram_sizes
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, grow_parts, seeded
from tests.oracle.greedy import assert_tree_is_greedy


def dataset_of(**limits):
    example = seeded("gini", 3, "none", n_rows=30, **limits)
    return Dataset(coded(example.table), example.target, example.rules)


@given(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(1, 12))
def test_draws_are_a_permutation_that_may_be_asked_for_in_parts(path, first, count):
    dataset = dataset_of(max_features=2, seed=5)
    n = len(histogram_sizes(dataset))
    whole = drawn_columns(dataset, path, 0, n).tolist()
    assert sorted(whole) == list(range(n))
    assert drawn_columns(dataset, path, first, count).tolist() == whole[first : first + count]


def test_columns_in_their_order_where_none_is_drawn():
    dataset = dataset_of()
    n = len(histogram_sizes(dataset))
    assert drawn_columns(dataset, 7, 0, 99).tolist() == list(range(n))


def test_histograms_have_a_cell_for_every_code_and_for_missing_values():
    example = seeded("gini", 3, "none", n_rows=30)
    matrix = coded(example.table)
    sizes = histogram_sizes(Dataset(matrix, example.target, example.rules))
    n_cells = np.array(matrix.n_codes) + 1
    assert len(set((sizes // n_cells).tolist())) == 1
    np.testing.assert_array_equal(sizes, n_cells * (sizes // n_cells))


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
