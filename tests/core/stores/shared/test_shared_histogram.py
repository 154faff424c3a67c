"""Rows of a shared node counted by cell: the histogram of a set is all cells but those it lacks."""

import numpy as np
import pytest

from dtrees.core.data import _cpu
from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_shared import check_sets, folds, masks

KINDS = ("ties", "counts", "categories", "hybrid", "mostly")
COUNTED = Tuning(shared_rows=0, counted_rows=0)


@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_every_kind_of_cell(case, cut):
    example = seeded(*case, kinds=KINDS, n_rows=90, min_samples_leaf=2)
    rows = cut(90, 4, 3)
    check_sets(example, rows, tuning=COUNTED)


@pytest.mark.parametrize("storage", [None, 300])
def test_every_width(storage):
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=90)
    matrix = coded(example.table, storage)
    check_sets(example, folds(90, 5, 0), matrix, tuning=COUNTED)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("n_sets", [1, 3, 4, 5, 12])
def test_rows_that_only_some_members_have(n_sets, wide):
    """Two classes: the numbers of all members stand side by side."""
    before = _cpu.use_wide(wide)
    try:
        example = seeded("gini", 2, "none", kinds=("distinct", "ties", "counts"), n_rows=100)
        check_sets(example, folds(100, n_sets + 1, n_sets), tuning=COUNTED)
    finally:
        _cpu.use_wide(before)


def test_weights_that_one_number_cannot_hold():
    """Weights whose sum leaves its field: rows are not packed."""
    example = seeded("gini", 2, "none", kinds=("distinct", "ties"), n_rows=60)
    weight = np.full(60, 2.0**40)
    weight[::3] = 1.0
    heavy = type(example)(example.table, example.y, weight, "gini")
    check_sets(heavy, folds(60, 3, 0), tuning=COUNTED)
