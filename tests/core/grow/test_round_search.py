"""Nodes whose rows are elsewhere: described from sums, searched in histograms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._round_search import RoundSearch, child_path
from dtrees.core.stores._dataset import Dataset
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, grow_parts, seeded
from tests.oracle.greedy import assert_tree_is_greedy
from tests.oracle.ties import child


def search_of(**limits):
    example = seeded("gini", 3, "none", n_rows=30, **limits)
    matrix = coded(example.table)
    return matrix, RoundSearch(Dataset(matrix, example.target, example.rules))


@given(st.integers(0, 2**64 - 1), st.booleans())
def test_keys_of_children(path, is_left):
    assert child_path(path, is_left) == child(path, is_left)


@given(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(1, 12))
def test_draws_are_a_permutation_that_may_be_asked_for_in_parts(path, first, count):
    matrix, search = search_of(max_features=2, seed=5)
    n = matrix.n_columns
    whole = search.columns_at(path, 0, n).tolist()
    assert sorted(whole) == list(range(n))
    assert search.columns_at(path, first, count).tolist() == whole[first : first + count]


def test_columns_in_their_order_where_none_is_drawn():
    matrix, search = search_of()
    assert search.columns_at(7, 0, 99).tolist() == list(range(matrix.n_columns))


def test_histograms_have_a_cell_for_every_code_and_for_missing_values():
    matrix, search = search_of()
    n_cells = np.array(matrix.n_codes) + 1
    n_words = search.histogram_sizes() // n_cells
    assert len(set(n_words.tolist())) == 1
    np.testing.assert_array_equal(search.histogram_sizes(), n_cells * n_words)


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
