"""Sparse columns of few codes are counted, with the same trees as from scans of their entries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded_sparse, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets, masks
from tests.oracle.greedy import assert_tree_is_greedy

TOGETHER = Tuning(shared_rows=0)
FEW_CODES = ("counts", "mostly", "ties", "categories", "hybrid", "mostly a category", "missing")
few = settings(max_examples=max(12, settings.default.max_examples // 5))


@pytest.mark.parametrize("n_rows", [60, 900])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, n_rows):
    """Of 60 rows the entries are cheaper, of 900 the histograms."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=n_rows, max_depth=4)
    matrix = coded_sparse(example.table, n_rows)
    check_sets(example, folds(n_rows, 5, 0), matrix, tuning=TOGETHER)


@few
@given(st.sampled_from(SEVEN_WAYS), st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_any_sets_and_fill_codes(case, seed, n_sets):
    """Where sets overlap, rows that only some have are counted by member."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=500, max_depth=4, min_samples_leaf=5)
    rows = masks(500, n_sets, seed) if seed % 2 else folds(500, n_sets, seed)
    check_sets(example, rows, coded_sparse(example.table, seed), tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS[:2], ids=str)
def test_which_is_the_greedy_one(case):
    example = seeded(*case, kinds=("ties", "hybrid", "counts"), n_rows=300, max_depth=2)
    rows = folds(300, 3, 5)
    trees = grow_sets(example, coded_sparse(example.table, 5), rows, tuning=TOGETHER).trees
    for mine, tree in zip(rows, trees, strict=True):
        assert_tree_is_greedy(tree, example.table, example.target.only(mine), example.rules)
