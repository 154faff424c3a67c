"""Values take the memory that they need."""

import numpy as np
import pytest

from dtrees.coding import CodeBook
from dtrees.coding.code_store import LARGE_BUFFER
from tests.coding.examples import assert_exact

rng = np.random.default_rng(5)


@pytest.mark.parametrize("max_bins", [None, 20])
def test_wide_tables_keep_their_values_only(max_bins):
    # room for the values of all columns is large enough to be set aside without huge pages
    X = rng.poisson(0.1, (1100, 1000)).astype(np.float32)
    X[:, -1] = rng.normal(size=len(X))
    book, coded = CodeBook.fit_encode(X, max_bins=max_bins)
    assert 4 * X.size > LARGE_BUFFER
    assert len(book.low) == len(book.high) == book.n_codes.sum() < 8_000
    assert book.low.base is None
    assert book.exact[:-1].all()
    assert book.exact[-1] == (max_bins is None)
    if max_bins is None:
        assert_exact(X, book, coded)
