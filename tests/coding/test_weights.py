"""Weights of rows and classes as integers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtrees.coding import Target

rng = np.random.default_rng(2)


def test_integer_weights_are_exact():
    target = Target.classification([0, 1, 1, 0], sample_weight=[2, 0, 7, 2**40])
    assert target.w.tolist() == [2, 0, 7, 2**40]
    assert target.w_exponent == 0
    assert Target.classification([0, 1], sample_weight=[1.0, 1.0]).w is None


weights = st.floats(0, 1e30, allow_subnormal=False).map(lambda w: 0.0 if w < 1e-30 else w)


@given(st.lists(weights, min_size=1, max_size=40).filter(lambda w: max(w) > 0))
@example([2.0**51 + 1, 0.5])  # one bit less, since exponent 0 says that weights are exact
def test_weights_keep_their_bounds_and_their_order(w):
    target = Target.classification(np.zeros(len(w)), sample_weight=w)
    if target.w is None:
        assert set(w) == {1.0}
        return
    exact = [Fraction(int(i)) / Fraction(2) ** target.w_exponent for i in target.w]
    largest = max(w)
    for given_weight, kept in zip(w, exact, strict=True):
        assert (kept > 0) == (given_weight > 0)
        assert abs(kept - Fraction(given_weight)) <= Fraction(largest) / 2**50
    assert max(target.w.tolist()) <= 2**52
    assert sum(target.w.tolist()) <= 2**61
    again = Target.classification(np.zeros(len(w)), sample_weight=w[::-1])
    assert again.w_exponent == target.w_exponent
    assert np.array_equal(again.w[::-1], target.w)


def test_weights_of_any_size_can_be_told_apart():
    for scale in (1e-300, 1e-12, 1.0, 1e12, 1e290):
        w = np.array([0.5, 1.25, 3.0]) * scale
        target = Target.regression([1.0, 2.0, 4.0], sample_weight=w)
        mean = target.to_value([target.w.sum(), target.wy.sum()])
        assert mean == pytest.approx(np.average([1.0, 2.0, 4.0], weights=w), rel=1e-14)
        assert np.allclose(target.w * target.weight_unit, w, rtol=1e-15)


def test_balanced_class_weights():
    target = Target.classification([0, 0, 0, 1], class_weight="balanced")
    assert np.allclose(target.class_multiplier / 2.0**target.class_exponent, [4 / 6, 2.0])
    statistics = np.array([3, 1]) * target.class_multiplier
    assert np.allclose(target.to_value(statistics), [2.0, 2.0])
    weighted = Target.classification([0, 1], sample_weight=[3, 1], class_weight="balanced")
    assert np.array_equal(weighted.class_multiplier, target.class_multiplier)
    assert Target.classification([0, 1], class_weight="balanced").class_multiplier is None


def test_class_weights_by_label():
    target = Target.classification(["a", "b"], class_weight={"b": 3})
    assert target.class_multiplier.tolist() == [2**40, 3 * 2**40]
    folded = Target.classification([0, 1], sample_weight=[0.3, 0.7], class_weight={1: 3})
    assert folded.class_multiplier is None
    assert np.allclose(folded.w * folded.weight_unit, [0.3, 2.1], rtol=1e-15)
    none_counts = Target.classification([0, 1], class_weight={0: 0})
    assert none_counts.class_multiplier[0] == 0


def test_class_multipliers_cannot_overflow():
    y = np.array([0, 1])
    target = Target.classification(y, [2**51, 2**50], class_weight={0: 1.0, 1: 1e9})
    total = sum(int(w) * int(target.class_multiplier[c]) for w, c in zip(target.w, y, strict=True))
    assert total <= 2**61
    assert target.class_multiplier[0] > 0


def test_total_weight_includes_class_weights():
    y = np.array([0, 0, 0, 1])
    assert Target.classification(y).total_weight == 4.0
    assert Target.classification(y, [1, 2, 3, 4]).total_weight == 10.0
    weighted = Target.classification(y, [1, 2, 3, 4], {0: 0.5, 1: 2.0})
    assert weighted.total_weight == pytest.approx(11.0)
    assert Target.regression([0.1, 0.2], [0.25, 0.5]).total_weight == pytest.approx(0.75)
    assert Target.regression([0.1, 0.2]).total_weight == 2.0


def test_total_weight_is_rounded_once():
    """Products that a float64 cannot hold; weights of one are as no weights."""
    multiplier = np.array([32175632738014876, 9914735161325271, 28723655234645487])
    plain = Target.classification(np.repeat([0, 1, 2], [7, 11, 13]))
    weighted = plain.only(np.ones(31, dtype=bool))
    exact = float(int(np.array([7, 11, 13]) @ multiplier))
    assert exact != (np.array([7.0, 11.0, 13.0]) * multiplier).sum()
    for target in plain, weighted:
        assert replace(target, class_multiplier=multiplier).total_weight == exact
