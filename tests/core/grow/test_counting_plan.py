"""What is to be sent, told before, beside what comes."""

import numpy as np
import pytest

from dtrees.core.grow.counting_plan import CountingPlan
from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.grow.round_roots import columns_of, roots_of
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.stores.blocks.block import Resolution
from tests.laws.tables import blocks_of, cut_in_parts, seeded, spec_of

RESOLUTIONS = [Resolution(), Resolution(4, 5, 3), Resolution(0, 2, 0), Resolution(4, 300, 65_535)]


@pytest.mark.parametrize("draws", [{}, {"max_features": 2, "seed": 1}])
@pytest.mark.parametrize("resolution", RESOLUTIONS, ids=str)
def test_numbers_that_come(resolution, draws):
    """Histograms have as many as were told, lists at most."""
    example = seeded("gini", 3, "none", **draws)
    parts, thresholds = cut_in_parts(example, 40, 90), example.thresholds
    spec = spec_of(parts, example.rules, thresholds, resolution=resolution, gather_rows=5)
    blocks = LocalBlocks(blocks_of(parts))
    blocks.begin(spec.common)
    batch = TreeBatch(spec, (0,), roots_of(spec, (0,), blocks))
    n_codes = 0

    def taken(update, requests):
        counts = blocks.count(update, requests)
        assert counts.histogram.size == sum(request.n_numbers for request in requests)
        n_listed = 0 if counts.stored is None else len(counts.stored.places)
        assert n_listed <= sum(request.n_stored for request in requests)
        return counts, n_listed

    while batch.frontier:
        nodes = batch.next_nodes()
        counts, _ = taken(batch.take_update(), batch.requests(nodes))
        batch.take(nodes, counts)
        while batch.waiting:
            some = batch.take_waiting()
            counts, n_listed = taken(None, batch.code_requests(some))
            n_codes += n_listed
            batch.take_codes(some, counts)
    assert (n_codes > 0) == (resolution.interval_codes < 100 and resolution.n_intervals < 100)


def test_bytes_of_a_node_are_those_of_its_largest_columns():
    example = seeded("gini", 3, "none", max_features=2)
    parts = cut_in_parts(example, 40)
    spec = spec_of(parts, example.rules, example.thresholds)
    columns = np.arange(len(example.table), dtype=np.int32)
    plan = CountingPlan(spec, columns_of(spec, 0), columns, 2)
    sizes = np.sort(spec.sample.n_codes + 1)
    assert plan.bytes_of_node(50) == 8 * 3 * int(sizes[-2:].sum())
    assert plan.n_numbers(columns, False) == 3 * int(sizes.sum())
