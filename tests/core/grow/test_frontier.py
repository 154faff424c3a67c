"""Nodes between rounds: which of those that are open come next."""

import pytest

from dtrees.core.grow._round_tree import RoundNode
from dtrees.core.grow.frontier import Frontier, OpenNode, Pair


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


def test_the_larger_of_a_pair():
    pair = Pair(1, 2, {})
    assert [each.is_large for each in (node(0), node(1, pair=pair), node(2, pair=pair))] == [
        False,
        False,
        True,
    ]


def test_members_are_a_bit_for_each_set():
    assert node(0, (0, 3, 40)).members == 1 | 1 << 3 | 1 << 40


def test_depth_and_path_are_those_of_its_sets():
    assert (node(0, (2, 3)).depth, node(0, (2, 3)).path) == (1, 7)
