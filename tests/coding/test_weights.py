"""Weights of rows and classes as integers."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier
from dtrees.coding import Target
from dtrees.coding.weights import balanced_fractions, balanced_multipliers

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


fractions = st.lists(st.floats(0.01, 100), min_size=2, max_size=40)


@pytest.mark.parametrize("spare_bits", [0, 5])
def test_balanced_classes_of_a_great_total_fit_their_bits(spare_bits):
    totals = [36 * 10**14] + [4 * 10**14 // 5_999] * 5_999
    multiplier, _ = balanced_multipliers(totals, spare_bits)
    weighs = [t * int(m) for t, m in zip(totals, multiplier, strict=True)]
    assert sum(weighs) <= 2 ** (61 - spare_bits) + sum(totals)
    y = np.r_[0, np.arange(6_000)]
    weight = np.r_[1, totals].astype(float)
    root = DecisionTreeClassifier(class_weight="balanced", max_depth=1).fit(y[:, None], y, weight)
    assert root.tree_.value[0].sum() == pytest.approx(1)


@pytest.mark.parametrize("spare_bits", [0, 5])
def test_rows_of_a_light_class_keep_their_weights_beside_great_ones(spare_bits):
    y = np.repeat([0, 1], 100)
    weight = np.r_[np.full(100, 2.0**42 // 100), np.ones(50), np.full(50, 9)]
    target = Target.classification(y, weight, "balanced", spare_bits)
    found = target.w * target.class_multiplier[y] * target.weight_unit
    exact = weight * weight.sum() / (2 * np.bincount(y, weight)[y])
    np.testing.assert_allclose(found, exact, rtol=2.0**-12)


@given(fractions, st.integers(0, 2**32 - 1), st.sampled_from([0, 5]))
def test_balanced_weights_and_fractions_share_the_bits(w, seed, spare_bits):
    """Rows are off by so much of the total, and classes by so much of their weight."""
    w = np.array(w)
    w[0] += 0.3
    rng = np.random.default_rng(seed)
    classes, y = np.unique(rng.integers(0, rng.integers(1, 5), len(w)), return_inverse=True)
    K = len(classes)
    (rows, unit), (multiplier, class_unit) = balanced_fractions(w, y, K, spare_bits)
    assert np.abs(np.ldexp(rows, -unit) - w).max() <= np.sum(w) * 2.0 ** (spare_bits - 40)
    total = np.bincount(y, w)
    per_class = np.ldexp(multiplier, -class_unit)
    np.testing.assert_allclose(per_class, total.sum() / (K * total), rtol=K * 2.0**-20)
    units = [int(a) * int(m) for a, m in zip(rows, multiplier[y], strict=True)]
    assert sum(units) <= 2 ** (61 - spare_bits)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.sampled_from([0, 5, 25]))
def test_balanced_classes_weigh_the_same(totals, spare_bits):
    """As exactly as integers can say it; otherwise the first one weighs most."""
    multiplier, exponent = balanced_multipliers(totals, spare_bits)
    weighs = [t * int(m) for t, m in zip(totals, multiplier, strict=True) if t]
    assert (multiplier > 0).all()
    assert weighs == sorted(weighs, reverse=True)
    assert sum(weighs) <= 2 ** (61 - spare_bits)
    if math.lcm(*filter(None, totals)) <= 2 ** (18 - spare_bits):
        assert len(set(weighs)) <= 1
    for weight in weighs:
        expected = sum(totals) / len(weighs)
        error = len(weighs) * 2.0**-exponent + 2.0**-37
        np.testing.assert_allclose(np.ldexp(float(weight), -exponent), expected, rtol=error)


@pytest.mark.parametrize("counts", [(11, 12), (8, 8, 7), (50, 49, 50), (2_000, 1_999)])
def test_balanced_classes_of_few_rows_less_one_weigh_the_same(counts):
    multiplier, _ = balanced_multipliers(list(counts))
    assert len({n * int(m) for n, m in zip(counts, multiplier, strict=True)}) == 1


def test_balanced_classes_without_a_common_multiple_leave_the_first_ahead():
    counts = np.random.default_rng(0).integers(900, 1_100, 40).tolist()
    multiplier, exponent = balanced_multipliers(counts)
    shares = [n * int(m) / 2**exponent for n, m in zip(counts, multiplier, strict=True)]
    assert shares == sorted(shares, reverse=True)
    np.testing.assert_allclose(shares, sum(counts) / 40, rtol=2.0**-30)


def test_a_row_is_as_good_as_two_halves_of_it():
    w, y = rng.integers(1, 64, 1_100) / 16, np.arange(1_100) % 3
    once = Target.classification(y, w, "balanced")
    twice = Target.classification(np.repeat(y, 2), np.repeat(w / 2, 2), "balanced")
    assert np.array_equal(once.class_multiplier, twice.class_multiplier)
    assert np.array_equal(once.w, twice.w.reshape(-1, 2).sum(axis=1))


@pytest.mark.parametrize("spare_bits", [0, 5])
def test_balanced_fractions_of_few_rows_are_products(spare_bits):
    """From 1,024 rows on that weigh anything, classes multiply."""
    w, y = rng.random(1_040) + 0.1, np.arange(1_040) % 3
    w[1_024:] = 0
    many = Target.classification(y, w, "balanced", spare_bits)
    w[0] = 0
    few = Target.classification(y, w, "balanced", spare_bits)
    assert many.class_multiplier is not None
    assert few.class_multiplier is None
    total = np.bincount(y, w)
    product = np.ldexp(few.w, -few.w_exponent)
    np.testing.assert_allclose(product, w * (total.sum() / (3 * total))[y], rtol=2.0**-40)


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
