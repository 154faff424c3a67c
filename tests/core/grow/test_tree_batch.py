"""What a batch of trees asks of the blocks, round by round."""

import numpy as np
import pytest

from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.grow.round_roots import roots_of
from dtrees.core.grow.tree_batch import TreeBatch
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
