"""Summaries merge: the codebook does not know how the rows were cut into chunks."""

import numpy as np
import pandas as pd
import pytest

from dtrees.coding import CodeBook
from dtrees.coding.sampling import CutRules
from dtrees.coding.summaries import CategorySummary, TableSummary
from dtrees.coding.tables import read_table


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
    merged = CategorySummary.merge_all([a, b])
    assert merged.counts == {"x": 2, "y": 6, "z": 1}
    assert merged.n_rows == 10
