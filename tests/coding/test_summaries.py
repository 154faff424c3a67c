"""Summaries merge: the codebook does not know how the rows were cut into chunks."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.sampling import CutRules, hash_bound, sampled_rows
from dtrees.coding.summaries import OrderedSummary, TableSummary
from dtrees.coding.tables import read_table
from tests.coding.examples import sparse_table


def summaries(values, bounds, cap, sample_rows, seed):
    hashes = sampled_rows(CutRules(max_bins=cap, seed=seed), 0, len(values))[1]
    return [
        OrderedSummary.of(values[a:b] + 0.0, cap, sample_rows, np.arange(b - a), hashes[a:b])
        for a, b in zip([0, *bounds], [*bounds, len(values)], strict=True)
    ]


@given(st.data())
def test_chunks_in_any_order_give_the_codebook_of_the_whole(data):
    n = data.draw(st.integers(1, 400))
    seed = data.draw(st.integers(0, 5))
    r = np.random.default_rng(seed)
    values = np.round(r.normal(size=n), data.draw(st.integers(0, 4)))
    values[r.random(n) < data.draw(st.sampled_from([0.0, 0.5, 0.95]))] = np.nan
    bounds = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    options = {
        "cap": data.draw(st.sampled_from([2, 10, 255])),
        "sample_rows": data.draw(st.sampled_from([5, 50, 1000])),
        "seed": seed,
    }
    parts = data.draw(st.permutations(summaries(values, bounds, **options)))
    merged = parts[0]
    for part in parts[1:]:
        merged = OrderedSummary.merge_all([merged, part])
    low, high, exact = merged.codes() if (~np.isnan(values)).any() else ([], [], True)
    book, coded = CodeBook.fit_encode(
        values[:, None], max_bins=options["cap"], sample_rows=options["sample_rows"], seed=seed
    )
    assert np.array_equal(book.low, low)
    assert np.array_equal(book.high, high)
    assert book.exact[0] == exact
    assert merged.n_rows == n
    assert merged.n_missing == np.isnan(values).sum()
    if not exact:
        cuts = np.searchsorted(high[:-1], values) + 1
        assert np.array_equal(coded.column(0), np.where(np.isnan(values), 0, cuts))


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


@pytest.mark.parametrize("max_bins", [None, 16])
def test_codebook_of_merged_chunks_is_that_of_the_table(max_bins):
    r = np.random.default_rng(6)
    n = 300
    table = pd.DataFrame(
        {
            "x": np.where(r.random(n) < 0.2, np.nan, r.normal(size=n)),
            "i": r.integers(0, 9, n),
            "h": r.choice(np.array(["1", 2, "3.5", "u", "v", None], dtype=object), n),
            "c": pd.Categorical(r.choice(["p", "q", "r"], n)),
            "s": r.choice([f"s{i}" for i in range(90)], n),
        }
    )
    options = {"max_bins": max_bins, "sample_rows": 100, "seed": 2}
    book, coded = CodeBook.fit_encode(table, **options)
    parts = []
    for a, b in ((200, 300), (0, 10), (10, 200)):
        rules = CutRules(**options)
        parts.append(TableSummary.of(read_table(table[a:b]), rules=rules, first_row=a))
    merged = CodeBook.from_summary(TableSummary.merge_all(parts), feature_names=book.feature_names)
    for name in ("n_codes", "n_ordered", "offsets", "low", "high", "exact"):
        assert np.array_equal(getattr(merged, name), getattr(book, name)), name
    assert {j: c.tolist() for j, c in merged.categories.items()} == {
        j: c.tolist() for j, c in book.categories.items()
    }
    again = merged.encode(table)
    for j in range(5):
        assert np.array_equal(again.column(j), coded.column(j))
