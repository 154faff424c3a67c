"""How columns are counted; sums and histograms of a node, beside sums of numpy."""

import numpy as np
import pytest

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import (
    CLASS_0,
    HIGHEST,
    LISTED,
    LOWEST,
    MOMENT,
    TARGET,
    WEIGHT,
    N,
    count,
    sizes_of,
    ways_of,
    without_intervals,
)
from dtrees.core.stores.blocks.block import EVERYONE, NodeRows, Resolution
from dtrees.core.stores.blocks.messages import Root
from tests.coding.examples import coded_columns
from tests.laws.tables import coded, coded_sparse, seeded

N_ROWS = 400
N_CODES = (5, 300, 7)
RNG = np.random.default_rng(0)
CODES = [RNG.integers(0, n + 1, N_ROWS) for n in N_CODES]
CODED = coded_columns(CODES, N_CODES, N_CODES)
ROWS = np.flatnonzero(RNG.random(N_ROWS) < 0.6).astype(np.uint32)
TIMES = RNG.integers(1, 5, len(ROWS)).astype(np.uint16)
LABELS = RNG.integers(0, 3, N_ROWS)
COLUMNS = np.array([2, 0], dtype=np.int32)


def shard_of(target, criterion):
    return Dataset(CODED, target, GrowthRules(criterion=criterion))


def histogram_of(codes, n_codes, values):
    """Sums of each column of values, by code."""
    return np.stack([np.bincount(codes, v, n_codes + 1) for v in values.T], axis=1).astype(int)


@pytest.mark.parametrize("times", [None, TIMES])
def test_classes(times):
    node = NodeRows(Root(0, 0), ROWS, times, None, EVERYONE)
    sums, histogram = count(shard_of(Target.classification(LABELS), "gini"), node, 1, COLUMNS)
    weight = np.ones(len(ROWS), dtype=int) if times is None else times.astype(int)
    by_class = np.eye(3, dtype=int)[LABELS[ROWS]] * weight[:, None]
    assert sums[0, [N, WEIGHT]].tolist() == [len(ROWS), by_class.sum()]
    np.testing.assert_array_equal(sums[0, CLASS_0:], by_class.sum(axis=0))
    if times is not None:  # cells begin with the number of rows
        by_class = np.column_stack([np.ones(len(ROWS), int), by_class])
    expected = [histogram_of(CODES[j][ROWS], N_CODES[j], by_class).ravel() for j in COLUMNS]
    np.testing.assert_array_equal(histogram[0], np.concatenate(expected))


def test_regression():
    y = RNG.integers(-9, 9, N_ROWS).astype(float)
    target = Target.regression(y, center=False)
    node = NodeRows(Root(0, 0), ROWS, TIMES, None, EVERYONE)
    sums, histogram = count(shard_of(target, "squared_error"), node, 1, COLUMNS)
    codes, times = target.y[ROWS].astype(int), TIMES.astype(int)
    assert sums[0, [N, WEIGHT, TARGET]].tolist() == [len(ROWS), times.sum(), (times * codes).sum()]
    of_python = zip(times.tolist(), codes.tolist(), strict=True)
    high, middle, low = sums[0, MOMENT : MOMENT + 3].tolist()
    assert (high << 64) + (middle << 32) + low == sum(w * y * y for w, y in of_python)
    assert sums[0, [LOWEST, HIGHEST]].tolist() == [codes.min(), codes.max()]
    of_rows = np.column_stack([np.ones_like(times), times, times * codes])
    expected = [histogram_of(CODES[j][ROWS], N_CODES[j], of_rows).ravel() for j in COLUMNS]
    np.testing.assert_array_equal(histogram[0], np.concatenate(expected))


@pytest.mark.parametrize("members", [0b1111, 0b0110, 0b1000])
def test_a_set_has_the_sums_of_its_own_rows(members):
    masks = np.array([0b0111, 0b1011, 0b0001], dtype=np.uint64)
    combination = RNG.integers(0, 3, len(ROWS)).astype(np.uint16)
    shard = shard_of(Target.classification(LABELS), "entropy")
    node = NodeRows(Root(0, 0), ROWS, None, combination, masks)
    found = zip(*count(shard, node, members, COLUMNS), strict=True)
    numbers = [number for number in range(4) if members >> number & 1]
    for number, (sums, histogram) in zip(numbers, found, strict=True):
        own = (masks[combination] >> np.uint64(number)) & np.uint64(1) > 0
        alone = NodeRows(Root(0, 0), ROWS[own], None, None, EVERYONE)
        (expected_sums,), (expected,) = count(shard, alone, 1, COLUMNS)
        np.testing.assert_array_equal(sums, expected_sums)
        np.testing.assert_array_equal(histogram, expected)


def test_no_rows_add_up_to_nothing():
    node = NodeRows(Root(0, 0), ROWS[:0], None, None, EVERYONE)
    sums, histogram = count(shard_of(Target.classification(LABELS), "gini"), node, 1, COLUMNS)
    assert sums[0, N] == 0
    assert not histogram.any()


# how columns are counted

MANY_CODES = [7, 40, 40, 100, 0, 1000]
N_ORDERED = [7, 40, 0, 60, 0, 1000]  # numbers, categories, a hybrid
NO_CODES = [np.zeros(3, dtype=int)] * len(MANY_CODES)
WIDE = coded_columns(NO_CODES, MANY_CODES, N_ORDERED)
THREE_CLASSES = Target.classification(np.array([0, 1, 2]))
FINE = Resolution(interval_codes=20, n_intervals=8, listed_codes=50)


def ways(resolution=FINE, **rules):
    dataset = Dataset(WIDE, THREE_CLASSES, GrowthRules(**{"criterion": "gini"} | rules))
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
    dataset = Dataset(matrix, THREE_CLASSES, GrowthRules(criterion="gini"))
    assert ways_of(dataset, FINE).tolist() == [LISTED]


def test_histograms_have_a_cell_for_every_code_and_for_missing_values():
    example = seeded("gini", 3, "none", n_rows=30)
    matrix = coded(example.table)
    sizes = sizes_of(Dataset(matrix, example.target, example.rules))
    n_cells = np.array(matrix.n_codes) + 1
    assert len(set((sizes // n_cells).tolist())) == 1
    np.testing.assert_array_equal(sizes, n_cells * (sizes // n_cells))
