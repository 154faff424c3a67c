"""Derivatives of rows, whoever derives them, and squares of their gradients."""

import threading

import numpy as np
import pytest

from dtrees.core.grow._row_derivatives import RowDerivatives, RowSquares
from dtrees.core.grow._team import Team
from dtrees.core.losses.losses import CLASSES, NUMBERS

N_ROWS = 3 * 2**13 + 5  # stretches, the last of which is short


def rows_of(team, loss, initial, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, max(2, len(initial)), N_ROWS).astype(float)
    found = RowDerivatives(loss, initial, y, rng.random(N_ROWS), team)
    found.raw[:] += rng.normal(size=found.raw.shape)
    return found


@pytest.mark.parametrize(
    ("loss", "n_values"),
    [(CLASSES["log_loss"], 1), (CLASSES["log_loss"], 3), (NUMBERS["poisson"], 1)],
)
def test_helpers_change_nothing(loss, n_values):
    alone = rows_of(Team(), loss, np.zeros(n_values))
    sums = alone.derive(2.0**20, 2.0**20, n_values == 1)
    team = Team()
    thread = threading.Thread(target=team.help)
    thread.start()
    try:
        helped = rows_of(team, loss, np.zeros(n_values))
        np.testing.assert_array_equal(helped.derive(2.0**20, 2.0**20, n_values == 1), sums)
    finally:
        team.close()
        thread.join(60)
    assert helped.packed.tobytes() == alone.packed.tobytes()
    assert helped.largest == alone.largest
    assert (helped.largest[0] > 0) == (n_values == 1)


def test_a_word_holds_all_bits_of_both():
    loss = NUMBERS["squared_error"]
    rows = RowDerivatives(loss, np.zeros(1), np.arange(4.0), None, Team())
    ((gradient, hessian),) = rows.derive(2.0**28, 2.0**31).tolist()
    assert (gradient, hessian) == (-6 * 2**28, 4 * 2**31)
    words = rows.packed[0]
    assert (words & np.uint64(2**32 - 1)).tolist() == [2**31] * 4
    assert (words.view(np.int64) >> 32).tolist() == [0, -(2**28), -(2**29), -3 * 2**28]


def test_all_rows_begin_alike():
    rows = RowDerivatives(CLASSES["log_loss"], np.array([1.0, 2.0, 3.0]), np.zeros(4), None, Team())
    np.testing.assert_array_equal(rows.raw, np.repeat([[1.0], [2.0], [3.0]], 4, axis=1))
    assert (rows.n_values, rows.n_rows) == (3, 4)


def test_a_scale_is_a_factor():
    rows = RowDerivatives(
        NUMBERS["squared_error"], np.zeros(1), np.array([1.0, -2.0]), None, Team()
    )
    np.testing.assert_array_equal(rows.derive(8.0, 4.0, measures=True), [[8, 8]])
    np.testing.assert_array_equal(rows.packed.view(np.int64)[0] >> 32, [-8, 16])
    assert rows.largest == (2.0, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "n_values"),
    [(CLASSES["log_loss"], 1), (CLASSES["log_loss"], 3), (NUMBERS["gamma"], 1)],
)
def test_chosen_rows_are_a_table_of_their_own(loss, n_values, weighted):
    rng = np.random.default_rng(1)
    chosen = np.flatnonzero(rng.random(N_ROWS) < 0.7).astype(np.uint32)
    y = rng.integers(0, max(2, n_values), N_ROWS).astype(float)
    raw = rng.normal(size=(n_values, N_ROWS))
    weight = rng.random(N_ROWS) if weighted else None
    among = RowDerivatives(loss, np.zeros(n_values), y, weight, Team(), True, chosen)
    own_weight = None if weight is None else weight[chosen]
    alone = RowDerivatives(loss, np.zeros(n_values), y[chosen], own_weight, Team())
    among.raw[:], alone.raw[:] = raw, raw[:, chosen]
    among.packed[:] = 7
    sums = among.derive(2.0**20, 2.0**20, n_values == 1)
    np.testing.assert_array_equal(sums, alone.derive(2.0**20, 2.0**20, n_values == 1))
    np.testing.assert_array_equal(among.packed[:, chosen], alone.packed)
    others = np.setdiff1d(np.arange(N_ROWS), chosen)
    assert (among.packed[:, others] == 7).all()
    assert among.largest == alone.largest


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
