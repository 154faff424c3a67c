"""What a batch of trees asks of the blocks, round by round."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dtrees.core.grow._round_tree import RoundNode
from dtrees.core.grow.round_spec import roots_of
from dtrees.core.grow.rounds import LocalBlocks
from dtrees.core.grow.tree_batch import (
    CountingPlan,
    Frontier,
    OpenNode,
    Pair,
    TreeBatch,
    WaitingNode,
    bits_of,
)
from dtrees.core.membership.shares import Shares
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks.block import Resolution
from dtrees.core.stores.sampled._sampled_columns import drawn_columns
from tests.laws.tables import blocks_of, cut_in_parts, fit, seeded, spec_of
from tests.laws.test_growth import assert_equal


def batch_of(example, numbers=(0,), **limits):
    parts = cut_in_parts(example, 40, 90)
    spec = spec_of(parts, example.rules, example.thresholds, **limits)
    blocks = LocalBlocks(blocks_of(parts))
    blocks.begin(spec.common)
    return TreeBatch(spec, numbers, roots_of(spec, numbers, blocks)), blocks


def rounds_of(batch, blocks):
    """The update, the nodes and the requests of each round."""
    while batch.frontier:
        nodes = batch.next_nodes()
        update, requests = batch.take_update(), batch.requests(nodes)
        batch.take(nodes, blocks.count(update, requests))
        yield update, nodes, requests


def test_the_first_round_is_of_the_roots():
    batch, blocks = batch_of(seeded("gini", 3, "none"), (4, 7), gather_rows=0)
    update, nodes, requests = next(rounds_of(batch, blocks))
    assert [root.number for root in update.roots] == [4, 7]
    assert [root.node for root in update.roots] == [node.node for node in nodes] == [0, 1]
    n_numbers = int(3 * (batch._spec.sample.n_codes + 1).sum())  # rows of three classes
    assert [request.n_numbers for request in requests] == [n_numbers, n_numbers]


def test_trees_of_few_rows_are_gathered_as_they_are():
    example = seeded("gini", 3, "none")
    batch, _ = batch_of(example, (4, 7), gather_rows=example.n_rows)
    assert not batch.frontier
    assert [(node.number, node.depth, node.n) for node in batch.gathered] == [
        (4, 0, example.n_rows),
        (7, 0, example.n_rows),
    ]
    update = batch.take_update()
    assert [root.node for root in update.roots] == [node.node for node in batch.gathered]
    assert update.splits == update.done == ()


def test_an_update_tells_what_has_changed_and_once():
    batch, blocks = batch_of(seeded("gini", 3, "none"), gather_rows=0)
    known = set()
    for update, nodes, _ in rounds_of(batch, blocks):
        known |= {root.node for root in update.roots}
        for split in update.splits:
            assert split.node in known
            assert not known & {split.left, split.right}
            known |= {split.left, split.right}
        assert set(update.done) <= known
        known -= set(update.done)
        assert {node.node for node in nodes} <= known
    last = batch.take_update()
    assert known - set(last.done) == set()


def test_one_of_two_siblings_is_counted():
    batch, blocks = batch_of(seeded("gini", 3, "none"), gather_rows=0)
    n_pairs = 0
    for _, nodes, requests in rounds_of(batch, blocks):
        for node, request in zip(nodes, requests, strict=True):
            asked = node.columns if request.columns is None else request.columns
            assert len(asked) == (0 if node.is_large else len(node.columns))
            n_pairs += node.is_large
    assert n_pairs > 5


@pytest.mark.parametrize("gather_rows", [0, 20, 1000])
def test_nodes_of_few_rows_are_gathered(gather_rows):
    example = seeded("gini", 3, "none")
    batch, blocks = batch_of(example, gather_rows=gather_rows)
    for update, nodes, _ in rounds_of(batch, blocks):
        assert all(node.n > gather_rows or update.roots for node in nodes)
    assert all(0 < node.n <= gather_rows for node in batch.gathered)
    assert (len(batch.gathered) == 0) == (gather_rows == 0)
    for place, pieces in blocks.finish(batch.take_update(), batch.gathered):
        assert batch.graft(place, pieces) == 0
    tree = batch.trees(0)[0]
    assert_equal(tree, fit(example))


def test_a_draw_is_extended_until_something_splits():
    """Columns that are constant in a node are no split; the node is asked for again."""
    example = seeded("gini", 2, "none", kinds=("constant",) * 5 + ("ties",), max_features=1, seed=1)
    batch, blocks = batch_of(example, gather_rows=0)
    asked = [requests[0].columns.tolist() for _, nodes, requests in rounds_of(batch, blocks)]
    first = asked[: asked.index([5]) + 1]
    assert len(first) > 1
    assert len(np.unique(first)) == len(first)


def node(number, sets=(0,), pair=None):
    return OpenNode(number, 0, {each: RoundNode(1, 7) for each in sets}, 10, pair=pair)


def test_nodes_come_first_come_first_served_within_the_budget():
    frontier = Frontier()
    frontier.extend([node(0), node(1, (0, 1)), node(2), node(3)])
    found = []
    while frontier:
        found.append(
            [each.node for each in frontier.next_nodes(lambda node: 10 * len(node.of_sets), 30)]
        )
    assert found == [[0, 1], [2, 3]]


@pytest.mark.parametrize("budget", [0, 25])
def test_siblings_of_a_pair_go_together(budget):
    """Though a single node is more than the budget."""
    pair = Pair(1, 2, {})
    frontier = Frontier()
    frontier.extend([node(0), node(1, pair=pair), node(2, pair=pair), node(3)])
    found = []
    while frontier:
        found.append([each.node for each in frontier.next_nodes(lambda node: 10, budget)])
    assert found == [[0], [1, 2], [3]]


def test_sets_of_a_node_ask_together():
    """Of each column what one of them wants, columns ascending; who wants nothing, does not ask."""

    def search(**wanted):
        bits = {int(name[1:]): np.array([alive], dtype=np.uint64) for name, alive in wanted.items()}
        return SimpleNamespace(wanted=bits)

    searches = {0: search(), 2: search(c5=0b11, c7=0b1), 3: search(c1=0b100, c5=0b110)}
    found = WaitingNode(node(0, (0, 2, 3)), searches, {})
    assert bits_of(found.asking) == 0b1100
    assert list(found.asking) == [2, 3]
    assert {column: alive.tolist() for column, alive in found.wanted.items()} == {
        1: [0b100],
        5: [0b111],
        7: [0b1],
    }
    assert list(found.wanted) == [1, 5, 7]
    assert searches[2].wanted[5].tolist() == [0b11]  # its own is as it was


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
            some, requests = batch.take_waiting()
            counts, n_listed = taken(None, requests)
            n_codes += n_listed
            batch.take_codes(some, counts)
    assert (n_codes > 0) == (resolution.interval_codes < 100 and resolution.n_intervals < 100)


def test_bytes_of_a_node_are_those_of_its_largest_columns():
    example = seeded("gini", 3, "none", max_features=2)
    parts = cut_in_parts(example, 40)
    spec = spec_of(parts, example.rules, example.thresholds)
    columns = np.arange(len(example.table), dtype=np.int32)
    dataset = Dataset(spec.sample, spec.target, spec.common.rules)
    plan = CountingPlan(spec, dataset, columns, 2)
    sizes = np.sort(spec.sample.n_codes + 1)
    node = OpenNode(0, 0, {3: RoundNode()}, 50)
    assert plan.bytes_of_node(node) == 8 * 3 * int(sizes[-2:].sum())
    assert plan.n_numbers(columns, False) == 3 * int(sizes.sum())


def test_columns_are_drawn_by_seed_and_number():
    """Draws that go on are in the order of one long draw, without repetition."""
    example = seeded("gini", 3, "none", max_features=3, seed=4)
    batch, _ = batch_of(example, (2, 3, 4, 2))
    n_columns = len(example.table)
    whole, *others, again = [drawn_columns(own, 99, 0, n_columns) for own in batch._columns]
    assert sorted(whole.tolist()) == list(range(n_columns))
    stretches = [drawn_columns(batch._columns[0], 99, first, 3) for first in range(0, n_columns, 3)]
    np.testing.assert_array_equal(np.concatenate(stretches), whole)
    np.testing.assert_array_equal(again, whole)
    assert all((other != whole).any() for other in others)


def test_shares_are_those_of_the_set():
    example = seeded("gini", 3, "integers")
    batch, _ = batch_of(
        example, (5,), shares=Shares(min_samples_leaf=0.1), gather_rows=example.n_rows
    )
    (node,) = batch.gathered
    live = example.target.n_live
    assert (node.rules[0].min_samples_leaf, node.rules[0].tree) == (math.ceil(0.1 * live), 5)
    assert node.scales[0].total_weight == example.target.total_weight
