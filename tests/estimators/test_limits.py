import numpy as np
import pytest

from dtrees.coding.target import Target
from dtrees.estimators.limits import (
    columns_per_split,
    rows_of_leaf,
    rows_of_split,
    weight_of_leaf,
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


def test_weight_of_leaf():
    y = np.array([0, 0, 0, 1])
    assert weight_of_leaf(0.0, Target.classification(y)) == 0.0
    assert weight_of_leaf(0.25, Target.classification(y)) == 1.0
    assert weight_of_leaf(0.5, Target.classification(y, [1, 2, 3, 4])) == 5.0
    weighted = Target.classification(y, [1, 2, 3, 4], {0: 0.5, 1: 2.0})
    assert weight_of_leaf(0.5, weighted) == pytest.approx(5.5)
    assert weight_of_leaf(0.5, Target.regression([0.1, 0.2], [0.25, 0.5])) == pytest.approx(0.375)
    assert weight_of_leaf(0.5, Target.regression([0.1, 0.2])) == 1.0
