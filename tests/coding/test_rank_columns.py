"""Codes lie in the narrowest block; rows of wide codes are in order."""

import numpy as np
import pytest

from dtrees.coding import CodeBook
from dtrees.coding._rank_columns import STATUS_INFINITE, STATUS_TOO_MANY, distinct_values
from tests.coding.examples import assert_exact, expected

rng = np.random.default_rng(1)


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
