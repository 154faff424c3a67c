"""Codes of dense tables by a book."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.coding.examples import fit

rng = np.random.default_rng(4)


def test_numbers_not_seen_get_the_nearest_code():
    book, _ = fit(np.array([[0.0], [1.0], [4.0]]))
    x = np.array([[-9.0], [0.5], [0.51], [2.5], [2.6], [99.0], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]
    assert book.encode(sp.csc_array(x)).column(0).tolist() == [1, 1, 2, 2, 3, 3, 0]


def test_numbers_not_seen_fall_into_bins():
    book, coded = fit(rng.permutation(1000)[:, None], max_bins=4)
    assert book.high.tolist() == [249, 499, 749, 999]
    assert not book.exact[0]
    x = np.array([[-5.0], [249], [249.5], [999], [10**6], [np.nan]])
    assert book.encode(x).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert book.encode(sp.csr_array(x)).column(0).tolist() == [1, 1, 2, 4, 4, 0]
    assert np.bincount(coded.column(0)).tolist() == [0, 250, 250, 250, 250]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8", "?"])
@pytest.mark.parametrize("options", [{}, {"max_bins": 10}])
@pytest.mark.parametrize("other", ["f4", "f8", "object", "csc"])
def test_encoding_the_table_of_the_fit_gives_its_codes(dtype, options, other):
    X = np.round(rng.normal(size=(400, 5)) * 100).astype(dtype)
    book, coded = fit(X, **options)
    again = book.encode(sp.csc_array(X) if other == "csc" else X.astype(other))
    for j in range(5):
        assert np.array_equal(again.column(j), coded.column(j))


def test_midpoints_that_float32_does_not_hold():
    values = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    book, _ = fit(values[:, None])
    assert book.encode(values[:, None]).column(0).tolist() == [1, 2]


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_only_some_columns(form):
    X = np.round(rng.normal(size=(50, 6)))
    X = X if form == "dense" else sp.csr_array(X)
    book, coded = fit(X)
    some = book.encode(X, columns=[4, 1])
    assert some.n_columns == 6
    assert (some.n_codes > 0).tolist() == [False, True, False, False, True, False]
    for j in (1, 4):
        assert np.array_equal(some.column(j), coded.column(j))
    assert not some.column(0).any()
    assert some.u8.shape == (50, 2 if form == "dense" else 0)
