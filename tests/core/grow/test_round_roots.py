"""Roots of trees that grow in rounds know of their bags what a fit in one place knows."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.grow.round_roots import columns_of, roots_of, target_of, tree_of
from dtrees.core.membership.resampling import Bags
from dtrees.core.membership.shares import Shares
from dtrees.core.stores.blocks.block import Draws
from dtrees.core.stores.sampled._sampled_columns import drawn_columns
from tests.laws.tables import blocks_of, cut_in_parts, seeded, spec_of

NUMBERS = range(2, 7)


class Uncalled:
    """Blocks that are asked for nothing."""


def roots(example, draws, **limits):
    parts = cut_in_parts(example, 40, 40, 90)
    spec = spec_of(parts, example.rules, None, draws=draws, **limits)
    blocks = LocalBlocks(blocks_of(parts))
    blocks.begin(spec.common)
    return spec, roots_of(spec, NUMBERS, blocks)


def bagged(example, draws, number):
    bags = Bags(draws.seed, draws.rate, np.arange(example.n_rows, dtype=np.uint64))
    times = bags.multiplicity(number, example.target.has_weight)
    return times, example.target.bagged(times, draws.balanced)


def test_most_roots_ask_for_nothing():
    example = seeded("gini", 3, "none")
    spec = spec_of(cut_in_parts(example, 40), example.rules, None, draws=Draws(1, 1.0))
    found = roots_of(spec, NUMBERS, Uncalled())
    assert [root.number for root in found] == list(NUMBERS)
    assert all(root.key is None and root.class_multiplier is None for root in found)


def test_an_empty_bag_has_the_row_of_the_largest_draw():
    example, draws = seeded("gini", 3, "zeros"), Draws(1, 0.005)
    _, found = roots(example, draws, may_be_empty=True)
    alone = [root for root in found if root.key is not None]
    assert 0 < len(alone) < len(found)
    for root in alone:
        times, _ = bagged(example, draws, root.number)
        assert np.flatnonzero(times).tolist() == [root.key]


def test_balanced_bags_have_the_weights_of_one_place():
    example, draws = seeded("gini", 3, "none"), Draws(1, 0.4, balanced=True)
    spec, found = roots(example, draws)
    for root in found:
        _, expected = bagged(example, draws, root.number)
        target = target_of(spec, root)
        np.testing.assert_array_equal(target.class_multiplier, expected.class_multiplier)
        assert target.weight_unit == expected.weight_unit


@pytest.mark.parametrize("draws", [None, Draws(1, 0.4)])
def test_a_deviance_has_the_scale_of_one_place(draws):
    example = seeded("poisson", 0, "none")
    _, found = roots(example, draws)
    for root in found:
        target = example.target if draws is None else bagged(example, draws, root.number)[1]
        assert root.fixed_point == scale_of([target], example.rules).fixed_point


def test_columns_are_drawn_by_seed_and_number():
    """Draws that go on are in the order of one long draw, without repetition."""
    example = seeded("gini", 3, "none", max_features=3, seed=4)
    spec = spec_of(cut_in_parts(example, 40), example.rules, None)
    columns = columns_of(spec, 2)
    n_columns = spec.sample.n_columns
    whole = drawn_columns(columns, 99, 0, n_columns)
    assert sorted(whole.tolist()) == list(range(n_columns))
    stretches = [drawn_columns(columns, 99, first, 3) for first in range(0, n_columns, 3)]
    np.testing.assert_array_equal(np.concatenate(stretches), whole)
    np.testing.assert_array_equal(drawn_columns(columns_of(spec, 2), 99, 0, n_columns), whole)
    others = [drawn_columns(columns_of(spec, number), 99, 0, n_columns) for number in (3, 4)]
    assert all((other != whole).any() for other in others)


def test_shares_are_those_of_the_set():
    example = seeded("gini", 3, "integers")
    spec = spec_of(cut_in_parts(example, 40), example.rules, None)
    spec = replace(spec, shares=Shares(min_samples_leaf=0.1), n_rows=np.array([95]))
    sums = np.array([95, 170, 0, 0, 0, 0, 0, 0, 60, 60, 50])
    found = tree_of(spec, 5, 0, spec.target, sums)
    assert (found.rules.min_samples_leaf, found.rules.tree) == (10, 5)
    assert found.scale.total_weight == 170 * spec.target.weight_unit
