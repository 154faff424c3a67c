"""The tree of a set in rounds: records, tests that blocks are told, subtrees that are grafted."""

import numpy as np
import pytest

from dtrees.core.data.scale import scale_of
from dtrees.core.grow._round_tree import RoundNode, RoundTree
from dtrees.core.grow.assembly import join
from dtrees.core.grow.source import DatasetSource
from dtrees.core.model.tree import IN_SUBSET, LEAF
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import N, sizes_of, ways_of
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, Resolution
from dtrees.core.stores.blocks.messages import (
    Histogram,
    HistogramRequest,
    NodeSplit,
    Root,
    SplitUpdate,
)
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, seeded
from tests.oracle.ties import ROOT, child


class Growing:
    """A tree whose rows are one block; nodes are numbered as they are opened."""

    def __init__(self, case, sparse=False, **limits):
        example = seeded(*case, n_rows=60, **limits)
        self.matrix = coded_sparse(example.table, 4) if sparse else coded(example.table)
        self.target = example.target
        self.rules, self.values = example.rules, example.values
        self.block = BlockOfRows(
            Block(self.matrix, self.target, 0), Common(example.rules, None, None)
        )
        scale = scale_of(example.target, example.rules)
        root = Root(0, 0, fixed_point=scale.fixed_point)
        self.index = self.block.advance({}, SplitUpdate((root,)))
        dataset = self.dataset = Dataset(
            self.matrix, example.target, example.rules, scale, self.values
        )
        self.tree = RoundTree(dataset, example.rules, scale)
        self.columns = np.arange(self.matrix.n_columns, dtype=np.int32)
        self.dense = self.columns[: 0 if sparse else None]
        self.first = np.concatenate([[0], np.cumsum(sizes_of(dataset))])
        self.n_nodes = 1
        self.tests = []  # None: of a leaf

    def counts(self, number):
        request = HistogramRequest(number, 1, self.columns, 0)
        counts = self.block.count(self.index, [request])
        return counts.sums[0], Histogram(counts.histogram, *next(counts.stored_lists())[:2])

    def search(self, node, histogram, one_by_one=None):
        ways = ways_of(self.dataset, Resolution())
        return self.tree.search(node, histogram, self.dense, ways, self.first, one_by_one)

    def split(self, node, number):
        """Record and split a node; its children with their numbers, none of a leaf."""
        sums, histogram = self.counts(number)
        found = None
        if not self.tree.record(node, sums):
            found, _ = self.search(node, histogram).split()
        self.tests.append(None if found is None else found[0])
        if found is None:
            return []
        test, left, right = found
        split = NodeSplit(number, self.n_nodes, self.n_nodes + 1, test.column, ((0, test),))
        self.n_nodes += 2
        self.index = self.block.advance(self.index, SplitUpdate((), (split,)))
        return [(left, split.left), (right, split.right)]


def assert_same(found, expected):
    for name in expected.nodes.dtype.names:
        if name != "subset":
            np.testing.assert_array_equal(found.nodes[name], expected.nodes[name])
    np.testing.assert_array_equal(found.statistics, expected.statistics)
    assert sorted(found.words.tolist()) == sorted(expected.words.tolist())


@pytest.mark.one_of(4)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("limits", [{}, {"random_splits": True, "seed": 3}], ids=["all", "random"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_breadth_first_from_histograms_is_depth_first_from_rows(case, limits, sparse):
    growing = Growing(case, sparse, **limits)
    waiting = [(RoundNode(), 0)]
    while waiting:
        waiting += growing.split(*waiting.pop(0))
    source = DatasetSource(growing.matrix, growing.target, growing.rules, values=growing.values)
    assert_same(join(growing.tree.pieces()), source.finish())


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_children_know_their_place_and_their_rows(case):
    growing = Growing(case)
    root = RoundNode(3, 77)
    (left, number), (right, other) = growing.split(root, 0)
    assert (left.depth, right.depth) == (4, 4)
    assert (left.path, right.path) == (child(77, True), child(77, False))
    assert (left.n, right.n) == (growing.counts(number)[0][N], growing.counts(other)[0][N])
    assert left.n + right.n == root.n


def test_a_test_is_that_of_the_record():
    growing = Growing(("gini", 3, "none"), kinds=("categories", "ties"))
    waiting = [(RoundNode(), 0)]
    while waiting:
        waiting += growing.split(*waiting.pop(0))
    (piece,) = growing.tree.pieces()
    assert {record["test"] for record in piece.nodes} >= {LEAF, IN_SUBSET}
    for record, test in zip(piece.nodes, growing.tests, strict=True):
        if test is None:
            assert record["test"] == LEAF
            continue
        for name in ("column", "test", "boundary", "missing_left"):
            assert record[name] == getattr(test, name)
        if test.subset is not None:
            words = piece.words[record["subset"] :][: len(test.subset)]
            np.testing.assert_array_equal(words, test.subset)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_one_by_one_end_at_the_first_that_can_be_split(sparse):
    kinds = ("constant", "ties", "distinct")
    growing = Growing(("gini", 3, "none"), sparse, kinds=kinds)
    for one_by_one, columns in ((True, {1}), (False, {1, 2})):
        node = RoundNode()
        sums, histogram = growing.counts(0)
        growing.tree.record(node, sums)
        columns_of = growing.columns if one_by_one else None
        split, can_be_split = growing.search(node, histogram, columns_of).split()
        assert can_be_split
        assert split[0].column in columns


def test_a_record_counts_rows_in_32_bits():
    growing = Growing(("gini", 2, "none"))
    sums = growing.counts(0)[0].copy()
    sums[N] = 2**32
    with pytest.raises(ValueError, match="4,294,967,296 rows: a tree counts up to 4,294,967,295"):
        growing.tree.record(RoundNode(), sums)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_column_that_does_not_vary_is_no_split(sparse):
    growing = Growing(("gini", 3, "none"), sparse, kinds=("constant", "ties"))
    node = RoundNode()
    growing.columns, growing.dense = growing.columns[:1], growing.dense[:1]
    sums, histogram = growing.counts(0)
    growing.tree.record(node, sums)
    assert growing.search(node, histogram).split() == (None, False)


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_a_subtree_takes_the_place_of_a_node(case, is_left):
    """The other child is a leaf here, whatever it could be."""
    growing, small = Growing(case), Growing(case)
    children = growing.split(RoundNode(), 0)
    for (node, number), is_grafted in zip(children, (is_left, not is_left), strict=True):
        if is_grafted:
            growing.tree.reserve(node)
            grafted = node
        else:
            growing.tree.record(node, growing.counts(number)[0])
    waiting = [(RoundNode(), 0)]
    while waiting:
        waiting += small.split(*waiting.pop(0))
    piece = join(small.tree.pieces())
    growing.tree.graft(grafted, piece)
    found = join(growing.tree.pieces())
    assert len(found.nodes) == len(piece.nodes) + 2
    place = int(found.nodes["left" if is_left else "right"][0])
    below = slice(place, place + len(piece.nodes))
    np.testing.assert_array_equal(found.nodes["n"][below], piece.nodes["n"])
    np.testing.assert_array_equal(found.statistics[below], piece.statistics)
    assert found.nodes["left"][place] == piece.nodes["left"][0] + place


def test_roots_have_the_key_of_all_roots():
    assert (RoundNode().depth, RoundNode().path, RoundNode().n) == (0, ROOT, 0)
