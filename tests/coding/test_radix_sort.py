"""Rows of a wide column come in the order of a stable sort, whatever bits its keys differ in."""

import numpy as np
import pytest

from dtrees.coding import CodeBook

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
