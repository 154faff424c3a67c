"""Distinct values, cuts and orders of columns against numpy, on every way through the kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dtrees.coding import CodeBook
from dtrees.coding._binning import STATUS_INFINITE, STATUS_TOO_MANY, cut_column, distinct_values
from tests.coding.examples import COLUMNS, N, assert_exact, expected

SIZES = [41, 1_023, 4_097, 70_000]  # insertion, 8 and 11 bits at a time, and an order of rows


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("leading", [0.0, 1e6, 1e15])
def test_against_a_stable_sort(n, dtype, leading):
    rng = np.random.default_rng(n)
    column = (leading + rng.normal(size=n) * (1 + leading / 1e6)).astype(dtype)
    distinct, codes = np.unique(column, return_inverse=True)
    book, coded = CodeBook.fit_encode(column[:, None])
    assert np.array_equal(book.low, distinct)
    assert np.array_equal(coded.column(0), codes + 1)
    if coded.order32 is not None:
        assert np.array_equal(coded.order32[:, 0], np.argsort(codes, kind="stable"))


def test_more_pairs_than_a_cache_holds():
    """They go to buckets first, of very different sizes."""
    column = np.exp(np.random.default_rng(0).normal(size=(1 << 19) + 1)).astype(np.float32)
    distinct, codes = np.unique(column, return_inverse=True)
    book, coded = CodeBook.fit_encode(column[:, None])
    assert np.array_equal(book.low, distinct)
    assert np.array_equal(coded.order32[:, 0], np.argsort(codes, kind="stable"))


rng = np.random.default_rng(0)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_shape_of_column_is_coded_exactly(name, missing):
    column = COLUMNS[name].astype(float)
    column[rng.random(N) < missing] = np.nan
    X = column[:, None]
    assert_exact(X, *CodeBook.fit_encode(X))


floats = st.one_of(
    st.floats(allow_infinity=False),
    st.floats(allow_infinity=False, width=32),
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, -0.0, np.nan, 5e-324, -5e-324, 1.7976931348623157e308]),
)


@settings(max_examples=max(100, settings.default.max_examples))
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 80), st.integers(1, 3)), elements=floats))
def test_any_small_table(X):
    assert_exact(X, *CodeBook.fit_encode(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.5, -2e9, 1.9e9, np.nan])
@pytest.mark.parametrize("place", [0, 63, 64, 127, 128, 199])
def test_whole_numbers_and_one_other_value(dtype, value, place):
    X = rng.integers(-3, 40, (200, 2)).astype(dtype)
    X[place, 0] = value
    assert_exact(X, *CodeBook.fit_encode(X))


def test_big_integers_that_are_one_float_are_one_code():
    X = np.array([[2**53], [2**53 + 1], [2**53 + 2], [-(2**62)]])
    book, coded = CodeBook.fit_encode(X)
    assert book.n_codes[0] == 3
    assert coded.column(0).tolist() == [2, 2, 3, 1]
    U = np.array([[2**64 - 1], [0], [2**63]], dtype=np.uint64)
    assert CodeBook.fit_encode(U)[1].column(0).tolist() == [3, 1, 2]


@pytest.mark.parametrize(("n", "storage"), [(255, 0), (256, 1), (65_535, 1), (65_536, 2)])
def test_width_follows_the_number_of_codes(n, storage):
    X = rng.permutation(n)[:, None] * 0.1
    book, coded = CodeBook.fit_encode(X)
    assert_exact(X, book, coded)
    assert coded.storage[0] == storage


def test_wide_codes_and_their_order():
    n = 70_000
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 3, n), rng.permutation(n), rng.permutation(n) * 0.37]
    )
    X[:5, 0] = np.nan
    book, coded = CodeBook.fit_encode(X)
    assert_exact(X, book, coded)
    assert coded.storage.tolist() == [2, 0, 2, 2]
    assert coded.slot.tolist() == [0, 0, 1, 2]
    for j in (0, 2, 3):
        order = coded.order32[:, coded.slot[j]]
        assert np.array_equal(order, np.argsort(coded.column(j), kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distinct_values_end_at_their_limit(dtype):
    values = np.round(rng.normal(size=500), 1).astype(dtype) + dtype(0)
    values[::9] = np.nan
    wanted, _ = expected(values)
    found, status = distinct_values(values, len(wanted))
    assert found.dtype == dtype
    assert np.array_equal(found, wanted)
    assert status == 0
    assert distinct_values(values, len(wanted) - 1)[1] == STATUS_TOO_MANY
    values[3] = -np.inf
    assert distinct_values(values, len(wanted))[1] == STATUS_INFINITE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 254, 5000])
def test_cuts_are_a_bisection(dtype, n_cuts):
    for scale in (1.0, 1e-300 if dtype is np.float64 else 1e-30, 1e10):
        values = (rng.normal(size=3000) * scale).astype(dtype)
        cuts = np.unique((rng.normal(size=n_cuts) * scale).astype(dtype))
        values[: len(cuts)] = cuts[: len(values)]
        values[-3:] = [np.nan, np.finfo(dtype).max, np.finfo(dtype).min]
        codes = np.empty(len(values), dtype=np.uint32)
        cut_column(values + dtype(0), cuts, codes)
        wanted = np.where(np.isnan(values), 0, np.searchsorted(cuts, values) + 1)
        assert np.array_equal(codes, wanted)
