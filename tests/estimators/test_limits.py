import numpy as np
import pytest

from dtrees.estimators.limits import (
    columns_per_split,
    rows_of_leaf,
    rows_of_split,
)


def test_rows():
    assert rows_of_leaf(7, 100) == 7
    assert rows_of_leaf(np.int64(7), 100) == 7
    assert rows_of_leaf(0.041, 100) == 5
    assert rows_of_leaf(1e-9, 100) == 1
    assert rows_of_split(2, 1, 100) == 2
    assert rows_of_split(0.001, 1, 100) == 2
    assert rows_of_split(1.0, 1, 100) == 100
    assert rows_of_split(10, 0.2, 100) == 40


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 10), (3, 3), (30, 30), (0.35, 3), (0.01, 1), (1.0, 10), ("sqrt", 3), ("log2", 3)],
)
def test_columns(max_features, expected):
    assert columns_per_split(max_features, 10) == expected
