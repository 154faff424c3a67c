"""Growth in rounds: the trees of one place, whatever the blocks and the budget."""

import numpy as np
import pytest

from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.rounds import AT_ONCE, LocalBlocks, grow_in_rounds
from dtrees.core.membership.resampling import Bags
from dtrees.core.stores.blocks.block import Draws
from dtrees.core.stores.blocks.messages import HistogramRequest, Root, SplitUpdate
from tests.laws.tables import (
    SEVEN_WAYS,
    blocks_of,
    coded,
    cut_in_parts,
    fit,
    grow_blocks,
    seeded,
    spec_of,
)
from tests.laws.test_growth import assert_equal


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("ends", [(), (1,), (50, 50, 100)])
def test_blocks_do_not_matter(case, ends):
    example = seeded(*case)
    thresholds = example.thresholds
    tree = grow_blocks(cut_in_parts(example, *ends), example.rules, thresholds, gather_rows=15)
    assert_equal(tree, fit(example))


def test_a_small_budget_takes_more_rounds():
    example = seeded("gini", 3, "none")
    parts, thresholds = cut_in_parts(example, 70), example.thresholds

    def depths_of_rounds(budget):
        spec = spec_of(parts, example.rules, thresholds, gather_rows=0, histogram_budget=budget)
        heard = []
        blocks = LocalBlocks(blocks_of(parts))
        ((_, (tree,)),) = grow_in_rounds(spec, [0], blocks, lambda *what: heard.append(what))
        assert_equal(tree, fit(example))
        assert {what for what, _ in heard} == {"round"}
        return [depth for _, depth in heard]

    few = depths_of_rounds(2**28)
    assert few == list(range(len(few)))  # all nodes of a depth in one round
    assert len(depths_of_rounds(1)) > 2 * len(few)


@pytest.mark.parametrize("rate", [0.01, 1.0])  # bags without a row, too
def test_trees_of_a_batch_are_those_of_a_forest(rate):
    example = seeded("gini", 3, "zeros", max_features=2, seed=3)
    parts, thresholds = cut_in_parts(example, 20, 90), example.thresholds
    bags = Bags(8, rate, np.arange(example.n_rows, dtype=np.uint64))
    growth = ForestGrowth(coded(example.table), example.target, example.rules, bags, thresholds)
    draws = Draws(bags.seed, bags.rate)
    spec = spec_of(parts, example.rules, thresholds, draws, may_be_empty=True, gather_rows=10)
    found = dict(grow_in_rounds(spec, [1, 5, 6], LocalBlocks(blocks_of(parts))))
    assert sorted(found) == [1, 5, 6]
    for number, (tree,) in found.items():
        assert_equal(tree, growth.tree(number))


EXAMPLE = seeded("gini", 3, "none")
COLUMNS = np.arange(4, dtype=np.int32)


def begun(*ends, draws=None, **how):
    parts = cut_in_parts(EXAMPLE, *ends)
    blocks = LocalBlocks(blocks_of(parts), **how)
    blocks.begin(spec_of(parts, EXAMPLE.rules, None, draws=draws).common)
    return blocks


def test_counts_and_bags_do_not_depend_on_the_blocks():
    draws = Draws(2, 0.5)
    request = HistogramRequest(0, 1, COLUMNS, 0)
    found = []
    for ends in ((), (50,), (0, 30, 150)):
        blocks = begun(*ends, draws=draws)
        ((sums, keys),) = blocks.bags([Root(0, 4)], 1)
        counts = blocks.count(SplitUpdate((Root(0, 4),)), [request])
        np.testing.assert_array_equal(sums.sums, counts.sums)
        assert len(keys) == len([n for n in np.diff([0, *ends, 150]) if n > 0])
        found.append(counts)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].sums, other.sums)
        np.testing.assert_array_equal(found[0].histogram, other.histogram)


def test_a_growth_forgets_the_one_before():
    blocks = begun(50)
    request = HistogramRequest(0, 1, COLUMNS, 0)
    blocks.count(SplitUpdate((Root(0, 0),)), [request])
    blocks.begin(spec_of(cut_in_parts(EXAMPLE, 50), EXAMPLE.rules, None).common)
    with pytest.raises(KeyError):
        blocks.count(SplitUpdate(), [request])


def test_few_nodes_are_finished_at_a_time():
    example = seeded("squared_error", 0, "none", kinds=("distinct",), n_rows=400)
    parts, thresholds = cut_in_parts(example, 100), example.thresholds
    sizes = []

    def run(tasks):
        sizes.append(len(tasks))
        return [task() for task in tasks]

    trees = []
    for limits, how in (({"gather_rows": 2}, {"run": run}), ({}, {})):
        spec = spec_of(parts, example.rules, thresholds, **limits)
        ((_, (tree,)),) = grow_in_rounds(spec, [0], LocalBlocks(blocks_of(parts), **how))
        trees.append(tree)
    assert max(sizes) == AT_ONCE
    assert_equal(*trees)
