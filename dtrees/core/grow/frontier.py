"""Trees between rounds: their nodes so far, and those that are open.

Everything here is small and mergeable: what a driver holds while the rows are elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtrees.core.grow.assembly import SUBTREE
from dtrees.core.grow.node_record import RECORD, PartialTree
from dtrees.core.stores.blocks.messages import FoundSplit, Sums


class GrowingTree:
    """The nodes of a tree so far, as records."""

    def __init__(self, n_statistics: int) -> None:
        self._n_statistics = n_statistics
        self._records: list[dict[str, Any]] = []
        self._statistics: list[np.ndarray] = []
        self._words: list[np.ndarray] = []
        self._n_words = 0
        self._subtrees: list[PartialTree] = []

    def add(self, sums: Sums | None, impurity: float = 0.0) -> int:
        """Record a node, without sums where a subtree will take its place. Returns its number."""
        nothing = np.zeros(self._n_statistics, dtype=np.int64)
        n = 0 if sums is None else sums.n
        self._records.append(
            {"n": n, "subset": -1, "impurity": impurity, "left": -1, "right": -1, "column": -2}
        )
        self._statistics.append(nothing if sums is None else sums.statistics)
        return len(self._records) - 1

    def split(self, number: int, found: FoundSplit) -> None:
        """Write the test of a node. Its children are linked when they are recorded."""
        record = self._records[number]
        record.update(
            column=found.column,
            test=found.test,
            boundary=found.boundary,
            beyond=found.beyond,
            gain=found.gain,
            missing_left=found.missing_left,
        )
        if found.subset is not None:
            record["subset"] = self._n_words
            self._words.append(found.subset)
            self._n_words += len(found.subset)

    def link(self, parent: int, is_left: bool, child: int) -> None:
        """Tell a node the number of a child."""
        self._records[parent]["left" if is_left else "right"] = child

    def graft(self, number: int, subtree: PartialTree) -> None:
        """Put a finished subtree, in preorder, in the place of a node."""
        self._subtrees.append(subtree)
        self._records[number].update(column=SUBTREE, left=len(self._subtrees))

    def pieces(self) -> list[PartialTree]:
        """The records and the grafted subtrees, for `dtrees.core.grow.assembly.join`."""
        nodes = np.zeros(len(self._records), dtype=RECORD)
        for i, record in enumerate(self._records):
            for name, value in record.items():
                nodes[name][i] = value
        words = np.concatenate([*self._words, np.zeros(0, dtype=np.uint64)])
        return [PartialTree(nodes, np.stack(self._statistics), words), *self._subtrees]


@dataclass(eq=False)
class OpenNode:
    """A node whose rows are spread, and that has no split yet.

    Attributes
    ----------
    node : int
        Its number among those of all trees.
    tree : int
        Place of the tree among those that grow together.
    sets : tuple of int
        Training sets that have the node.
    depth, path : int
        `path` is the key of its draws.
    parents : dict of int to (int, bool)
        By set: number of the parent's record, and whether this is its left child.
    n : int
        Most rows that a set has here.
    first : int
        Draws of columns that were searched before, without finding a split.
    records : dict of int to int
        By set: its record, once its sums are known.
    sums : dict of int to Sums
    pair : Pair or None
        Where the sibling is spread, too, and counting one of them is enough.
    columns : int32 (k,)
        That are searched in this round.
    """

    node: int
    tree: int
    sets: tuple[int, ...]
    depth: int
    path: int
    parents: dict[int, tuple[int, bool]]
    n: int
    first: int = 0
    records: dict[int, int] = field(default_factory=dict)
    sums: dict[int, Sums] = field(default_factory=dict)
    pair: Pair | None = None
    columns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def is_large(self) -> bool:
        """Whether its histogram is the parent's less that of its sibling."""
        return self.pair is not None and self.pair.large == self.node

    @property
    def members(self) -> int:
        """A bit for each set."""
        return sum(1 << number for number in self.sets)


@dataclass(eq=False)
class Pair:
    """Siblings that are both spread: the larger one is the parent less the smaller one.

    Attributes
    ----------
    small, large : int
        Their nodes.
    histograms : dict of int to int64 (n,)
        By set: that of the parent, all columns.
    """

    small: int
    large: int
    histograms: dict[int, np.ndarray]


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

    def next_nodes(self, bytes_per_set: int, budget: int) -> list[OpenNode]:
        """Take nodes whose histograms fit into `budget` bytes; at least one.

        Siblings of a pair are taken together.
        """
        nodes: list[OpenNode] = []
        used = 0
        while self._open:
            family = [self._open[0]]
            if family[0].pair is not None and len(self._open) > 1:
                family += [other for other in [self._open[1]] if other.pair is family[0].pair]
            size = bytes_per_set * sum(len(node.sets) for node in family)
            if nodes and used + size > budget:
                break
            used += size
            nodes += [self._open.popleft() for _ in family]
        return nodes
