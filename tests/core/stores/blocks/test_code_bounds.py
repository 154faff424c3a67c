"""Intervals that may hold the best boundary: it is in one of them, and they are few."""

import numpy as np
import pytest

from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.grow.rounds import grow_in_rounds
from dtrees.core.stores.blocks import _code_bounds
from dtrees.core.stores.blocks.block import Resolution
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    blocks_of,
    cut_in_parts,
    fit,
    seeded,
    spec_of,
)
from tests.laws.test_growth import assert_equal


class Asked(LocalBlocks):
    """Blocks that write down of how many intervals the codes are asked for, by node."""

    def __init__(self, blocks):
        super().__init__(blocks)
        self.alive = []

    def count(self, update, requests):
        if update is None:
            self.alive += [int(np.bitwise_count(request.alive).sum()) for request in requests]
        return super().count(update, requests)


def grown(example, n_intervals):
    parts = cut_in_parts(example, example.n_rows // 3)
    resolution = Resolution(interval_codes=4, n_intervals=n_intervals)
    thresholds = example.thresholds
    spec = spec_of(parts, example.rules, thresholds, resolution=resolution, gather_rows=0)
    blocks = Asked(blocks_of(parts))
    ((_, (tree,)),) = grow_in_rounds(spec, [0], blocks)
    return tree, blocks.alive


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_intervals", [1, 2, 6, 50, 1000])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_split_is_in_one_of_them(case, n_intervals):
    example = seeded(*case, kinds=("distinct", "counts", "missing", "distinct"))
    tree, _ = grown(example, n_intervals)
    assert_equal(tree, fit(example))


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_few_are_asked_for_and_more_than_a_stretch_is_looked_at(criterion):
    n = 3000
    assert n // 2 > _code_bounds.STRETCH
    rng = np.random.default_rng(0)
    x = rng.permutation(n).astype(float)
    y = np.digitize(x, [800, 2000]) if criterion == "gini" else np.digitize(x, [800, 2000]) / 2
    example = Example([x.tolist()], y, None, criterion)
    tree, alive = grown(example, n // 2)
    assert_equal(tree, fit(example))
    assert len(tree.feature) == 5
    assert len(alive) == 2
    assert max(alive) < 20
