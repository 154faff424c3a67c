"""Sums against `math.fsum`, and against themselves in another order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.losses._sums import mean_in_any_order, sum_in_any_order, sums_in_any_order

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
ORDINARY = st.floats(-1e6, 1e6) | st.floats(1e-12, 1e12) | st.floats(-1e-3, 1e-3)


def total(values):
    return sum_in_any_order(np.array(values, dtype=np.float64))


@given(st.lists(ORDINARY, max_size=300), st.randoms(use_true_random=False))
def test_the_sum_of_all_bits_in_any_order(values, random):
    found = total(values)
    exact = sum(map(Fraction, values))
    largest = max(map(abs, values), default=0.0)
    allowed = Fraction(math.ulp(abs(found))) / 2 + len(values) * Fraction(largest) / 2**77
    assert abs(Fraction(found) - exact) <= allowed
    random.shuffle(values)
    assert total(values) == found


@given(st.lists(NUMBERS, max_size=30))
def test_numbers_of_all_sizes(values):
    try:
        expected = math.fsum(values)
    except OverflowError:
        expected = math.inf * math.copysign(1, float(max(values, key=abs)))
    largest = max(map(abs, values), default=0.0)
    found = total(values)
    if math.isinf(expected) or math.isinf(found):
        assert abs(found) > 1e308
        assert abs(expected) > 1e308
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=largest * 2.0**-70)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([5e-324, 5e-324], 1e-323),
        ([1.0, math.inf], math.inf),
        ([-math.inf, 3.0], -math.inf),
        ([1.7e308, 1.7e308], math.inf),
        ([-1.7e308, -1.7e308], -math.inf),
    ],
)
def test_some(values, expected):
    assert total(values) == expected


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, -math.inf], [math.inf, math.nan]])
def test_no_number(values):
    assert math.isnan(total(values))


def test_more_than_are_added_at_once():
    values = np.tile([1.0 + 2.0**-52, 2.0**-30], 2**21 + 3)
    assert sum_in_any_order(values) == math.fsum(values)
    assert sum_in_any_order(np.full(2**23, 1.999)) == 2**23 * 1.999


def test_means():
    values, weight = np.array([1.0, 2.0, 6.0]), np.array([2.0, 1.0, 1.0])
    assert mean_in_any_order(values, None) == 3.0
    assert mean_in_any_order(values, weight) == 2.5


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=5))
def test_sums_of_rows(values):
    array = np.array(values, dtype=np.float64).reshape(-1, 3)
    assert sums_in_any_order(array).tolist() == [total(row) for row in array]


@pytest.mark.parametrize("weight", [None, np.array([2.0, 1.0, 0.5])])
def test_means_of_rows(weight):
    array = np.array([[1.0, 2.0, 6.0], [0.1, 0.2, 1e9], [math.nan, 1.0, 2.0]])
    expected = [mean_in_any_order(row, weight) for row in array]
    np.testing.assert_array_equal(mean_in_any_order(array, weight), expected)
