"""Summaries of a column merge: the codebook does not know how the rows were cut into chunks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.ordered_summary import OrderedSummary
from dtrees.coding.sampling import row_hashes


def summaries(values, bounds, cap, sample_rows, seed):
    hashes = row_hashes(0, len(values), seed)
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
