"""Targets and weights as integers: exact, bounded, and clear about what they refuse."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import Target
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
