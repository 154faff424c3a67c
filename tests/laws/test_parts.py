"""A table coded part by part is the table coded whole."""

import itertools

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from dtrees.coding import CodeBook
from dtrees.coding.sampling import CutRules, hash_bound
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import read_table

LABELS = np.array([1, 2.5, "3", "x", "yy", None, np.nan, -0.0], dtype=object)
OF_BOOK = ("n_codes", "n_ordered", "offsets", "low", "high", "exact", "units")
OF_CODES = (
    "storage",
    "slot",
    "u8",
    "u16",
    "u32",
    "fill_code",
    "sparse_indptr",
    "sparse_rows",
    "sparse_codes",
)


def numbers(rng, n):
    values = np.round(rng.normal(size=n), rng.integers(0, 3))
    values[rng.random(n) < rng.choice([0, 0.3, 0.9])] = np.nan
    return values.astype(rng.choice(["f8", "f4", "f2"]))


COLUMNS = {
    "numbers": numbers,
    "whole": lambda rng, n: rng.integers(-99, 99, n).astype(rng.choice(["i1", "i2", "i8"])),
    "flags": lambda rng, n: rng.random(n) < 0.5,
    "objects": lambda rng, n: rng.choice(LABELS, n),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["p", "q", "r"], n)),
    "nullable": lambda rng, n: pd.array(rng.integers(0, 9, n), dtype="Int16"),
    "days": lambda rng, n: np.datetime64("2026-01-01") + rng.integers(0, 9, n),
}


def frame(rng, n):
    kinds = rng.choice(list(COLUMNS), rng.integers(1, 5))
    return pd.DataFrame({f"{j}": COLUMNS[kind](rng, n) for j, kind in enumerate(kinds)})


def sparse(rng, n):
    shape = n, int(rng.integers(1, 6))
    X = np.round(rng.normal(size=shape), rng.integers(0, 3))
    X *= rng.random(shape) < rng.choice([0, 0.2, 0.6, 1], shape[1])
    X[rng.random(shape) < rng.choice([0, 0.1, 0.7])] = np.nan
    table = sp.csr_array(X)
    table.data[rng.random(table.nnz) < rng.choice([0, 0.2])] = 0  # that are stored
    return table.astype(rng.choice(["f4", "f8"]))


@given(st.data())
def test_any_parts(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    n = data.draw(st.integers(1, 150))
    table = data.draw(st.sampled_from([frame, sparse]))(rng, n)
    ends = [0, *sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=5)) if n > 1 else ()), n]
    rules = CutRules(
        max_bins=data.draw(st.sampled_from([None, 2, 5, 255])),
        sample_rows=data.draw(st.sampled_from([3, 10, 1000])),
        seed=data.draw(st.integers(0, 3)),
    )
    weights = rng.integers(1, 9, n) if data.draw(st.booleans()) else None
    book, coded = CodeBook.fit_encode(table, **vars(rules), weights=weights)
    parts = [read_table(table[a:b]) for a, b in itertools.pairwise(ends)]

    def summary(bound):
        found = [
            TableSummary.of(
                part,
                rules=rules,
                first_row=first,
                bound=bound,
                weights=None if weights is None else weights[first : first + part.n_rows],
            )
            for part, first in zip(parts, ends[:-1], strict=True)
        ]
        split = data.draw(st.integers(0, len(found) - 1))  # merged in any grouping
        groups = [group for group in (found[:split], found[split:]) if group]
        return TableSummary.merge_all([TableSummary.merge_all(group) for group in groups])

    merged = summary(hash_bound(rules.sample_rows, n))
    if not merged.has_enough:
        merged = summary(None)
    assert merged.has_enough
    if merged.sparse is None:  # the same by stretches of columns, whose samples have been read
        middle = data.draw(st.integers(0, len(merged.units)))
        ends_of_columns = (0, middle), (middle, len(merged.units))
        stretches = [merged.of_columns(*columns).settled() for columns in ends_of_columns]
        merged = TableSummary.beside(stretches)
        assert merged.has_enough
        assert sum(len(part.sample) for part in merged.ordered if part is not None) == 0
    found = CodeBook.from_summary(merged, feature_names=book.feature_names)
    for name in OF_BOOK:
        assert_array_equal(getattr(found, name), getattr(book, name), err_msg=name, strict=True)
    assert {j: labels.tolist() for j, labels in found.categories.items()} == {
        j: labels.tolist() for j, labels in book.categories.items()
    }
    codes = found.stack_parts([found.encode_part(part) for part in parts])
    if sp.issparse(table) and not found.n_codes.all():  # cells that are all missing are not stored
        for j in range(found.n_columns):
            assert_array_equal(codes.column(j), coded.column(j), strict=True)
        return
    for name in OF_CODES:
        assert_array_equal(getattr(codes, name), getattr(coded, name), err_msg=name, strict=True)
