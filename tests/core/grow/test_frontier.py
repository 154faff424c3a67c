"""Nodes between rounds: which of those that are open come next."""

from types import SimpleNamespace

import numpy as np
import pytest

from dtrees.core.grow._round_tree import RoundNode
from dtrees.core.grow.frontier import Frontier, OpenNode, Pair, WaitingNode


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


def test_sets_of_a_node_ask_together():
    """Of each column what one of them wants, columns ascending; who wants nothing, does not ask."""

    def search(**wanted):
        bits = {int(name[1:]): np.array([alive], dtype=np.uint64) for name, alive in wanted.items()}
        return SimpleNamespace(wanted=bits)

    searches = {0: search(), 2: search(c5=0b11, c7=0b1), 3: search(c1=0b100, c5=0b110)}
    found = WaitingNode(node(0, (0, 2, 3)), searches, {})
    assert found.members == 0b1100
    assert list(found.asking) == [2, 3]
    assert {column: alive.tolist() for column, alive in found.wanted.items()} == {
        1: [0b100],
        5: [0b111],
        7: [0b1],
    }
    assert list(found.wanted) == [1, 5, 7]
    assert searches[2].wanted[5].tolist() == [0b11]  # its own is as it was
