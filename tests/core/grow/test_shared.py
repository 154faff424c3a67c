"""Which training sets grow together, and why others do not."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.grow.shared import Sets, n_alone, numbers_of
from dtrees.core.membership.resampling import of_sets
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, seeded
from tests.laws.test_shared import folds

EXAMPLE = seeded("gini", 3, "integers")
MATRIX = coded(EXAMPLE.table)
DISTINCT = coded(seeded("gini", 3, "integers", kinds=("distinct",)).table)
SPARSE_MATRIX = coded_sparse(EXAMPLE.table, 0)


@pytest.mark.parametrize(
    ("matrix", "limits"),
    [
        (MATRIX, {}),
        (MATRIX, {"random_splits": True}),
        (DISTINCT, {"random_splits": True}),
        (SPARSE_MATRIX, {}),
        (SPARSE_MATRIX, {"max_features": 3}),
        (SPARSE_MATRIX, {"random_splits": True}),
        (MATRIX, {"max_features": 3}),
        (coded(EXAMPLE.table, 70_000), {}),
    ],
)
def test_no_set_is_alone(matrix, limits):
    resampling = of_sets(folds(EXAMPLE.n_rows, 4, 0))
    rules = replace(EXAMPLE.rules, **limits)
    assert n_alone(matrix, EXAMPLE.target, rules, resampling) == (0, "")


def alone(rows):
    """How many sets grow alone, and why; as the bundles say."""
    sets = of_sets(rows)
    n, reason = n_alone(MATRIX, EXAMPLE.target, EXAMPLE.rules, sets)
    own = Sets(EXAMPLE.target, [EXAMPLE.rules] * len(rows), sets)
    bundles = own.bundles(numbers_of(MATRIX, EXAMPLE.target, EXAMPLE.rules))
    assert n == len(rows) - sum(map(len, bundles))
    return n, reason


def test_sets_without_rows_in_common_are_alone():
    """Two folds have nothing to share; with all rows, which have those of both, they have."""
    rows = folds(EXAMPLE.n_rows, 2, 0)[:2]
    assert not (rows[0] & rows[1]).any()
    assert alone(rows) == (2, "no other one of their group has rows in common with them")
    assert alone(np.vstack([rows, np.ones((1, EXAMPLE.n_rows), dtype=bool)])) == (0, "")
    rows[0, np.flatnonzero(rows[1])[0]] = True
    assert alone(rows) == (0, "")


def test_what_groups_leave_over_is_alone():
    """Any rows of 13 sets are in more than 64 cells: groups are of four."""
    rows = np.random.default_rng(0).random((13, EXAMPLE.n_rows)) < 0.5
    assert alone(rows) == (1, "no other one of their group has rows in common with them")


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_scales_are_those_of_the_rows_of_a_set(case):
    example = seeded(*case)
    rows = folds(example.n_rows, 4, 0)
    sets = Sets(example.target, [example.rules] * len(rows), of_sets(rows))
    for number, own in enumerate(rows):
        target = example.target.only(own)
        assert sets.scales[number] == scale_of(target, example.rules)
        np.testing.assert_array_equal(sets.target(number).has_weight, target.has_weight)


def test_bundles_have_one_bit_for_each_set():
    rows = folds(EXAMPLE.n_rows, MOST_SETS + 9, 0)
    sets = Sets(EXAMPLE.target, [EXAMPLE.rules] * len(rows), of_sets(rows))
    bundles = sets.bundles(numbers_of(MATRIX, EXAMPLE.target, EXAMPLE.rules))
    assert max(map(len, bundles)) <= MOST_SETS
    assert sorted(chain.from_iterable(bundles)) == list(range(len(rows)))


def test_logarithms_need_one_scale():
    """A set of a few rows has another scale than the others."""
    example = seeded("entropy", 3, "fractions")
    rows = folds(example.n_rows, 4, 0)[:-1]
    rows[1] = np.arange(example.n_rows) < 3
    resampling = of_sets(rows)
    (bundle,) = Sets(example.target, [example.rules] * 4, resampling).bundles(100)
    assert bundle == [0, 2, 3]
    reason = "no other one has the same scale of logarithms"
    found = n_alone(coded(example.table), example.target, example.rules, resampling)
    assert found == (1, reason)


def test_limits_of_a_group():
    rows = folds(EXAMPLE.n_rows, 2, 0)
    rules = [replace(EXAMPLE.rules, min_samples_leaf=k, min_weight_leaf=1.5 * k) for k in (1, 2, 3)]
    sets = Sets(EXAMPLE.target, rules, of_sets(rows))
    total, least = sets.limits_of([0, 2])
    unit = EXAMPLE.target.weight_unit
    assert total.tolist() == [EXAMPLE.target.only(rows[i]).total_weight for i in (0, 2)]
    assert least.tolist() == [[2, 1, np.ceil(1.5 / unit)], [2, 3, np.ceil(4.5 / unit)]]
