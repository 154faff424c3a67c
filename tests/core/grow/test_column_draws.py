"""Draws of columns in boosted trees: how many, which, and of what they depend."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.core.grow.boosted_cases import UNITS, free_rules, grown, random_columns, table_of

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
