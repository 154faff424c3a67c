"""Blocks in this process: each is a task, and answers add up."""

import numpy as np
import pytest

from dtrees.core.grow.local_blocks import AT_ONCE, LocalBlocks
from dtrees.core.grow.rounds import grow_in_rounds
from dtrees.core.stores.blocks.block import Draws
from dtrees.core.stores.blocks.messages import HistogramRequest, Root, SplitUpdate
from tests.laws.tables import blocks_of, cut_in_parts, seeded, spec_of
from tests.laws.test_growth import assert_equal

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
