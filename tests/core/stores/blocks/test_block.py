"""A block of rows: bags, positions of rows, and rows that are gathered."""

import numpy as np
import pytest

from dtrees.core.data.rules import GrowthRules
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import AT_MOST
from dtrees.core.stores.blocks._node_counts import N
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, Draws
from dtrees.core.stores.blocks.messages import FoundSplit, NodeSplit, Root, SplitUpdate
from tests.laws.tables import coded, seeded

FIRST_ROW = 40
EXAMPLE = seeded("gini", 3, "zeros", n_rows=200)
MATRIX, TARGET = coded(EXAMPLE.table), EXAMPLE.target
LIVE = np.flatnonzero(TARGET.w)
RULES = GrowthRules(criterion="gini")
BOUNDARY = 4
SPLIT = FoundSplit(0, AT_MOST, BOUNDARY, False, None)


def rows_of(draws=None, masks=None, cells=None):
    block = Block(MATRIX, TARGET, FIRST_ROW, cells=cells)
    return BlockOfRows(block, Common(RULES, draws, masks))


def test_a_bag_is_that_of_the_whole_table():
    bags = Bags(7, 0.6, np.arange(FIRST_ROW + EXAMPLE.n_rows, dtype=np.uint64))
    node = rows_of(Draws(7, 0.6)).advance({}, SplitUpdate((Root(0, 3),)))[0]
    times = bags.multiplicity(3)[FIRST_ROW:]
    expected = LIVE[times[LIVE] > 0]
    np.testing.assert_array_equal(node.rows, expected)
    np.testing.assert_array_equal(node.times, times[expected])


def test_a_bag_with_a_single_key():
    node = rows_of(Draws(7, 0.6)).advance({}, SplitUpdate((Root(0, 3, key=FIRST_ROW + LIVE[5]),)))
    assert node[0].rows.tolist() == [LIVE[5]]


def test_facts_of_bags():
    """The sums of a bag, and the largest draw of the rows that have a weight."""
    rows = rows_of(Draws(7, 0.01))
    ((counts, (key,)),) = rows.bags([Root(0, 3)])
    node = rows.advance({}, SplitUpdate((Root(0, 3),)))[0]
    assert counts.sums[0, N] == len(node.rows)
    assert key - FIRST_ROW in LIVE
    assert rows_of().bags([Root(0, 3)])[0][1] == []


def test_an_update_makes_a_new_index():
    rows = rows_of()
    first = rows.advance({}, SplitUpdate((Root(0, 0),)))
    update = SplitUpdate((), (NodeSplit(0, 1, 2, 0, ((0, SPLIT),)),), (0,))
    second = rows.advance(first, update)
    assert (list(first), sorted(second)) == ([0], [1, 2])
    goes_left = (MATRIX.column(0)[LIVE] >= 1) & (MATRIX.column(0)[LIVE] <= BOUNDARY)
    np.testing.assert_array_equal(second[1].rows, LIVE[goes_left])
    np.testing.assert_array_equal(second[2].rows, LIVE[~goes_left])
    assert second[1].nbytes == second[1].rows.nbytes + second[1].masks.nbytes


def test_sets_share_a_node():
    """Rows of no set are left out; a set that is not split is gone."""
    cells = np.arange(EXAMPLE.n_rows, dtype=np.uint16) % 4
    masks = np.array([0b01, 0b11, 0b10, 0b00], dtype=np.uint64)
    rows = rows_of(masks=masks, cells=cells)
    root = rows.advance({}, SplitUpdate((Root(0, 0),)))
    kept = LIVE[cells[LIVE] < 3]
    np.testing.assert_array_equal(root[0].rows, kept)
    np.testing.assert_array_equal(root[0].masks[root[0].combination], masks[cells[kept]])
    children = rows.advance(root, SplitUpdate((), (NodeSplit(0, 1, 2, 0, ((1, SPLIT),)),)))
    found = np.sort(np.concatenate([children[1].rows, children[2].rows]))
    np.testing.assert_array_equal(found, kept[masks[cells[kept]] & np.uint64(2) > 0])


@pytest.mark.parametrize("draws", [None, Draws(7, 0.6)])
def test_gathered_rows_are_those_of_the_table(draws):
    rows = rows_of(draws)
    index = rows.advance({}, SplitUpdate((Root(0, 3),)))
    (found,) = rows.gather(index, [[0]])
    for j in range(MATRIX.n_columns):
        np.testing.assert_array_equal(found.coded.column(j), MATRIX.column(j)[index[0].rows])
    is_whole = len(index[0].rows) == MATRIX.n_rows
    assert (found.coded is rows._block.coded) == is_whole
    np.testing.assert_array_equal(found.target.w, TARGET.w[index[0].rows])
    assert (found.times is None) == (draws is None)
    np.testing.assert_array_equal(found.times, index[0].times)


def test_rows_of_some_nodes_are_gathered_together():
    rows = rows_of(Draws(7, 0.6))
    index = rows.advance({}, SplitUpdate(tuple(Root(node, node + 3) for node in range(3))))
    found = rows.gather(index, [[2, 0], [1]])
    for own, group in zip(found, ([2, 0], [1]), strict=True):
        numbers = np.concatenate([index[node].rows for node in group])
        assert own.n_rows.tolist() == [len(index[node].rows) for node in group]
        np.testing.assert_array_equal(own.coded.column(1), MATRIX.column(1)[numbers])
        np.testing.assert_array_equal(own.times, np.concatenate([index[n].times for n in group]))
        assert own.masks is None
