"""Targets and weights as integers: exact, bounded, and clear about what they refuse."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier
from dtrees.coding import Target
from dtrees.coding.target import (
    CLASS_BITS,
    balanced_multipliers,
    exact_bincount,
    fixed_point_weights,
)
from dtrees.exceptions import StatisticsOverflowError

rng = np.random.default_rng(2)


@pytest.mark.parametrize(
    "labels",
    [
        [3, -1, 3, 7],
        np.array([3, 1, 255, 3], dtype=np.uint8),
        np.array([-128, 127, 0], dtype=np.int8),
        np.array([2**63, 0, 2**64 - 1], dtype=np.uint64),
        np.array([2**63 + 1, 2**63, 2**63 + 1], dtype=np.uint64),
        np.array([2**64 - 1, 2**64 - 3], dtype=">u8"),
        np.array([-(2**63) + 2, -(2**63)]),
        [10**12, -(10**12), 10**12],
        [True, False, True],
        [1.5, 0.0, 1.5],
        ["b", "a", "b"],
        np.array(["b", "a", "b", "ccc"], dtype=object),
        np.array([2, 1, 2], dtype=object),
        [5],
    ],
)
def test_classes_are_sorted_and_codes_point_to_them(labels):
    y = np.asarray(labels)
    target = Target.classification(y)
    classes, codes = np.unique(y, return_inverse=True)
    assert np.array_equal(target.classes, classes)
    assert target.classes.dtype == y.dtype
    assert np.array_equal(target.y, codes)
    assert target.n_statistics == target.n_classes == len(classes)
    assert target.w is None


@given(st.lists(st.text("abz\u20ac\U0001f600", max_size=5), min_size=1, max_size=300))
def test_strings_have_the_codes_of_sorting(labels):
    y = np.array(labels)
    classes, codes = np.unique(y, return_inverse=True)
    wide = np.repeat(y, 2).astype("U30")
    for given_labels in (y, np.repeat(y, 2)[::2], y.astype(y.dtype.newbyteorder()), wide[::2]):
        target = Target.classification(given_labels)
        assert np.array_equal(target.classes, classes)
        assert target.classes.dtype == given_labels.dtype
        assert np.array_equal(target.y, codes)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("width", [3, 8, 9, 16, 17])
@pytest.mark.parametrize("n_classes", [1, 2, 5, 200, 300, 2_000])
def test_long_strings(width, n_classes):
    """Whatever their number is; the last of them comes late."""
    own = np.random.default_rng(width * n_classes)
    names = np.array(["".join(own.choice([*"ab~\xff"], width)) for _ in range(n_classes)])
    names[0] = ""
    y = names[np.sort(own.integers(0, n_classes, 3_000))]
    classes, codes = np.unique(y, return_inverse=True)
    target = Target.classification(y)
    assert np.array_equal(target.classes, classes)
    assert np.array_equal(target.y, codes)


@pytest.mark.parametrize(("n_classes", "dtype"), [(256, "u1"), (257, "u2"), (65_535, "u2")])
@pytest.mark.parametrize("as_float", [False, True])
def test_width_of_class_codes(n_classes, dtype, as_float):
    y = rng.permutation(n_classes).astype(float if as_float else int)
    target = Target.classification(y)
    assert target.y.dtype == dtype
    assert np.array_equal(target.classes[target.y], y)


@pytest.mark.parametrize("convert", [np.array, lambda y: y.astype(float), lambda y: y.astype(str)])
@pytest.mark.parametrize("n_classes", [65_536, 70_000])
def test_too_many_classes(n_classes, convert):
    message = rf"y has {n_classes} classes; a tree counts at most 65535\. Is this a regression\?"
    with pytest.raises(ValueError, match=message):
        Target.classification(convert(np.arange(n_classes)))


@pytest.mark.parametrize(
    "y",
    [
        pd.array([None, "b"], dtype="string"),
        pd.array([None, "b", "b"], dtype=object),
        pd.array([None, True], dtype="boolean"),
        pd.Categorical([None, "b"]),
        np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
        np.array(["NaT", "2020-01-01"], dtype="M8[D]"),
        np.array([None, "b", 1], dtype=object),
    ],
)
def test_missing_labels_are_named(y):
    with pytest.raises(ValueError, match=r"Input y contains NaN: a missing label .* Drop these"):
        Target.classification(y)


def test_masked_values_are_missing():
    masked = np.ma.array([1, 2, 2], mask=[False, True, False])
    for call in (
        lambda: Target.classification(masked),
        lambda: Target.regression(masked),
        lambda: Target.regression([1, 2, 2], sample_weight=masked),
    ):
        with pytest.raises(ValueError, match=r"contains NaN: some values are masked\. Drop"):
            call()
    assert Target.regression(np.ma.array([1.0, 2.0])).n_rows == 2


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@given(values, st.booleans(), st.sampled_from([1.0, 1e-200, 1e100]))
def test_regression_mean_within_the_bound(y, center, scale):
    y = np.array(y) * scale
    target = Target.regression(y, center=center)
    assert target.wy is not None
    assert np.abs(target.y).max() <= 2**52
    assert sum(map(abs, target.wy.tolist())) <= 2**62
    half = np.abs(y - target.offset).max()
    if half > 1e-250:
        assert target.value_unit <= half * max(2.0**-51, len(y) * 2.0**-61)
    mean = float(target.to_value([len(y), target.wy.sum()]))
    truth = math.fsum(y) / len(y)
    assert abs(mean - truth) <= target.value_unit / 2 + 4e-16 * np.abs(y).max()


def test_integer_targets_are_exact():
    y = rng.integers(0, 347, 442).astype(float)
    target = Target.regression(y)
    back = target.y * target.value_unit + target.offset
    assert np.array_equal(back, y)


def test_constant_target():
    target = Target.regression([3.7, 3.7])
    assert target.y.tolist() == [0, 0]
    assert target.to_value([2, 0]) == 3.7


def test_not_centered_has_no_offset():
    target = Target.regression([3.0, 5.0], center=False)
    assert target.offset == 0.0
    assert target.to_value([2, target.wy.sum()]) == 4.0


def test_weight_two_is_the_row_twice():
    y = rng.normal(size=30)
    w = rng.integers(0, 4, 30)
    w[0] = 3
    weighted = Target.regression(y, sample_weight=w)
    rows = np.repeat(np.arange(30), w)
    repeated = Target.regression(y[rows])
    same_scale = weighted.take(rows)
    if repeated.y_exponent == weighted.y_exponent and repeated.offset == weighted.offset:
        assert np.array_equal(same_scale.y, repeated.y)
    assert weighted.wy.sum() == same_scale.y.sum()
    assert weighted.w.sum() == len(rows)


def test_weights_of_zero_and_one_keep_the_scale():
    y = rng.normal(size=500)
    whole = Target.regression(y)
    part = Target.regression(y, sample_weight=(np.arange(500) % 10 != 3).astype(float))
    assert (part.y_exponent, part.offset) == (whole.y_exponent, whole.offset)
    assert np.array_equal(part.y, whole.y)
    assert np.array_equal(part.wy, whole.y * part.w)


def test_arrays_are_read_only_and_take_keeps_the_units():
    target = Target.regression(rng.normal(size=9), sample_weight=rng.random(9))
    with pytest.raises(ValueError, match="read-only"):
        target.w[0] = 1
    taken = target.take(np.array([8, 0]))
    assert taken.n_rows == 2
    assert taken.wy.tolist() == target.wy[[8, 0]].tolist()
    assert taken.w_exponent == target.w_exponent


C, R = Target.classification, Target.regression
EMPTY = np.array(["a", None], dtype=object)
REFUSED = [
    ("Input y contains NaN", lambda: C([0.0, np.nan])),
    ("Input y contains NaN", lambda: R([0.0, np.nan])),
    (r"Input y contains infinity or a value too large for dtype", lambda: R([0.0, -np.inf])),
    ("missing label .None.", lambda: C(EMPTY)),
    (r"types \['int', 'str'\]", lambda: C(np.array([1, "a"], dtype=object))),
    ("y should be a 1d array", lambda: R([[1.0, 2.0]])),
    ("y is empty", lambda: C([])),
    ("Complex data not supported", lambda: C([1j])),
    ("Complex data not supported", lambda: R([1j])),
    ("y must be numbers", lambda: R(["a", "b"])),
    (r"sample_weight has 1 values for 2 rows", lambda: C([0, 1], sample_weight=[1])),
    (r"must not be negative, got -2 in row 1", lambda: C([0, 1], sample_weight=[1, -2])),
    ("sample_weight is zero for every row", lambda: R([0, 1], sample_weight=[0, 0])),
    ("Input sample_weight contains NaN", lambda: R([0, 1], sample_weight=[np.nan, 0])),
    ("sample_weight should be a 1d array", lambda: R([0, 1], sample_weight=[[1, 1]])),
    ("sum of the weights overflows", lambda: R([0, 1], sample_weight=[1e308, 1.5e308])),
    ("overflow a float64. Divide y", lambda: R([-1e200, 1e200])),
    ("class_weight must be 'balanced', a dict or None", lambda: C([0, 1], class_weight="even")),
    ("class_weight must be 'balanced', a dict or None", lambda: C([0, 1], class_weight=3)),
    (r"The classes, \[1\], are not in class_w", lambda: C([0, 1], class_weight={0: 1, 5: 2})),
    ("finite and not negative", lambda: C([0, 1], class_weight={0: -1})),
    ("zero for every class", lambda: C([0, 1], class_weight={0: 0, 1: 0})),
    ("sample_weight times class_weight is zero", lambda: C([0, 1], [1, 0], class_weight={0: 0})),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_errors_name_argument_value_and_rule(message, call):
    is_overflow = "overflow" in message
    kinds = StatisticsOverflowError if is_overflow else (ValueError, TypeError)
    with pytest.raises(kinds, match=message):
        call()


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[D]"])
def test_dates_are_not_numbers(dtype):
    with pytest.raises(ValueError, match=r"y must be numbers, got .*Give dates and spans of time"):
        Target.regression(np.array([1, "NaT", 3], dtype=dtype))


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


@pytest.mark.one_of(2)
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
    rows, unit = fixed_point_weights(w, spare_bits + CLASS_BITS)
    totals = exact_bincount(y, rows, K).tolist()
    multiplier, class_unit = balanced_multipliers(totals, spare_bits)
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
