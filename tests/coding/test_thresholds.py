"""Thresholds between neighbouring codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.coding.codebook import midpoints
from tests.coding.examples import fit

rng = np.random.default_rng(4)


def naive_threshold(book, column, left, right):
    """The threshold and last left code of one pair of codes, in plain Python."""
    low = book.low[book.offsets[column] : book.offsets[column + 1]].astype(float)
    high = book.high[book.offsets[column] : book.offsets[column + 1]].astype(float)
    below, above = high[left - 1], low[right - 1]
    middle = below / 2 + above / 2
    if not middle < above:
        middle = below
    if book.exact[column]:
        return middle, max(c for c in range(left, right) if low[c - 1] <= middle)
    cuts = {c: abs(high[c - 1] - middle) for c in range(left, right)}
    code = min(cuts, key=lambda c: (cuts[c], c))
    return high[code - 1], code


floats = st.floats(allow_infinity=False, allow_nan=False)


@settings(max_examples=max(100, settings.default.max_examples))
@given(
    st.lists(floats, min_size=2, max_size=40, unique=True), st.sampled_from([None, 5]), st.data()
)
def test_thresholds(values, max_bins, data):
    book, coded = fit(np.array(values)[:, None], max_bins=max_bins)
    n = int(book.n_codes[0])
    if n < 2:
        return
    left = data.draw(st.integers(1, n - 1))
    right = data.draw(st.integers(left + 1, n))
    (threshold,), (code,) = book.thresholds([0], [left], [right])
    if book.exact[0]:
        assert (threshold, code) == naive_threshold(book, 0, left, right)
    else:
        # next to huge values distances are rounded: any of the nearest will do
        middle = midpoints(book.high[left - 1], book.low[right - 1])
        distance = np.abs(book.high / 2 - middle / 2)
        assert threshold == book.high[code - 1]
        assert left <= code < right
        assert distance[code - 1] == distance[left - 1 : right - 1].min()
    assert np.isfinite(threshold)
    x, codes = np.array(values), coded.column(0)
    # rows of the node lie on the right sides of it, by value and by code
    assert (x[codes <= left] <= threshold).all()
    assert (x[codes >= right] > threshold).all()
    if book.exact[0]:
        assert np.array_equal(codes <= code, x <= threshold)


def test_thresholds_of_many_columns_at_once():
    X = rng.normal(size=(300, 6)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    for options in ({}, {"max_bins": 16}):
        book, _ = fit(X, **options)
        column = rng.integers(0, 6, 200)
        n = book.n_codes[column]
        left = 1 + (rng.random(200) * (n - 1)).astype(int)
        right = left + 1 + (rng.random(200) * (n - left)).astype(int)
        threshold, code = book.thresholds(column, left, right)
        assert threshold.dtype == np.float64
        assert code.dtype == np.uint32
        pairs = [naive_threshold(book, *t) for t in zip(column, left, right, strict=True)]
        assert list(zip(threshold.tolist(), code.tolist(), strict=True)) == pairs


@pytest.mark.one_of(2)
@pytest.mark.parametrize("max_bins", [None, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_thresholds_of_a_column_of_many_values(dtype, max_bins):
    """Some are found by blocks of values, those of a column with few of them are not."""
    X = rng.normal(size=(3000, 3)).astype(dtype)
    book, _ = fit(X, max_bins=max_bins)
    n_codes = int(book.n_codes.min())
    column = rng.choice(3, 1000, p=[0.7, 0.29, 0.01])
    left = rng.integers(1, n_codes, 1000)
    right = rng.integers(left + 1, n_codes + 1)
    threshold, code = book.thresholds(column, left, right)
    pairs = [naive_threshold(book, *t) for t in zip(column, left, right, strict=True)]
    assert list(zip(threshold.tolist(), code.tolist(), strict=True)) == pairs
    # random cuts: each one alone is looked for without blocks
    fractions = rng.random(1000)
    threshold, code = book.thresholds(column, left, right, fractions)
    for i in range(0, 1000, 7):
        own = [np.array([each[i]]) for each in (column, left, right, fractions)]
        assert book.thresholds(*own) == (threshold[i], code[i])


def test_no_threshold_and_one_above_all():
    book, _ = fit(np.array([[1.0, 5.0], [2.0, 6.0], [4.0, 6.0]]))
    threshold, code = book.thresholds([-2, 0, 1, 0], [0, 3, 2, 1], [0, 0, 0, 3])
    np.testing.assert_array_equal(threshold, [np.nan, np.inf, np.inf, 2.5])
    assert code.tolist() == [0, 3, 2, 2]
