"""What trees are grown from in rounds, and the same for one training set."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.grow.round_spec import roots_of, sets_of_scales, weighed
from dtrees.core.grow.rounds import LocalBlocks
from dtrees.core.membership.resampling import Bags, ClassWeights
from dtrees.core.stores.blocks._node_counts import CLASS_0, TARGET, WEIGHT, N
from dtrees.core.stores.blocks.block import Draws
from tests.laws.tables import blocks_of, cut_in_parts, seeded, spec_of

EXAMPLE = seeded("gini", 2, "none")
SPEC = spec_of(cut_in_parts(EXAMPLE, 70), EXAMPLE.rules, None)


def test_some_of_the_sets():
    masks = np.array([0b001, 0b011, 0b110, 0b101], dtype=np.uint64)
    common = replace(SPEC.common, masks=masks)
    spec = replace(SPEC, common=common, n_sets=3, n_rows=np.array([40, 60, 50]))
    some = spec.some([2, 0])
    assert some.common.masks.tolist() == [0b10, 0b10, 0b01, 0b11]
    assert (some.n_sets, some.n_rows.tolist()) == (2, [50, 40])
    assert some.class_weights is None


NUMBERS = range(2, 7)


class Uncalled:
    """Blocks that are asked for nothing."""


def roots(example, draws, **limits):
    parts = cut_in_parts(example, 40, 40, 90)
    spec = spec_of(parts, example.rules, None, draws=draws, **limits)
    blocks = LocalBlocks(blocks_of(parts))
    blocks.begin(spec.common)
    found = roots_of(spec, NUMBERS, blocks)
    return spec, found.roots


def bagged(example, draws, number):
    bags = Bags(draws.seed, draws.rate, np.arange(example.n_rows, dtype=np.uint64))
    times = bags.multiplicity(number, example.target.has_weight)
    return times, example.target.bagged(times)


def test_most_roots_ask_for_nothing():
    example = seeded("gini", 3, "none")
    how = {"draws": Draws(1, 1.0), "gather_rows": 20}
    spec = spec_of(cut_in_parts(example, 40), example.rules, None, **how)
    found = roots_of(spec, NUMBERS, Uncalled())
    assert [root.number for root in found.roots] == list(NUMBERS)
    assert all(root.key is None for root in found.roots)
    assert found.sums is None


def test_an_empty_bag_has_the_row_of_the_largest_draw():
    example, draws = seeded("gini", 3, "zeros"), Draws(1, 0.005)
    _, found = roots(example, draws, may_be_empty=True)
    alone = [root for root in found if root.key is not None]
    assert 0 < len(alone) < len(found)
    for root in alone:
        times, _ = bagged(example, draws, root.number)
        assert np.flatnonzero(times).tolist() == [root.key]


@pytest.mark.parametrize("draws", [None, Draws(1, 0.4)])
def test_a_deviance_has_the_scale_of_one_place(draws):
    example = seeded("poisson", 0, "none")
    _, found = roots(example, draws)
    for root in found:
        target = example.target if draws is None else bagged(example, draws, root.number)[1]
        assert root.fixed_point == scale_of(target, example.rules).fixed_point


def test_sets_of_a_deviance_grow_together_where_scales_are_the_same():
    """Rows of the large target are in two of the sets; one set has no row in any bag."""
    example = seeded("poisson", 0, "none")
    y = np.where(np.arange(example.n_rows) % 4 == 0, 1e4 * example.y + 1e4, example.y)
    example = replace(example, y=y)
    parts = cut_in_parts(example, 40, 40, 90)
    cells = np.arange(example.n_rows, dtype=np.uint16) % 4
    masks = np.array([0b00101, 0b01111, 0b01110, 0b00111], dtype=np.uint64)
    spec = spec_of(parts, example.rules, None, gather_rows=0)
    common = replace(spec.common, masks=masks)
    spec = replace(spec, common=common, n_sets=5, n_rows=np.bincount(cells)[[0, 1, 2, 3, 0]])
    ends = np.cumsum([part[0].n_rows for part in parts])[:-1]
    own = np.split(cells, ends)
    blocks = LocalBlocks(
        [replace(block, cells=part) for block, part in zip(blocks_of(parts), own, strict=True)]
    )
    blocks.begin(spec.common)
    begin = roots_of(spec, (0,), blocks)
    assert sets_of_scales(spec, begin) == [[0, 2], [1, 3], [4]]


def test_sums_of_sets_with_the_weights_of_their_classes():
    sums = np.array(
        [[9, 9, 4, 0, 0, 0, 0, 0, 0, 0, 3, 4, 2], [5, 5, 1, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0]]
    )
    weights = ClassWeights(np.array([[1, 1, 1], [2, 3, 1], [1, 5, 7]]), np.zeros(3, dtype=int))
    found = weighed(sums, weights, [2, 1])
    assert found[:, [N, WEIGHT, TARGET]].tolist() == [[9, 37, 20], [5, 11, 3]]
    assert found[:, CLASS_0:].tolist() == [[3, 20, 14], [8, 3, 0]]
    assert sums[0, WEIGHT] == 9


def test_trees_of_few_rows_know_their_sums():
    example = seeded("gini", 3, "none")
    parts = cut_in_parts(example, 40, 90)
    spec = spec_of(parts, example.rules, None, gather_rows=example.n_rows)
    blocks = LocalBlocks(blocks_of(parts))
    blocks.begin(spec.common)
    assert spec.is_small
    for sums in roots_of(spec, NUMBERS, blocks).sums:
        assert sums[0, [N, WEIGHT]].tolist() == [example.n_rows] * 2
    for limits in {"gather_rows": example.n_rows - 1}, {"common": at_depth(spec, 0)}:
        assert not replace(spec, **limits).is_small


def at_depth(spec, max_depth):
    return replace(spec.common, rules=replace(spec.common.rules, max_depth=max_depth))
