"""The logarithm and x log x, close to the mathematics; and criteria of both sides."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from dtrees import DecisionTreeClassifier
from dtrees.coding.codebook import CodeBook
from dtrees.coding.target import Target
from dtrees.core.data._logarithm import log
from dtrees.core.data.rules import GrowthRules
from dtrees.core.search._criterion import side_score, xlogx_table
from tests.laws.tables import grow_blocks


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


def test_chi_square_takes_the_boundary_of_the_greatest_statistic():
    rng = np.random.default_rng(0)
    x, y = rng.permutation(40), rng.integers(0, 3, 40)
    y[x > 25] = 1
    model = DecisionTreeClassifier(criterion="chi_square", max_depth=1).fit(x.reshape(-1, 1), y)
    found = []
    for code in range(39):
        sides = [np.bincount(y[side], minlength=3) for side in (x <= code, x > code)]
        found.append(chi2_contingency(np.array(sides), correction=False).statistic)
    tree = model.tree_.model
    assert tree.threshold[0] == np.argmax(found) + 0.5
    assert np.isclose(tree.gain[0], max(found))


def entropy(counts):
    shares = np.array(counts)[np.array(counts) > 0] / np.sum(counts)
    return -(shares @ np.log2(shares))


def ratio_of_gain(left, right):
    """As Quinlan (1993, 1996) writes it: of the node's entropy less that of the sides, and less
    the bits that name a boundary; rows of one class have nothing to gain."""
    if np.count_nonzero(np.add(left, right)) < 2:
        return 0.0
    n, m = np.sum(left), np.sum(right)
    sides = (n * entropy(left) + m * entropy(right)) / (n + m)
    of_boundary = np.log2(max(n + m - 1, 1)) / (n + m)
    return (entropy(np.add(left, right)) - sides - of_boundary) / entropy([n, m])


def test_gain_ratio_takes_the_boundary_of_the_greatest_ratio():
    rng = np.random.default_rng(0)
    x, y = rng.permutation(40), rng.integers(0, 3, 40)
    y[x > 25] = 1
    model = DecisionTreeClassifier(criterion="gain_ratio", max_depth=1).fit(x.reshape(-1, 1), y)
    found = []
    for code in range(39):
        sides = [np.bincount(y[side], minlength=3) for side in (x <= code, x > code)]
        found.append(ratio_of_gain(*sides))
    tree = model.tree_.model
    assert tree.threshold[0] == np.argmax(found) + 0.5
    assert np.isclose(tree.gain[0], 40 * max(found))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_gain_ratio_of_any_sides(classes):
    left, right = np.array(classes, dtype=float).T.copy()
    n = left.sum() + right.sum()
    if min(left.sum(), right.sum()) == 0:
        return
    found = side_score("gain_ratio", None)(left, right)
    assert found == side_score("gain_ratio", None)(right, left)
    assert found <= n
    assert found == pytest.approx(n * ratio_of_gain(left, right), rel=1e-9, abs=1e-9 * n)


def test_gain_ratio_does_not_take_rows_off_one_by_one():
    """Of noise, where the largest plain ratios are those of a side of one row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 3, 2000)
    assert DecisionTreeClassifier(criterion="gain_ratio").fit(X, y).get_depth() < 40


def test_rows_in_several_places_are_refused_to_users():
    X, y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 3
    book, coded = CodeBook.fit_encode(X)
    target, halves = Target.classification(y), np.array_split(np.arange(40), 2)
    parts = [(coded.take(rows), target.take(rows)) for rows in halves]
    rules = GrowthRules(criterion="user", score=lambda left, right: 0.0)
    with pytest.raises(ValueError, match="rows in one place"):
        grow_blocks(parts, rules, book.thresholds)
