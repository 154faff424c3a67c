"""Summaries of sparse tables merge to that of the whole."""

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from dtrees.coding.sampling import CutRules, hash_bound
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import read_table
from tests.coding.examples import sparse_table

BOOK = ("n_codes", "offsets", "low", "high", "exact")


def merged(X, cuts, rules, bound=None):
    parts = [
        TableSummary.of(read_table(sp.csc_array(X[a:b])), rules=rules, first_row=a, bound=bound)
        for a, b in zip([0, *cuts], [*cuts, len(X)], strict=True)
    ]
    return TableSummary.merge_all(parts[::-1])


@pytest.mark.parametrize("options", [{}, {"max_bins": 12}, {"max_bins": 12, "sample_rows": 150}])
@pytest.mark.parametrize("density", [0.05, 0.7])
def test_the_book_is_that_of_the_whole(density, options):
    X = sparse_table(600, 9, density, seed=8)
    book, _ = CodeBook.fit_encode(sp.csc_array(X), **options)
    found = CodeBook.from_summary(merged(X, [1, 200, 450], CutRules(**options)))
    for name in BOOK:
        assert np.array_equal(getattr(found, name), getattr(book, name)), name


def test_too_few_rows_below_the_bound_are_noticed():
    X = sparse_table(600, 9, 0.9, seed=9)
    rules = CutRules(max_bins=5, sample_rows=50)
    enough = merged(X, [300], rules, hash_bound(50, len(X)))
    assert enough.has_enough
    X[: len(X) - 60, 0] = np.nan
    assert not merged(X, [300], rules, hash_bound(50, len(X))).has_enough
    assert merged(X, [300], rules).has_enough


def test_columns_of_too_many_values_and_infinities_are_told():
    X = sparse_table(300, 3, 0.9, seed=10)
    X[7, 1] = np.inf
    summary = merged(X, [100], CutRules(max_bins=4))
    assert summary.infinite.tolist() == [False, True, False]
    assert summary.sparse.has_too_many[[0, 2]].all()
