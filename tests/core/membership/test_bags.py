"""Bags: how often a row is in a tree's sample is a function of seed, tree and row, and Poisson."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees._random import BOOTSTRAP, keyed_counts, keyed_uint64
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Bags, poisson_steps
from dtrees.core.membership.shares import Shares
from dtrees.exceptions import StatisticsOverflowError
from tests.laws.tables import coded, examples, grow_blocks, thresholds_of


def bags(n_rows: int, seed: int = 3, rate: float = 1.0) -> Bags:
    return Bags(seed, rate, np.arange(n_rows, dtype=np.uint64))


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_steps_are_the_distribution_function(rate):
    steps = poisson_steps(rate)
    shares = np.cumsum([math.exp(-rate) * rate**k / math.factorial(k) for k in range(len(steps))])
    np.testing.assert_allclose(steps / 2.0**64, shares, rtol=1e-14)
    assert np.all(steps[1:] > steps[:-1])
    assert len(steps) <= 20  # nobody is in a bag more often: see SPARE_BITS


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_times_are_poisson_distributed(rate):
    n = 200_000
    times = bags(n, rate=rate).multiplicity(0)
    for k in range(4):
        share = math.exp(-rate) * rate**k / math.factorial(k)
        error = 5 * math.sqrt(share * (1 - share) / n)
        assert abs(np.mean(times == k) - share) < error
    # two trees are independent: so is their product
    other = bags(n, rate=rate).multiplicity(1)
    assert abs(np.mean(times * other) - rate**2) < 5 * (rate + rate**2) / math.sqrt(n)


@given(
    st.integers(0, 2**63), st.integers(0, 2**40), st.lists(st.integers(0, 2**64 - 1), max_size=30)
)
def test_a_row_draws_for_itself(seed, tree, rows):
    steps = poisson_steps(1.0)
    together = keyed_counts(seed, BOOTSTRAP, tree, np.array(rows, dtype=np.uint64), steps[None])
    for row, times in zip(rows, together, strict=True):
        (draw,) = keyed_uint64(seed, BOOTSTRAP, row, 1, tree)
        assert times == np.searchsorted(steps, draw, side="right")


def test_a_group_is_in_a_bag_together():
    groups = np.repeat(np.arange(50, dtype=np.uint64), 7)
    times = Bags(1, 1.0, groups).multiplicity(4).reshape(50, 7)
    assert (times == times[:, :1]).all()
    assert len(np.unique(times[:, 0])) > 2


def test_an_empty_bag_gets_the_row_that_would_be_first_at_a_higher_rate():
    n = 40
    drawn = bags(n, rate=1 / n)
    empty = 0
    for tree in range(60):
        times = drawn.multiplicity(tree)
        draws = keyed_uint64(3, BOOTSTRAP, 0, n, tree)
        if (draws < poisson_steps(1 / n)[0]).all():
            empty += 1
            assert np.flatnonzero(times).tolist() == [np.argmax(draws)]
            assert times.sum() == 1
    assert 10 < empty < 35  # a share of 1 / e


def test_an_empty_bag_of_groups_gets_a_group():
    groups = np.repeat(np.arange(3, dtype=np.uint64), 4)
    sizes = {Bags(0, 0.05, groups).multiplicity(tree).sum() for tree in range(40)}
    assert sizes <= {4, 8, 12}
    assert min(sizes) == 4


def test_a_bag_has_a_row_that_counts():
    counts = np.zeros(50, dtype=bool)
    counts[[7, 30]] = True
    for tree in range(40):
        plain_bag, bag = (bags(50).multiplicity(tree, given) for given in (None, counts))
        if plain_bag[counts].any():
            np.testing.assert_array_equal(bag, plain_bag)
        else:
            assert np.flatnonzero(bag).tolist() in ([7], [30])


@given(examples(draws=True), st.integers(0, 5))
def test_a_tree_of_a_bag_is_the_tree_of_these_weights(example, number):
    times = bags(example.n_rows).multiplicity(number)
    matrix = coded(example.table)
    growth = ForestGrowth(
        matrix, example.target, example.rules, bags(example.n_rows),
        example.thresholds,
    )  # fmt: skip
    if example.criterion == "poisson" and not (example.target.wy * times).any():
        return
    weighted = example.target.bagged(times)
    if not (weighted.w > 0).any():
        return
    rules = replace(example.rules, tree=number)
    halves = np.array_split(np.arange(example.n_rows), 2)
    parts = [(matrix.take(rows), weighted.take(rows)) for rows in halves]
    alone = grow_blocks(parts, rules, example.thresholds, gather_rows=0)
    assert growth.tree(number).equals(alone)


def test_without_bags_every_tree_sees_every_row():
    target = Target.classification([0, 1, 1, 0])
    matrix = coded([[1.0, 2.0, 3.0, 4.0]])
    growth = ForestGrowth(
        matrix, target, GrowthRules(criterion="gini"), None, thresholds_of([[1.0, 2.0, 3.0, 4.0]])
    )
    assert growth.times(3).tolist() == [1, 1, 1, 1]
    assert growth.tree(0).equals(growth.tree(1))
    assert growth.tree(0).n_node_samples[0] == 4


def test_overflow_is_an_error_and_room_can_be_left():
    weights = [0.3, 0.7]
    times = np.array([20, 20], dtype=np.uint16)
    with pytest.raises(StatisticsOverflowError, match="bag"):
        Target.classification([0, 1], np.array(weights) * 2.0**9).bagged(times * 2000)
    roomy = Target.classification([0, 1], weights, spare_bits=5).bagged(times)
    assert roomy.w.sum() * roomy.weight_unit == pytest.approx(20)
    y = [1.5, -7.25]
    bag = Target.regression(y, spare_bits=5).bagged(times)
    assert bag.to_value([bag.w.sum(), (bag.w * bag.y).sum()]) == pytest.approx(np.mean(y))


def test_a_tree_sees_its_bag_and_nothing_else():
    """Also where the rows that were drawn have no weight."""
    column = [float(i) for i in range(6)]
    target = Target.classification([0, 1, 1, 1, 1, 1], [1.0, 0, 0, 0, 0, 1.0])
    growth = ForestGrowth(
        coded([column]), target, GrowthRules(criterion="gini"), bags(6), thresholds_of([column])
    )
    alone = 0
    for number in range(30):
        times = growth.times(number)
        assert times[[0, 5]].any()
        alone += not times[[0, 5]].all()
        assert growth.tree(number).n_node_samples[0] == np.count_nonzero(times[[0, 5]])
    assert alone


def test_the_least_weight_of_a_leaf_is_a_share_of_the_bag():
    column = [float(i) for i in range(200)]
    target = Target.regression(np.arange(200.0))
    small = Bags(0, 0.1, np.arange(200, dtype=np.uint64))
    growth = ForestGrowth(
        coded([column]), target, GrowthRules(criterion="squared_error", min_weight_leaf=40.0),
        small, thresholds_of([column]), shares=Shares(min_weight_leaf=0.2),
    )  # fmt: skip
    for number in range(5):
        tree = growth.tree(number)
        total = growth.times(number).sum()
        leaves = tree.weighted_n_node_samples[tree.children_left < 0]
        assert tree.n_leaves > 1
        assert leaves.min() >= 0.2 * total


def weighted(means, seed=5):
    return Bags(seed, 1.0, np.arange(len(means), dtype=np.uint64), means)


@pytest.mark.parametrize("mean", [0.004, 0.3, 1.0, 1.7, 3.0, 40.0])
def test_rows_of_a_weight_are_drawn_as_often(mean):
    n = 40_000
    times = weighted(np.full(n, mean)).multiplicity(0)
    drawn = min(mean, 3.0)  # from there on each draw counts more
    error = 5 * math.sqrt(max(mean, mean * mean / drawn) / n)
    assert abs(times.mean() - mean) < error
    for k in range(3 if mean <= 3 else 1):
        share = math.exp(-drawn) * drawn**k / math.factorial(k)
        assert abs(np.mean(times == k) - share) < 5 * math.sqrt(share / n) + mean / 64


def test_a_weighted_row_draws_for_itself():
    means = np.random.default_rng(0).random(500) * 8
    times = weighted(means).multiplicity(3)
    half = Bags(5, 1.0, np.arange(500, dtype=np.uint64)[::2].copy(), means[::2])
    np.testing.assert_array_equal(half.multiplicity(3), times[::2])
    np.testing.assert_array_equal(
        weighted(np.ones(500)).multiplicity(3), bags(500, seed=5).multiplicity(3)
    )


def test_an_empty_bag_has_one_of_the_heaviest_rows():
    means = np.full(50, 1e-6)
    means[[7, 30]] = 25.0
    found = [np.flatnonzero(weighted(means, seed).multiplicity(0)).tolist() for seed in range(400)]
    assert {7, 30} == {row for rows in found for row in rows}
    assert all(found)


def test_rows_out_of_a_bag_have_no_sibling_in_it():
    groups = np.repeat(np.arange(60, dtype=np.uint64), 3)
    means = np.tile([0.1, 1.0, 0.0], 60)
    made = Bags(2, 1.0, groups, means)
    times = made.multiplicity(4)
    out = np.zeros(180, dtype=bool)
    out[made.rows_out(times)] = True
    np.testing.assert_array_equal(
        out, np.repeat((times * means).reshape(60, 3).sum(axis=1) == 0, 3)
    )
    assert (times.reshape(60, 3)[:, 0] <= times.reshape(60, 3)[:, 1]).all()
    assert (out & (times == 0)).sum() < (times == 0).sum()


def test_means_are_in_proportion_to_weights():
    y = [0, 0, 0, 1]
    target = Target.classification(y, class_weight="balanced", drawn=True)
    np.testing.assert_allclose(target.means, [2 / 3, 2 / 3, 2 / 3, 2])
    assert target.w is None
    assert target.class_multiplier is None
    half = Target.classification(y, [0.0, 0.5, 0.5, 1.0], drawn=True)
    np.testing.assert_allclose(half.means, [0, 0.75, 0.75, 1.5])
    assert half.n_live == 3
    assert Target.regression(y, [7.3] * 4, drawn=True).means is None
    some = Target.regression(y, [0, 0.1, 0.1, 0.1], drawn=True)
    assert (some.means, some.w.tolist(), some.wy) == (None, [0, 1, 1, 1], None)
    heavy = Target.regression(
        np.arange(10.0**6), np.where(np.arange(10**6) == 5, 1e6, 1), drawn=True
    )
    assert heavy.means.max() == 3000


def test_bags_by_their_name():
    keys = np.array([5, 3, 3, 9], dtype=np.uint64)
    for made in (bags(7, rate=0.3), Bags(2, 1.0, keys)):
        again = Bags.of_digest(made.digest(), None if made.by_row else keys)
        assert (again.seed, again.rate) == (made.seed, made.rate)
        np.testing.assert_array_equal(again.row_id, made.row_id)
    for wrong in (None, keys[::-1].copy(), keys[:3]):
        with pytest.raises(ValueError, match="The keys or weights of the rows"):
            Bags.of_digest(made.digest(), wrong)
    drawn = weighted(np.array([0.5, 1.5]))
    assert Bags.of_digest(drawn.digest(), None, drawn.means).digest() == drawn.digest()
    with pytest.raises(ValueError, match="The keys or weights of the rows"):
        Bags.of_digest(drawn.digest())
