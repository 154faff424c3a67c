"""Rows in one place: which of them count, and how."""

import numpy as np
import pytest

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import scale_of
from dtrees.core.stores._dataset import Dataset
from tests.laws.tables import SEVEN_WAYS, Example, arrays_of, coded, fit, seeded

TABLE = [[float(i % 3) for i in range(8)], [float(i) for i in range(8)]]
Y = np.arange(8) % 2
GINI = GrowthRules(criterion="gini")


def shard(weight=None, class_weight=None, rules=GINI, **how):
    target = Target.classification(Y, weight, class_weight)
    return Dataset(coded(TABLE), target, rules, scale_of(target, rules), **how)


@pytest.mark.parametrize(
    ("weight", "class_weight", "rows"),
    [
        (None, None, range(8)),
        ([0, 1, 2, 0, 0.5, 0, 0, 1], None, [1, 2, 4, 7]),
        (None, {0: 0.0, 1: 2.0}, [1, 3, 5, 7]),
        ([0, 1, 1, 1, 1, 1, 1, 0], {0: 1.0, 1: 0.0}, [2, 4, 6]),
    ],
)
def test_rows_of_positive_weight(weight, class_weight, rows):
    found = shard(weight, class_weight)
    assert found.rows().dtype == np.uint32
    assert found.rows().tolist() == list(rows)
    assert (found.n_rows, found.n_live) == (8, len(list(rows)))


@pytest.mark.parametrize(
    ("weight", "alone", "is_weighted"),
    [
        (None, False, False),
        ([1, 0, 1, 1, 1, 1, 1, 1], False, True),
        ([1, 0, 1, 1, 1, 1, 1, 1], True, False),  # those that are left count once
        ([1, 0, 2, 1, 1, 1, 1, 1], True, True),
        ([0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], True, True),
    ],
)
def test_weights_of_zero_and_one_are_left_out_where_all_rows_are_here(weight, alone, is_weighted):
    assert shard(weight, alone=alone).is_weighted is is_weighted


@pytest.mark.parametrize(
    ("limits", "single", "rows_only"),
    [
        ({}, True, False),
        ({"max_features": 1}, True, True),
        ({"max_features": 2}, True, False),  # all of them
        ({"max_features": 1}, False, False),
    ],
)
def test_only_rows_are_kept_where_a_tree_draws_columns(limits, single, rows_only):
    rules = GrowthRules(criterion="gini", **limits)
    assert shard(rules=rules, single=single).rows_only is rows_only


@pytest.mark.parametrize("case", [case for case in SEVEN_WAYS if case[2] != "fractions"], ids=str)
def test_rows_without_weight_might_as_well_not_be_there(case):
    example = seeded(*case, n_rows=70)
    weight = np.ones(70) if example.weight is None else example.weight
    weight = np.where(np.arange(70) % 3 == 1, 0.0, weight)
    whole = Example(example.table, example.y, weight, example.criterion)
    left = fit(whole.take(np.flatnonzero(weight > 0)))
    found = fit(whole)
    for name in ("feature", "threshold", "n_node_samples", "children_right"):
        np.testing.assert_array_equal(getattr(found, name), getattr(left, name))
    assert arrays_of(found).keys() == arrays_of(left).keys()
