import numpy as np
import pytest

from dtrees.core.membership.shares import Shares
from dtrees.estimators.limits import (
    MOST_ROWS,
    columns_per_split,
    least_rows,
    rows_of_split,
    shares_of,
)


def test_numbers_of_rows():
    assert least_rows(7) == 7
    assert least_rows(np.int64(7)) == 7
    assert least_rows(2**40) == MOST_ROWS
    assert least_rows(0.5) == 1
    assert least_rows(1.0) == 1


def test_rows_of_a_split():
    assert rows_of_split(7, 100) == 7
    assert rows_of_split(0.041, 100) == 5
    assert rows_of_split(1e-9, 100) == 2
    assert rows_of_split(1.0, 100) == 100


def test_shares():
    assert shares_of(2, 1, 0.0) == Shares()
    assert shares_of(np.int64(2), 0.1, 0) == Shares(min_samples_leaf=0.1)
    assert shares_of(1.0, 3, 0.2) == Shares(min_samples_split=1.0, min_weight_leaf=0.2)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 10), (3, 3), (30, 10), (0.35, 3), (0.01, 1), (1.0, 10), ("sqrt", 3), ("log2", 3)],
)
def test_columns(max_features, expected):
    assert columns_per_split(max_features, 10) == expected
