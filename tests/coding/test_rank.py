"""Distinct values of columns against numpy, on every way through the kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dtrees.coding import CodeBook
from tests.coding.examples import COLUMNS, N, assert_exact

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


@given(hnp.arrays(np.int64, st.integers(1, 80)))
def test_any_integers(column):
    X = column[:, None]
    assert_exact(X, *CodeBook.fit_encode(X))


def test_big_integers_that_are_one_float_are_one_code():
    X = np.array([[2**53], [2**53 + 1], [2**53 + 2], [-(2**62)]])
    book, coded = CodeBook.fit_encode(X)
    assert book.n_codes[0] == 3
    assert coded.column(0).tolist() == [2, 2, 3, 1]
    U = np.array([[2**64 - 1], [0], [2**63]], dtype=np.uint64)
    assert CodeBook.fit_encode(U)[1].column(0).tolist() == [3, 1, 2]
