"""Trees from histograms of blocks, and the intervals of codes that are asked for once more."""

import numpy as np
import pytest

from dtrees.core.grow.rounds import LocalBlocks, grow_in_rounds
from dtrees.core.stores.blocks._histogram_store import STRETCH
from dtrees.core.stores.blocks.block import Resolution
from tests.laws.tables import (
    SEVEN_WAYS,
    Example,
    blocks_of,
    coded,
    coded_sparse,
    cut_in_parts,
    fit,
    grow_parts,
    seeded,
    spec_of,
)
from tests.laws.test_growth import assert_equal
from tests.oracle.greedy import assert_tree_is_greedy


@pytest.mark.one_of(8)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_greedy_tree_from_histograms_of_blocks(case, sparse):
    kinds = ("ties", "hybrid", "categories", "distinct", "mostly")
    example = seeded(*case, kinds=kinds, n_rows=40, max_depth=3)
    matrix = coded_sparse(example.table, 2) if sparse else coded(example.table)
    blocks = np.split(np.arange(40), [11, 29])
    parts = [(matrix.take(rows), example.target.take(rows)) for rows in blocks]
    tree = grow_parts(example, parts, gather_rows=0)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


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


@pytest.mark.one_of(4)
@pytest.mark.parametrize("n_intervals", [1, 2, 6, 50, 1000])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_split_is_in_one_of_them(case, n_intervals):
    example = seeded(*case, kinds=("distinct", "counts", "missing", "distinct"))
    tree, _ = grown(example, n_intervals)
    assert_equal(tree, fit(example))


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_few_are_asked_for_and_more_than_a_stretch_is_looked_at(criterion):
    n = 3000
    assert n // 2 > STRETCH
    rng = np.random.default_rng(0)
    x = rng.permutation(n).astype(float)
    y = np.digitize(x, [800, 2000]) if criterion == "gini" else np.digitize(x, [800, 2000]) / 2
    example = Example([x.tolist()], y, None, criterion)
    tree, alive = grown(example, n // 2)
    assert_equal(tree, fit(example))
    assert len(tree.feature) == 5
    assert len(alive) == 2
    assert max(alive) < 20
