"""How columns are counted: by code, by interval of codes, or as lists."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._code_ways import LISTED, sizes_of, ways_of, without_intervals
from dtrees.core.stores.blocks.block import Resolution
from tests.laws.tables import coded_sparse

N_CODES = [7, 40, 40, 100, 0, 1000]
N_ORDERED = [7, 40, 0, 60, 0, 1000]  # numbers, categories, a hybrid
CODES = [np.zeros(3, dtype=int)] * len(N_CODES)
CODED = CodedMatrix.from_columns(CODES, N_CODES, N_ORDERED)
TARGET = Target.classification(np.array([0, 1, 2]))
FINE = Resolution(interval_codes=20, n_intervals=8, listed_codes=50)


def ways(resolution=FINE, **rules):
    dataset = Dataset(CODED, TARGET, GrowthRules(**{"criterion": "gini"} | rules))
    return dataset, ways_of(dataset, resolution)


def test_only_ordered_columns_of_many_codes_have_intervals():
    dataset, found = ways()
    assert found.tolist() == [0, 3, 0, LISTED, 0, 7]  # 5 intervals of 8 codes, 8 of 128
    assert sizes_of(dataset, found).tolist() == [3 * n for n in (8, 6, 41, 0, 1, 9)]
    assert without_intervals(found).tolist() == [0, LISTED, 0, LISTED, 0, LISTED]


def test_what_has_no_bounds_is_listed():
    assert ways(random_splits=True)[1].tolist() == [0, 0, 0, LISTED, 0, LISTED]


@pytest.mark.parametrize("n_intervals", [1, 2, 5, 255])
def test_there_are_at_most_so_many_intervals(n_intervals):
    dataset, found = ways(Resolution(0, n_intervals))
    sizes = sizes_of(dataset, found)[[0, 1, 5]] // 3 - 1
    assert (sizes <= n_intervals).all()
    assert (sizes > n_intervals // 2).all() or n_intervals == 255


def test_sparse_columns_are_listed():
    matrix = coded_sparse([[1.0, 2.0, 3.0]], 0)
    dataset = Dataset(matrix, TARGET, GrowthRules(criterion="gini"))
    assert ways_of(dataset, FINE).tolist() == [LISTED]
