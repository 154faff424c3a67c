"""The exponential function to one unit in the last place, and derivatives as integers."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data._logarithm import log
from dtrees.core.grow._boosted_rows import RowDerivatives
from dtrees.core.grow._team import Team
from dtrees.core.losses._derivatives import (
    KINDS,
    exponential,
    mean_in_any_order,
    shares_of_two,
    softmax,
    sum_in_any_order,
    sums_in_any_order,
)
from dtrees.core.losses.losses import CLASSES, NUMBERS, OwnLoss
from tests.members import together
from tests.registers import wide_registers

ENDS = [0.0, -0.0, 1e-320, -1e-20, 709.78, 709.782712893384, 709.79, 710.5, 1e300, -708.3, -708.4]
ENDS += [-744.44, -745.13, -745.14, -746.5, -1e300, np.inf, -np.inf]


def units_off(found, x):
    """By how many units in the last place a result differs from exp(x)."""
    getcontext().prec = 60
    true = Decimal(x).exp()
    return abs(Decimal(found) - true) / Decimal(float(np.spacing(float(true))))


def many_numbers():
    rng = np.random.default_rng(0)
    spread = rng.uniform(-745, 709.78, 2_000)
    halves = (rng.integers(-1000, 1000, 500) + 0.5) * np.log(2)  # where the power of two changes
    halves = halves[np.abs(halves) < 700]
    return np.concatenate([spread, rng.uniform(-2, 2, 1_000), halves, rng.normal(size=500) * 1e-9])


class TestExponential:
    def test_to_one_unit_in_the_last_place(self):
        x = many_numbers()
        off = [units_off(found, given) for found, given in zip(exponential(x), x, strict=True)]
        assert max(off) < 1

    def test_at_the_ends(self):
        x = np.array(ENDS)
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(exponential(x), np.exp(x), rtol=3e-16, atol=5e-324)
        assert exponential(np.array([0.0])) == 1
        assert np.isnan(exponential(np.array([np.nan])))
        assert len(exponential(np.empty(0))) == 0

    def test_the_same_bits_in_registers_of_any_width(self):
        x = np.concatenate([many_numbers(), ENDS, [np.nan]])
        raw = x[: len(x) // 3 * 3].reshape(3, -1)
        wide = exponential(x), shares_of_two(x[:, None]), softmax(raw)
        with wide_registers(False):
            plain = exponential(x), shares_of_two(x[:, None]), softmax(raw)
        for first, second in zip(wide, plain, strict=True):
            assert first.tobytes() == second.tobytes()

    def test_ascends(self):
        x = np.sort(np.random.default_rng(1).uniform(-3, 3, 20_000))
        assert (np.diff(exponential(x)) >= 0).all()


def test_shares_of_classes_sum_to_one_however_large():
    raw = np.array([[0.0, 1e300, -800.0], [0.0, 0.0, 0.0], [0.0, -1e300, 800.0]])
    shares = softmax(raw)
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    np.testing.assert_allclose(shares[:, 0], 1 / 3)
    np.testing.assert_array_equal(shares[:, 1:], [[1, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1_000])
def test_shares_of_two_classes_are_those_of_the_log_odds(n):
    log_odds = np.concatenate([ENDS, many_numbers()])[: 2 * n]
    for rows in (log_odds[:n, None], log_odds.reshape(-1, 2)[::-1]):
        second = 1.0 / (1.0 + exponential(-rows[:, 0]))
        found = shares_of_two(rows)
        assert found.tobytes() == np.column_stack([1.0 - second, second]).tobytes()


FORMULAS = {
    "log_loss": lambda y, r, _: (1 / (1 + np.exp(-r)) - y, np.exp(-r) / (1 + np.exp(-r)) ** 2),
    "squared_error": lambda y, r, _: (r - y, np.ones_like(r)),
    "absolute_error": lambda y, r, _: (np.sign(r - y), np.ones_like(r)),
    "quantile": lambda y, r, q: (np.select([r > y, r < y], [1 - q, -q], 0.0), np.ones_like(r)),
    "huber": lambda y, r, q: (np.clip(r - y, -q, q), np.ones_like(r)),
    "poisson": lambda y, r, _: (np.exp(r) - y, np.exp(r)),
    "gamma": lambda y, r, _: (1 - y * np.exp(-r), y * np.exp(-r)),
    "tweedie": lambda y, r, _: (
        np.exp(0.5 * r) - y * np.exp(-0.5 * r),
        0.5 * (np.exp(0.5 * r) + y * np.exp(-0.5 * r)),
    ),
}


# how far a word may be from its number: counts up to 3 multiply what is rounded already
OFF = {"none": 0.501, "counts": 1.501, "others": 0.501}


def weights_of(kind, rng, n):
    if kind == "none":
        return None
    return rng.integers(1, 4, n).astype(float) if kind == "counts" else rng.uniform(0.1, 5, n)


def unpacked(packed):
    return packed.view(np.int64) >> 32, (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def test_there_is_a_formula_for_each_loss():
    assert FORMULAS.keys() == KINDS.keys() - {"given"} == (CLASSES | NUMBERS).keys()


@given(seed=st.integers(0, 50), n_values=st.integers(1, 3), weights=st.sampled_from([*OFF]))
def test_derivatives_that_are_given(seed, n_values, weights):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 600))
    weight = weights_of(weights, rng, n)
    loss = OwnLoss(None)
    rows = RowDerivatives(
        loss, np.zeros(n_values), np.zeros(n), weight, Team(), weights == "counts"
    )
    gradient, hessian = rng.normal(size=(n_values, n)), rng.random((n_values, n))
    rows.give(gradient, hessian)
    sums = rows.derive(2.0**20, 2.0**18)
    times = 1 if weight is None else weight
    for k in range(n_values):
        found = unpacked(rows.packed[k])
        exact = {"rtol": 0, "atol": OFF[weights]}
        np.testing.assert_allclose(found[0], gradient[k] * times * 2.0**20, **exact)
        np.testing.assert_allclose(found[1], hessian[k] * times * 2.0**18, **exact)
        assert sums[k].tolist() == [found[0].sum(), found[1].sum()]


@pytest.mark.parametrize("name", FORMULAS)
@given(seed=st.integers(0, 100), weights=st.sampled_from([*OFF]), wide=st.booleans())
def test_derivatives_are_rounded_to_nearest(name, seed, weights, wide):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 700))
    y = rng.integers(0, 2, n).astype(float) if name == "log_loss" else rng.gamma(1.0, size=n)
    weight = weights_of(weights, rng, n)
    loss = (CLASSES | NUMBERS)[name]
    raw = rng.normal(size=n)
    rows = RowDerivatives(loss, np.zeros(1), y, weight, Team(), weights == "counts")
    rows.raw[0] = raw
    with wide_registers(wide):
        sums = rows.derive(2.0**20, 2.0**18, measures=True)
    gradient, hessian = FORMULAS[name](y, raw, loss.level)
    times = 1 if weight is None else weight
    found = unpacked(rows.packed[0])
    exact = {"rtol": 0, "atol": OFF[weights]}
    np.testing.assert_allclose(found[0], gradient * times * 2.0**20, **exact)
    np.testing.assert_allclose(found[1], hessian * times * 2.0**18, **exact)
    np.testing.assert_array_equal(sums, [[found[0].sum(), found[1].sum()]])
    np.testing.assert_allclose(rows.largest, [np.abs(gradient).max(), hessian.max()], rtol=1e-14)


@given(seed=st.integers(0, 50), n_classes=st.integers(3, 5), weights=st.sampled_from([*OFF]))
def test_derivatives_of_classes(seed, n_classes, weights):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 600))
    y = rng.integers(0, n_classes, n).astype(float)
    weight = weights_of(weights, rng, n)
    are_counts = weights == "counts"
    loss = CLASSES["log_loss"]
    rows = RowDerivatives(loss, np.zeros(n_classes), y, weight, Team(), are_counts)
    rows.raw[:] = rng.normal(size=(n_classes, n))
    sums = rows.derive(2.0**20, 2.0**20)
    shares = np.exp(rows.raw) / np.exp(rows.raw).sum(axis=0)
    times = 1 if weight is None else weight
    exact = {"rtol": 0, "atol": OFF[weights]}
    for k in range(n_classes):
        gradient, hessian = unpacked(rows.packed[k])
        wanted = times * (shares[k] - (y == k)), times * shares[k] * (1 - shares[k])
        np.testing.assert_allclose(gradient, wanted[0] * 2.0**20, **exact)
        np.testing.assert_allclose(hessian, wanted[1] * 2.0**20, **exact)
        np.testing.assert_array_equal(sums[k], [gradient.sum(), hessian.sum()])


def test_logarithms():
    x = np.random.default_rng(0).uniform(1e-3, 1e3, 500)
    np.testing.assert_allclose(log(x), np.log(x), rtol=1e-14, atol=1e-15)
    assert log(np.ones(1)).tolist() == [0.0]


# --------------------------------------------------------------------------------------------
# sums against `math.fsum`, and against themselves in another order

ANY_SIZE = st.floats(allow_nan=False, allow_infinity=False, width=64)
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


@given(st.lists(ANY_SIZE, max_size=30))
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
def test_some_sums(values, expected):
    assert total(values) == expected


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, -math.inf], [math.inf, math.nan]])
def test_sums_that_are_no_number(values):
    assert math.isnan(total(values))


def test_more_than_are_added_at_once():
    values = np.tile([1.0 + 2.0**-52, 2.0**-30], 2**21 + 3)
    assert sum_in_any_order(values) == math.fsum(values)
    assert sum_in_any_order(np.full(2**23, 1.999)) == 2**23 * 1.999


def test_means():
    values, weight = np.array([1.0, 2.0, 6.0]), np.array([2.0, 1.0, 1.0])
    assert mean_in_any_order(values, None) == 3.0
    assert mean_in_any_order(values, weight) == 2.5


@given(
    st.lists(st.tuples(st.floats(-1e200, 1e200), st.floats(0.5, 4), st.integers(0, 2)), min_size=1),
    st.booleans(),
)
def test_means_are_the_same_wherever_the_numbers_are(rows, weighted):
    values, weight, owner = (np.array(each) for each in zip(*rows, strict=True))
    weight = weight if weighted else None

    def mean_of_part(k, members):
        own = owner == k
        return mean_in_any_order(values[own], None if weight is None else weight[own], members)

    expected = mean_in_any_order(values, weight)
    assert together([partial(mean_of_part, k) for k in range(3)]) == [expected] * 3


@pytest.mark.parametrize("values", [[math.inf], [-math.inf], [math.inf, -math.inf], [math.nan]])
def test_means_of_members_that_are_not_finite(values):
    parts = np.array([1.0, 2.0]), np.array(values)
    expected = mean_in_any_order(np.concatenate(parts), None)
    found = together([partial(mean_in_any_order, part, None) for part in parts])
    np.testing.assert_array_equal(found, [expected] * 2)


@given(st.lists(st.lists(ANY_SIZE, min_size=3, max_size=3), max_size=5))
def test_sums_of_rows(values):
    array = np.array(values, dtype=np.float64).reshape(-1, 3)
    assert sums_in_any_order(array).tolist() == [total(row) for row in array]


@pytest.mark.parametrize("weight", [None, np.array([2.0, 1.0, 0.5])])
def test_means_of_rows(weight):
    array = np.array([[1.0, 2.0, 6.0], [0.1, 0.2, 1e9], [math.nan, 1.0, 2.0]])
    expected = [mean_in_any_order(row, weight) for row in array]
    np.testing.assert_array_equal(mean_in_any_order(array, weight), expected)
