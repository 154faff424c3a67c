"""Targets and weights as integers: exact, bounded, and clear about what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import Target
from dtrees.exceptions import StatisticsOverflowError

rng = np.random.default_rng(2)


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


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "Input y contains NaN", lambda: Target.classification([0.0, np.nan])),
        (ValueError, "Input y contains NaN", lambda: Target.regression([0.0, np.nan])),
        (
            ValueError,
            r"Input y contains infinity or a value too large for dtype\('float64'\)",
            lambda: Target.regression([0.0, -np.inf]),
        ),
        (
            ValueError,
            "missing label .None.",
            lambda: Target.classification(np.array(["a", None], dtype=object)),
        ),
        (
            TypeError,
            r"types \['int', 'str'\]",
            lambda: Target.classification(np.array([1, "a"], dtype=object)),
        ),
        (ValueError, "y should be a 1d array", lambda: Target.regression([[1.0, 2.0]])),
        (ValueError, "y is empty", lambda: Target.classification([])),
        (ValueError, "Complex data not supported", lambda: Target.classification([1j])),
        (ValueError, "Complex data not supported", lambda: Target.regression([1j])),
        (ValueError, "y must be numbers", lambda: Target.regression(["a", "b"])),
        (
            ValueError,
            r"sample_weight has 1 values for 2 rows",
            lambda: Target.classification([0, 1], sample_weight=[1]),
        ),
        (
            ValueError,
            r"must not be negative, got -2 in row 1",
            lambda: Target.classification([0, 1], sample_weight=[1, -2]),
        ),
        (
            ValueError,
            "sample_weight is zero for every row",
            lambda: Target.regression([0, 1], sample_weight=[0, 0]),
        ),
        (
            ValueError,
            "Input sample_weight contains NaN",
            lambda: Target.regression([0, 1], sample_weight=[np.nan, 0]),
        ),
        (
            ValueError,
            "sample_weight should be a 1d array",
            lambda: Target.regression([0, 1], sample_weight=[[1, 1]]),
        ),
        (
            StatisticsOverflowError,
            "sum of the weights overflows",
            lambda: Target.regression([0, 1], sample_weight=[1e308, 1.5e308]),
        ),
        (
            StatisticsOverflowError,
            "overflow a float64. Divide y",
            lambda: Target.regression([-1e200, 1e200]),
        ),
        (
            ValueError,
            "class_weight must be 'balanced', a dict or None, got 'even'",
            lambda: Target.classification([0, 1], class_weight="even"),
        ),
        (
            ValueError,
            "class_weight must be 'balanced', a dict or None, got 3",
            lambda: Target.classification([0, 1], class_weight=3),
        ),
        (
            ValueError,
            r"The classes, \[1\], are not in class_weight",
            lambda: Target.classification([0, 1], class_weight={0: 1, 5: 2}),
        ),
        (
            ValueError,
            "finite and not negative",
            lambda: Target.classification([0, 1], class_weight={0: -1}),
        ),
        (
            ValueError,
            "zero for every class",
            lambda: Target.classification([0, 1], class_weight={0: 0, 1: 0}),
        ),
        (
            ValueError,
            "sample_weight times class_weight is zero for every row",
            lambda: Target.classification([0, 1], sample_weight=[1, 0], class_weight={0: 0}),
        ),
    ],
)
def test_errors_name_argument_value_and_rule(error, message, call):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[D]"])
def test_dates_are_not_numbers(dtype):
    with pytest.raises(ValueError, match=r"y must be numbers, got .*Give dates and spans of time"):
        Target.regression(np.array([1, "NaT", 3], dtype=dtype))
