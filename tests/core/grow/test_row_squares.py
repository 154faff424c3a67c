"""Squares of gradients of some rows, by the weights of the rows."""

import numpy as np
import pytest

from dtrees.core.grow._row_derivatives import RowDerivatives
from dtrees.core.grow._row_squares import RowSquares
from dtrees.core.grow._team import Team
from dtrees.core.losses.losses import NUMBERS

N, SCALE = 5000, 2.0**24


def packed(y, weight=None, are_counts=True):
    """Of squared errors from zero."""
    rows = RowDerivatives(NUMBERS["squared_error"], np.zeros(1), y, weight, Team(), are_counts)
    rows.derive(SCALE, SCALE)
    return rows.packed[0]


@pytest.fixture
def y():
    return np.random.default_rng(1).normal(size=N)


@pytest.fixture
def weight():
    return np.random.default_rng(2).integers(1, 8, N).astype(float)


def test_rows_without_weights(y):
    some = np.arange(0, N, 3)
    found = RowSquares(None, 1.0, True).of_rows(packed(y), some)
    assert found / SCALE**2 == pytest.approx((y[some] ** 2).sum(), rel=1e-6)


def test_a_row_of_weight_two_is_two_rows(y, weight):
    found = RowSquares(weight, 7.0, True).of_rows(packed(y, weight), np.arange(N))
    repeated = np.repeat(y, weight.astype(int))
    assert found == RowSquares(None, 1.0, True).of_rows(packed(repeated), np.arange(len(repeated)))


def test_other_weights(y, weight):
    weight = weight / 20
    found = RowSquares(weight, 0.35, False).of_rows(packed(y, weight, False), np.arange(N))
    assert found / SCALE**2 == pytest.approx((weight * y * y).sum(), rel=1e-5)


def test_the_order_of_the_rows_does_not_matter(y, weight):
    squares = RowSquares(weight / 7, 1.0, False)
    both = packed(y, weight / 7, False)
    order = np.random.default_rng(3).permutation(N)
    assert squares.of_rows(both, order) == squares.of_rows(both, np.arange(N))
