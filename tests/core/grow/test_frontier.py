"""Trees between rounds: nodes that are open, and records that become a tree."""

import numpy as np
import pytest

from dtrees.core.grow.assembly import join
from dtrees.core.grow.frontier import Frontier, GrowingTree, OpenNode, Pair
from dtrees.core.model.tree import AT_MOST, IN_SUBSET
from dtrees.core.stores.blocks.messages import FoundSplit, Sums


def node(number, sets=(0,), pair=None):
    return OpenNode(number, 0, sets, 1, 0, {}, 10, pair=pair)


def test_nodes_come_first_come_first_served_within_the_budget():
    frontier = Frontier()
    frontier.extend([node(0), node(1, (0, 1)), node(2), node(3)])
    found = []
    while frontier:
        found.append([each.node for each in frontier.next_nodes(10, 30)])
    assert found == [[0, 1], [2, 3]]


@pytest.mark.parametrize("budget", [0, 25])
def test_siblings_of_a_pair_go_together(budget):
    """Though a single node is more than the budget."""
    pair = Pair(1, 2, {})
    frontier = Frontier()
    frontier.extend([node(0), node(1, pair=pair), node(2, pair=pair), node(3)])
    found = []
    while frontier:
        found.append([each.node for each in frontier.next_nodes(10, budget)])
    assert found == [[0], [1, 2], [3]]


def test_the_larger_of_a_pair():
    pair = Pair(1, 2, {})
    assert [each.is_large for each in (node(0), node(1, pair=pair), node(2, pair=pair))] == [
        False,
        False,
        True,
    ]


def test_members_are_a_bit_for_each_set():
    assert node(0, (0, 3, 40)).members == 1 | 1 << 3 | 1 << 40


def sums(n, *classes):
    return Sums(n, n, classes[1], 0, 0, 0, np.array(classes))


def split(test, subset=None):
    return FoundSplit(5, test, 2, 3, True, 0.25, subset, 1)


def grown(*order):
    """A tree whose children are recorded in an order; the right child is split once more."""
    tree = GrowingTree(2)
    root = tree.add(sums(9, 4, 5), 0.5)
    tree.split(root, split(AT_MOST))
    for is_left in order:
        child = tree.add(sums(*((3, 3, 0) if is_left else (6, 1, 5))))
        tree.link(root, is_left, child)
        if not is_left:
            right = child
    tree.split(right, split(IN_SUBSET, np.array([6], dtype=np.uint64)))
    return tree, right


def test_a_tree_does_not_depend_on_the_order_of_records():
    trees = []
    for order in ((True, False), (False, True)):
        tree, right = grown(*order)
        for is_left in order:
            tree.link(right, is_left, tree.add(sums(*((2, 1, 1) if is_left else (4, 0, 4)))))
        trees.append(join(tree.pieces()))
    a, b = trees
    assert a.nodes["n"].tolist() == [9, 3, 6, 2, 4]
    assert a.statistics.tolist() == [[4, 5], [3, 0], [1, 5], [1, 1], [0, 4]]
    assert a.nodes["column"][[0, 2]].tolist() == [5, 5]
    for name in a.nodes.dtype.names:
        np.testing.assert_array_equal(a.nodes[name], b.nodes[name])
    np.testing.assert_array_equal(a.words, b.words)


def test_a_subtree_takes_the_place_of_a_node():
    tree, right = grown(True, False)
    for is_left in (True, False):
        tree.link(right, is_left, tree.add(None if is_left else sums(4, 0, 4)))
    small = GrowingTree(2)
    small.add(sums(2, 1, 1))
    tree.graft(right + 1, join(small.pieces()))
    found = join(tree.pieces())
    assert found.nodes["n"].tolist() == [9, 3, 6, 2, 4]
    assert found.statistics.tolist()[3] == [1, 1]
