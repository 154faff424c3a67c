"""Rows of a boosted fit: their derivatives, and the draws of an iteration."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._boosted_rows import RowDerivatives, RowDraws, RowSquares
from dtrees.core.grow._team import Team
from dtrees.core.losses.losses import CLASSES, NUMBERS
from tests.core.grow.boosted_cases import UNITS, free_rules, grown, random_columns, table_of

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


N_SQUARES, SCALE = 5000, 2.0**24


def packed(y, weight=None, are_counts=True):
    """Of squared errors from zero."""
    rows = RowDerivatives(NUMBERS["squared_error"], np.zeros(1), y, weight, Team(), are_counts)
    rows.derive(SCALE, SCALE)
    return rows.packed[0]


@pytest.fixture
def y():
    return np.random.default_rng(1).normal(size=N_SQUARES)


@pytest.fixture
def weight():
    return np.random.default_rng(2).integers(1, 8, N_SQUARES).astype(float)


def test_rows_without_weights(y):
    some = np.arange(0, N_SQUARES, 3)
    found = RowSquares(None, 1.0, True).of_rows(packed(y), some)
    assert found / SCALE**2 == pytest.approx((y[some] ** 2).sum(), rel=1e-6)


def test_a_row_of_weight_two_is_two_rows(y, weight):
    found = RowSquares(weight, 7.0, True).of_rows(packed(y, weight), np.arange(N_SQUARES))
    repeated = np.repeat(y, weight.astype(int))
    assert found == RowSquares(None, 1.0, True).of_rows(packed(repeated), np.arange(len(repeated)))


def test_other_weights(y, weight):
    weight = weight / 20
    found = RowSquares(weight, 0.35, False).of_rows(packed(y, weight, False), np.arange(N_SQUARES))
    assert found / SCALE**2 == pytest.approx((weight * y * y).sum(), rel=1e-5)


def test_the_order_of_the_rows_does_not_matter(y, weight):
    squares = RowSquares(weight / 7, 1.0, False)
    both = packed(y, weight / 7, False)
    order = np.random.default_rng(3).permutation(N_SQUARES)
    assert squares.of_rows(both, order) == squares.of_rows(both, np.arange(N_SQUARES))


def drawn(n_rows, share, chosen=None, seed=3, iteration=0):
    draws = RowDraws(n_rows, chosen)
    draws.draw(seed, iteration, share)
    return draws


@given(st.integers(1, 300), st.sampled_from([1e-9, 0.1, 0.5, 0.999, 1.0]), st.integers(0, 9))
def test_both_sides_ascend_and_are_all_rows(n_rows, share, iteration):
    draws = drawn(n_rows, share, iteration=iteration)
    assert draws.n_drawn == len(draws.drawn) >= 1
    assert sorted([*draws.drawn, *draws.others]) == list(range(n_rows))
    for rows in (draws.drawn, draws.others):
        assert (np.diff(rows.astype(int)) > 0).all()


@given(st.sets(st.integers(0, 400), min_size=5))
def test_a_row_is_drawn_by_its_number(numbers):
    whole = set(drawn(401, 0.4).drawn.tolist())
    some = np.array(sorted(numbers), dtype=np.uint32)
    draws = drawn(len(some), 0.4, some)
    wanted = whole & numbers
    assert set(draws.drawn.tolist()) == wanted or (not wanted and draws.n_drawn == 1)


def test_a_larger_share_draws_more_of_the_same_rows():
    few, many = drawn(2_000, 0.3), drawn(2_000, 0.6)
    assert set(few.drawn.tolist()) < set(many.drawn.tolist())
    assert few.n_drawn == pytest.approx(600, abs=80)


def test_where_none_is_drawn_the_nearest_is():
    (row,) = drawn(50, 1e-12).drawn
    nearest = next(
        draws.drawn.tolist()
        for share in np.arange(1, 100) / 1000
        if (draws := drawn(50, share)).n_drawn > 0
    )
    assert row == nearest[0]


RNG = np.random.default_rng(3)
N = 400


def case(n_columns=8):
    table = table_of(random_columns(RNG, N, n_columns, kinds=("numbers", "missing")))
    return table, RNG.integers(-(2**20), 2**20, N), np.full(N, 2**18)


def columns_of(rules, table, gradient, hessian, **how):
    _, piece = grown(table, gradient, hessian, rules, **how)
    return piece.nodes["column"].tolist()


@pytest.mark.parametrize("share", [1e-9, 0.3, 0.5, 0.9])
def test_roots_look_at_as_many_columns_as_drawn(share):
    """Over many seeds the root is split by the best column in that share of the trees."""
    made = case()
    (best, *_) = columns_of(free_rules(max_leaf_nodes=2), *made)
    rules = free_rules(max_leaf_nodes=2, max_features=share)
    found = [columns_of(replace(rules, seed=seed), *made)[0] for seed in range(60)]
    drawn = max(1, math.ceil(share * 8))
    assert np.mean([column == best for column in found]) == pytest.approx(drawn / 8, abs=0.2)


def test_nodes_draw_for_themselves():
    made = case()
    rules = free_rules(max_leaf_nodes=31, max_features=0.13)  # two columns
    assert len(set(columns_of(rules, *made)) - {-2}) > 2
    assert columns_of(rules, *made) == columns_of(rules, *made, helped=True)
    assert columns_of(rules, *made) != columns_of(replace(rules, seed=1), *made)


def test_trees_draw_for_themselves():
    table, gradient, hessian = case()
    grower, piece = grown(table, gradient, hessian, free_rules(max_leaf_nodes=9, max_features=0.3))
    packed = (gradient.astype(np.int64) << 32 | hessian).view(np.uint64)
    sums = int(hessian.sum()), int(gradient.sum())
    pieces = []
    for number in (0, 0, 1):
        grower.grow(packed, *sums, UNITS, number)
        pieces.append(grower.piece())
    first, again, other = pieces
    assert first.nodes.tobytes() == again.nodes.tobytes() == piece.nodes.tobytes()
    assert first.nodes.tobytes() != other.nodes.tobytes()


def test_a_share_is_of_the_columns_that_may_be_used():
    table, gradient, hessian = case(6)
    rules = free_rules(interactions=((0, 1), (2, 3, 4, 5)), max_features=0.5, max_leaf_nodes=63)
    for seed in range(5):
        _, piece = grown(table, gradient, hessian, replace(rules, seed=seed))
        used = set(piece.nodes["column"].tolist()) - {-2}
        assert used <= {0, 1} or used <= {2, 3, 4, 5}
        assert len(used) > 1
