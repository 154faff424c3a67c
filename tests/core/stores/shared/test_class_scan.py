"""Members of a shared node that are searched side by side have the splits that they have alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data import _cpu
from dtrees.core.data.tuning import Tuning
from tests.core.grow.test_level_wise_node import large
from tests.laws.tables import (
    Example,
    coded,
    fit,
    seeded,
)
from tests.laws.test_shared import check_sets, folds, grow_sets

TOGETHER = Tuning(shared_rows=0)


@pytest.fixture(autouse=True)
def as_before():
    before = _cpu.use_wide(True)
    yield
    _cpu.use_wide(before)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("n_sets", [2, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("n_classes", [3, 11])
def test_any_number_of_members(n_sets, n_classes, wide):
    """Eight go into a register; others are left over."""
    _cpu.use_wide(wide)
    kinds = ("ties", "counts", "distinct", "mostly")
    example = seeded("gini", n_classes, "none", kinds=kinds, n_rows=80, min_samples_leaf=2)
    check_sets(example, folds(80, n_sets, n_sets), tuning=TOGETHER)


@pytest.mark.parametrize("storage", [None, 300])
def test_missing_values_in_any_width(storage):
    example = seeded("gini", 5, "none", kinds=("missing", "ties", "distinct", "counts"), n_rows=90)
    matrix = coded(example.table, storage)
    check_sets(example, folds(90, 4, 0), matrix, tuning=TOGETHER)


def test_classes_that_a_node_lacks_and_codes_that_it_lacks():
    """Only what occurs is counted: here, a class and ten codes in each half of the first split."""
    rng = np.random.default_rng(0)
    half = np.arange(120) % 2
    column = half * 10.0 + rng.integers(0, 10, 120)
    y = half * 3 + rng.integers(0, 3, 120)
    example = Example([column.tolist(), half.astype(float).tolist()], y, None, "gini")
    check_sets(example, folds(120, 5, 1), tuning=TOGETHER)


@pytest.mark.parametrize("n_rows", [46_340, 46_341])
def test_sets_of_more_rows_than_squares_fit(n_rows):
    # Up to 46,340 rows of several classes the members of a node are searched side by side.
    example = large("gini", n_rows, 12, max_depth=4, min_samples_leaf=5)
    rows = folds(n_rows, 2, 0)
    trees = grow_sets(example, coded(example.table), rows)
    for mine, tree in zip(rows, trees.trees, strict=True):
        alone = replace(example, weight=mine.astype(float))
        assert fit(alone).equals(tree)
