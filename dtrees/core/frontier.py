"""Open nodes between rounds: their sums, the splits found for them, and which are next.

Everything here is small and mergeable: what a driver holds while the rows are elsewhere.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees.core.assembly import SUBTREE, Piece
from dtrees.core.model import IN_SUBSET
from dtrees.core.structs import RECORD


@dataclass(frozen=True)
class Sums:
    """What the rows of a node add up to; merges in any order by ``+``.

    Attributes
    ----------
    n, weight, target : int
        Rows; their weight; their weighted target, or the weight of class 1.
    moment : int
        Regression: weighted squares of the target, or what the Poisson deviance needs.
    lowest, highest : int
        Regression: the range of the target.
    classes : int64 (n_classes,) or None
    """

    n: int
    weight: int
    target: int
    moment: int
    lowest: int
    highest: int
    classes: np.ndarray | None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            n=self.n + other.n,
            weight=self.weight + other.weight,
            target=self.target + other.target,
            moment=self.moment + other.moment,
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            classes=None if self.classes is None else self.classes + other.classes,
        )

    @property
    def statistics(self) -> np.ndarray:
        """The row of `Tree.statistics`."""
        if self.classes is not None:
            return self.classes
        return np.array([self.weight, self.target], dtype=np.int64)


@dataclass(frozen=True)
class FoundSplit:
    """A split in codes, as a search returns it.

    Attributes
    ----------
    column, test : int
    boundary, beyond : int
        The codes around the boundary that occur in the node; ``beyond`` 0: nothing but missing
        values (and categories) is above.
    missing_left, saw_missing : bool
        ``saw_missing``: the node holds missing values, so the direction was learned.
    gain : float
    subset : dict of int to bool, or None
        For every code that occurs in the node: does it go left?
    """

    column: int
    test: int
    boundary: int
    beyond: int
    missing_left: bool
    saw_missing: bool
    gain: float
    subset: dict[int, bool] | None


@dataclass(frozen=True)
class OpenNode:
    """A node that is not a leaf and has no split yet.

    Attributes
    ----------
    record : int
        Its number in the frontier's records.
    sums : Sums
    depth : int
    path : int
        Key of its draws.
    """

    record: int
    sums: Sums
    depth: int
    path: int


class Frontier:
    """The records of a growing tree and its open nodes, in the order they were opened."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []
        self._statistics: list[np.ndarray] = []
        self._words: list[np.ndarray] = []
        self._n_words = 0
        self._subtrees: list[Piece] = []
        self.open: deque[OpenNode] = deque()

    def add(self, sums: Sums, impurity: float, is_leaf: bool, depth: int, path: int) -> int:
        """Record a node; open it unless it is a leaf. Returns its number."""
        number = len(self._records)
        self._records.append(
            {
                "n": sums.n,
                "subset": -1,
                "impurity": impurity,
                "left": -1,
                "right": -1,
                "column": -2,
            }
        )
        self._statistics.append(sums.statistics)
        if not is_leaf:
            self.open.append(OpenNode(number, sums, depth, path))
        return number

    def next_batch(self, bytes_per_node: int, budget: int) -> list[OpenNode]:
        """Take open nodes of one depth whose histograms fit into ``budget`` bytes; at least one."""
        most = max(1, budget // max(1, bytes_per_node))
        batch = [self.open.popleft()]
        while self.open and len(batch) < most and self.open[0].depth == batch[0].depth:
            batch.append(self.open.popleft())
        return batch

    def split(
        self, node: OpenNode, found: FoundSplit, missing_left: bool, words: np.ndarray | None
    ) -> None:
        """Write a node's test. Its children are linked when they are recorded."""
        record = self._records[node.record]
        record.update(
            column=found.column,
            test=found.test,
            boundary=found.boundary,
            beyond=found.beyond,
            gain=found.gain,
            missing_left=missing_left,
        )
        if found.test == IN_SUBSET:
            assert words is not None
            record["subset"] = self._n_words
            self._words.append(words)
            self._n_words += len(words)

    def link(self, node: OpenNode, left: int, right: int) -> None:
        """Tell a node the numbers of its children."""
        self._records[node.record].update(left=left, right=right)

    def graft(self, node: OpenNode, subtree: Piece) -> None:
        """Put a finished subtree, in preorder, in the place of an open node."""
        self._subtrees.append(subtree)
        self._records[node.record].update(column=SUBTREE, left=len(self._subtrees))

    def pieces(self) -> list[Piece]:
        """The records and the grafted subtrees, for `dtrees.core.assembly.join`."""
        nodes = np.zeros(len(self._records), dtype=RECORD)
        for i, record in enumerate(self._records):
            for name, value in record.items():
                nodes[name][i] = value
        words = np.concatenate([*self._words, np.zeros(0, dtype=np.uint64)])
        return [Piece(nodes, np.stack(self._statistics), words), *self._subtrees]
