"""Summaries merge: the codebook does not know how the rows were cut into chunks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.ordered import CutRules
from dtrees.coding.sampling import bottom, quantile_codes, row_hashes
from dtrees.coding.summaries import CategorySummary, OrderedSummary, TableSummary
from dtrees.coding.tables import read_table


def summaries(values, bounds, **options):
    return [
        OrderedSummary.of(values[a:b], first_row=a, **options)
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
        merged = merged.merge(part)
    low, high, exact = merged.codes() if (~np.isnan(values)).any() else ([], [], True)
    book, coded = CodeBook.fit_encode(
        values[:, None],
        max_bins=options["cap"],
        sample_rows=options["sample_rows"],
        seed=seed,
    )
    assert np.array_equal(book.low, low)
    assert np.array_equal(book.high, high)
    assert book.exact[0] == exact
    assert merged.n_rows == n
    assert merged.n_missing == np.isnan(values).sum()
    if not exact:
        cuts = np.searchsorted(high[:-1], values) + 1
        assert np.array_equal(coded.column(0), np.where(np.isnan(values), 0, cuts))


def test_sample_is_keyed_by_row_and_seed():
    whole = row_hashes(0, 1000, seed=3)
    assert np.array_equal(row_hashes(400, 100, seed=3), whole[400:500])
    assert not np.array_equal(row_hashes(0, 1000, seed=4), whole)


@pytest.mark.parametrize(("n", "k"), [(10, 20), (1000, 1), (1000, 300), (100_000, 20_000)])
def test_bottom_takes_the_smallest(n, k):
    hashes = row_hashes(0, n, seed=1)
    wanted = np.sort(np.argsort(hashes)[:k])
    assert np.array_equal(bottom(hashes, k), wanted)
    assert np.array_equal(bottom(np.full(50, 7, dtype=np.uint64), 3), np.arange(50))
    low = hashes >> np.uint64(40)  # the guess of the bound fails
    assert np.array_equal(np.sort(low[bottom(low, k)])[:k], np.sort(low)[:k])


def test_quantiles_of_a_uniform_column_are_even():
    values = np.arange(1000, dtype=float)
    low, high = quantile_codes(values, 10)
    assert high.tolist() == [99, 199, 299, 399, 499, 599, 699, 799, 899, 999]
    assert low.tolist() == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]


@given(
    st.lists(st.integers(-4, 4).map(float), max_size=30),
    st.integers(0, 30),
    st.integers(2, 12),
)
def test_zeros_beside_the_values_are_values(values, n_zeros, max_bins):
    stored = np.sort(np.array(values, dtype=float)) + 0.0
    everything = np.sort(np.concatenate([stored, np.zeros(n_zeros)]))
    if len(everything) == 0:
        return
    alone = quantile_codes(everything, max_bins)
    beside = quantile_codes(stored, max_bins, n_zeros)
    assert np.array_equal(alone[0], beside[0])
    assert np.array_equal(alone[1], beside[1])


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


def test_categories_and_tables_merge():
    a = CategorySummary({"x": 2, "y": 1}, 4, 1)
    b = CategorySummary({"y": 5, "z": 1}, 6, 0)
    assert a.merge(b).counts == {"x": 2, "y": 6, "z": 1}
    assert a.merge(b).n_rows == 10
