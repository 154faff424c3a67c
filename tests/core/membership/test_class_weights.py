"""Class weights of sets: integers of their own fits, multiplied when sums are read."""

import numpy as np
import pytest

from dtrees.coding.target import MOST_EXACT, Target, class_integers
from dtrees.core.membership.class_weights import (
    ClassWeights,
    totals_of_cells,
    without_class_weights,
)
from dtrees.core.membership.resampling import of_sets

Y = np.random.default_rng(0).integers(0, 3, 90)
WEIGHTS = np.random.default_rng(1).integers(0, 4, 90).astype(float)


def sets(seed=0):
    return np.random.default_rng(seed).random((5, 90)) < 0.7


def balanced(totals, classes=(0, 1, 2)):
    return class_integers("balanced", np.array(classes), totals)


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["none", "whole"])
def test_integers_are_those_of_own_fits(weight):
    rows = sets()
    resampling = of_sets(rows)
    target = Target.classification(Y, weight)
    own = ClassWeights.of_totals(resampling.class_totals(target), balanced)
    for number, mine in enumerate(rows):
        given = (np.ones(90) if weight is None else weight) * mine
        expected = Target.classification(Y, given, "balanced")
        found = resampling.weighing(own).target_of(number, target)
        np.testing.assert_array_equal(found.class_multiplier, expected.class_multiplier)
        assert found.weight_unit == expected.weight_unit == own.unit(target, number)
        assert found.total_weight == expected.total_weight
        np.testing.assert_array_equal(found.has_weight, expected.has_weight)


def test_classes_of_equal_weight_are_ones():
    """As a fit that has no class weights: 30 rows of each class in the one, not in the other."""
    own = ClassWeights.of_totals(np.array([[30, 30, 30], [30, 20, 10]]), balanced)
    assert own.multiplier[0].tolist() == [1, 1, 1]
    assert own.exponent[0] == 0
    assert len(set((own.multiplier[1] * [30, 20, 10]).tolist())) == 1
    assert own.some([1]).multiplier.tolist() == own.multiplier[1:].tolist()


def test_a_class_weighs_nothing_in_all_sets_or_in_none():
    with pytest.raises(AssertionError, match="nothing in some sets"):
        ClassWeights(np.array([[1, 0], [1, 1]]), np.zeros(2, dtype=np.int64))


def test_class_weights_of_a_target_are_the_same_in_all_sets():
    assert ClassWeights.of_target(Target.classification(Y), 3) is None
    target = Target.classification(Y, None, {0: 0.3, 1: 0.0, 2: 2.0})
    found = ClassWeights.of_target(target, 3)
    assert found.multiplier.tolist() == [target.class_multiplier.tolist()] * 3
    assert found.exponent.tolist() == [target.class_exponent] * 3


def test_rows_of_classes_that_weigh_nothing_do_not_count():
    plain = Target.classification(Y)
    assert without_class_weights(plain) is plain
    assert without_class_weights(Target.classification(Y, None, {0: 2.0, 1: 1, 2: 1})).w is None
    target = Target.classification(Y, WEIGHTS, {0: 0.3, 1: 0.0, 2: 2.0})
    found = without_class_weights(target)
    assert found.class_multiplier is None
    np.testing.assert_array_equal(found.w, WEIGHTS * (Y != 1))
    np.testing.assert_array_equal(found.has_weight, target.has_weight)


@pytest.mark.parametrize("scale", [1, 2**20, MOST_EXACT // 64])
def test_totals_of_cells_are_exact(scale):
    cells = np.random.default_rng(2).integers(0, 4, 90).astype(np.uint16)
    w = np.random.default_rng(3).integers(0, 5, 90) * scale + 1
    target = Target(kind="classification", y=Y, n_classes=3, classes=np.arange(3), w=w)
    found = totals_of_cells(target, cells, 4)
    expected = [[sum(w[(cells == c) & (k == Y)].tolist()) for k in range(3)] for c in range(4)]
    assert found.tolist() == expected
