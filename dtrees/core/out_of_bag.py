"""Every row predicted by the trees whose bag lacks it.

Which leaves the rows out of a tree's bag are in concerns one tree, and is found by whoever has
grown it. The values of these leaves are added up by one caller, in the order of the trees, so the
sums are the same bits wherever trees grow::

    tree 0  ──▶ rows out of its bag and their leaves ──┐
    tree 1  ──▶ rows, leaves ──────────────────────────┼──▶ total += value[leaves]     in this order
    tree 2  ──▶ rows, leaves ──────────────────────────┘    votes += 1

Memory: 8 bytes x n_rows x (n_classes or 1) for the totals, 8 x n_rows for the votes, and 16 for
each row out of the bag of a tree that waits for its turn: a few per thread and no more
(`dtrees.parallel.local`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.core.coded_walk import CodedRows
from dtrees.core.forest import ForestGrowth
from dtrees.core.model import Tree


@dataclass(frozen=True, eq=False)
class Votes:
    """The rows that a tree predicts.

    Attributes
    ----------
    rows : int64 (n,)
        Out of the tree's bag, ascending.
    leaves : intp (n,)
        Their leaves.
    """

    rows: np.ndarray
    leaves: np.ndarray


class OutOfBag:
    """Sums over the trees whose bag lacks a row.

    Parameters
    ----------
    growth : ForestGrowth
        With bags.

    Attributes
    ----------
    total : float64 (n_rows, n_classes or 1)
        Shares of the classes or means, added up.
    votes : int64 (n_rows,)
        Number of trees that were added up.
    """

    def __init__(self, growth: ForestGrowth) -> None:
        self._growth = growth
        assert isinstance(growth.coded, CodedMatrix)
        self._rows = CodedRows(growth.coded)
        self.total = np.zeros((growth.coded.n_rows, max(1, growth.target.n_classes)))
        self.votes = np.zeros(growth.coded.n_rows, dtype=np.int64)

    def rows(self, number: int) -> np.ndarray:
        """Rows out of the bag of a tree; int64 (n,), ascending. O(n_rows)."""
        return np.flatnonzero(self._growth.times(number) == 0)

    def votes_of(self, number: int, tree: Tree) -> Votes:
        """The rows out of the bag of a tree of this growth, and their leaves; on any thread."""
        rows = self.rows(number)
        return Votes(rows, self._rows.leaves(tree, rows))

    def add(self, tree: Tree, votes: Votes) -> None:
        """Add up the next tree; O(rows out of its bag x n_classes)."""
        self.total[votes.rows] += tree.value_of(votes.leaves)
        self.votes[votes.rows] += 1

    def mean(self) -> np.ndarray:
        """Mean over the trees so far; nan where there is no vote. float64, as ``total``."""
        with np.errstate(invalid="ignore"):
            mean: np.ndarray = self.total / self.votes[:, None]
        return mean
