"""Rows and columns of boosted trees are drawn by their numbers, and by nothing else."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._boosted_draws import RowDraws
from tests.core.grow.boosted_cases import UNITS, free_rules, grown, random_columns, table_of


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


def test_iterations_and_seeds_differ():
    found = [drawn(200, 0.5, seed=s, iteration=i).drawn.tolist() for s in (0, 1) for i in (0, 1)]
    assert len({tuple(rows) for rows in found}) == 4


RNG = np.random.default_rng(3)
N = 400


def case(n_columns=8):
    table = table_of(random_columns(RNG, N, n_columns, kinds=("numbers", "missing")))
    return table, RNG.integers(-(2**20), 2**20, N), np.full(N, 2**18)


def columns_of(rules, table, gradient, hessian, **how):
    _, piece = grown(table, gradient, hessian, rules, **how)
    return piece.nodes["column"].tolist()


def test_a_share_of_one_draws_nothing():
    made = case()
    plain = columns_of(free_rules(max_leaf_nodes=31), *made)
    assert plain == columns_of(free_rules(max_leaf_nodes=31, max_features=1.0, seed=5), *made)


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
