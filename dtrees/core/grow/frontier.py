"""Nodes between rounds: those that are open, and which of them come next.

Everything here is small and mergeable: what a driver holds while the rows are elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from dtrees.core.grow._round_tree import RoundNode, RoundSearch
from dtrees.core.stores.blocks.messages import Histogram


@dataclass(eq=False)
class OpenNode:
    """A node whose rows are spread, and that has no split yet.

    Attributes
    ----------
    node : int
        Its number among those of all trees.
    tree : int
        Place of the tree among those that grow together.
    of_sets : dict of int to RoundNode
        The node as each training set has it.
    n : int
        Most rows that a set has here.
    first : int
        Draws of columns that were searched before, without finding a split. The node is recorded.
    pair : Pair or None
        Where the sibling is spread, too, and counting one of them is enough.
    columns : int32 (k,)
        That are searched in this round.
    """

    node: int
    tree: int
    of_sets: dict[int, RoundNode]
    n: int
    first: int = 0
    pair: Pair | None = None
    columns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def depth(self) -> int:
        """Edges from the root."""
        return int(next(iter(self.of_sets.values())).depth)

    @property
    def path(self) -> int:
        """Key of its draws."""
        return int(next(iter(self.of_sets.values())).path)

    @property
    def sets(self) -> bytes | None:
        """The sets of columns that its ancestors have left it."""
        sets: bytes | None = next(iter(self.of_sets.values())).above[2]
        return sets

    @property
    def is_large(self) -> bool:
        """Whether its histogram is the parent's less that of its sibling."""
        return self.pair is not None and self.pair.large == self.node

    @property
    def members(self) -> int:
        """A bit for each set."""
        return sum(1 << number for number in self.of_sets)


@dataclass(eq=False)
class Pair:
    """Siblings that are both spread: the larger one is the parent less the smaller one.

    Attributes
    ----------
    small, large : int
        Their nodes.
    histograms : dict of int to Histogram
        By set: that of the parent, all columns.
    """

    small: int
    large: int
    histograms: dict[int, Histogram]


class WaitingNode:
    """A node whose histograms were searched.

    Parameters
    ----------
    node : OpenNode
    searches : dict of int to RoundSearch
        By set.
    histograms : dict of int to Histogram
        By set.

    Attributes
    ----------
    asking : dict of int to RoundSearch
        Those that want the codes of some intervals.
    wanted : dict of int to uint64 (n,)
        By column, ascending: the intervals whose codes one of them wants, a bit each.
    """

    def __init__(
        self,
        node: OpenNode,
        searches: dict[int, RoundSearch],
        histograms: dict[int, Histogram],
    ) -> None:
        self.node = node
        self.searches = searches
        self.histograms = histograms
        self.asking = {number: each for number, each in searches.items() if each.wanted}
        wanted: dict[int, np.ndarray] = {}
        for search in self.asking.values():
            for column, alive in search.wanted.items():
                wanted[column] = wanted[column] | alive if column in wanted else alive
        self.wanted = dict(sorted(wanted.items()))

    @property
    def members(self) -> int:
        """A bit for each set that asks."""
        return sum(1 << number for number in self.asking)


class Frontier:
    """Open nodes, first come, first served: depth by depth, but that no node waits for others.

    A node that has found nothing in the columns of its draw is searched once more together with
    the children of those that have; so the draws of the one cost the others no round.
    """

    def __init__(self) -> None:
        self._open: deque[OpenNode] = deque()

    def __bool__(self) -> bool:
        return len(self._open) > 0

    def extend(self, nodes: Iterable[OpenNode]) -> None:
        """Open some nodes, siblings of a pair side by side."""
        self._open.extend(nodes)

    def next_nodes(self, size_of: Callable[[OpenNode], int], budget: int) -> list[OpenNode]:
        """Take nodes whose histograms fit into `budget` bytes; at least one.

        `size_of` are the bytes of those of a node. Siblings of a pair are taken together.
        """
        nodes: list[OpenNode] = []
        used = 0
        while self._open:
            family = [self._open[0]]
            if family[0].pair is not None and len(self._open) > 1:
                family += [other for other in [self._open[1]] if other.pair is family[0].pair]
            size = sum(map(size_of, family))
            if nodes and used + size > budget:
                break
            used += size
            nodes += [self._open.popleft() for _ in family]
        return nodes
