"""The logarithm and x log x: close to the mathematics, and the same bits from any caller."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.search._criterion import log, xlogx_table


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_log(x):
    exact = math.log(x)
    assert abs(log(x) - exact) <= 2 * math.ulp(exact) + 2.0**-60


@pytest.mark.parametrize("power", [-1074, -1022, -3, 0, 1, 62, 1023])
def test_log_of_powers_of_two(power):
    assert log(math.ldexp(1.0, power)) == pytest.approx(power * math.log(2), rel=1e-15, abs=0)


def test_log_of_one_is_zero():
    assert log(1.0) == 0.0


def test_xlogx():
    fixed_point = 2.0**40
    table = xlogx_table(1000, fixed_point)
    x = np.arange(1, 1000)
    assert table[0] == 0
    expected = x * np.log(x) * fixed_point
    np.testing.assert_allclose(table[1:], expected, rtol=1e-15, atol=1)


def test_xlogx_is_convex():
    # Superadditive sums are what makes every gain of entropy at least zero, but for the rounding.
    table = [Fraction(int(v)) for v in xlogx_table(200, 2.0**40)]
    assert all(table[a + b] >= table[a] + table[b] - 2 for a in range(100) for b in range(100))
