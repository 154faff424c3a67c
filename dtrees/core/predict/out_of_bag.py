"""Every row predicted by the trees whose bag lacks it.

Which leaves the rows out of a tree's bag are in concerns one tree, and is found by whoever has
grown it. The values of these leaves are added up by one caller, in the order of the trees, so the
sums are the same bits wherever trees grow::

    tree 0  ──▶ rows out of its bag and their leaves ──┐
    tree 1  ──▶ rows, leaves ──────────────────────────┼──▶ total += value[leaves]     in this order
    tree 2  ──▶ rows, leaves ──────────────────────────┘    votes += 1

Memory: 8 bytes x n_rows x n_values for the totals, 8 x n_rows for the votes, and 16 for
each row out of the bag of a tree that waits for its turn: a few per thread and no more
(`dtrees.parallel.threads`).

Trees of several training sets have the same bags, so which rows are out of them is asked once for
all sets (`add_to_sums`). This is done when the trees have grown, and each set is one thread's at a
time, which adds up its trees in their order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.tree import Tree, mean_of_sums
from dtrees.core.predict.binned import LeafLookup
from dtrees.core.predict.intervals import floor_of, spread_of
from dtrees.typing import Runner

LARGEST_BITS = 52  # of the integers of a target
TREES_AT_ONCE = 4  # whose rows out of the bag are held
TREES_AT_A_PASS = 32  # the same, where codes are on workers, and passed for each time


@dataclass(frozen=True, eq=False)
class Votes:
    """The rows that a tree predicts."""

    rows: np.ndarray  # int64 (n,): out of the tree's bag, ascending
    leaves: np.ndarray  # intp (n,): their leaves


class SumsOfTrees:
    """Sums over the trees that predict a row; `target` is that of the table they are grown from."""

    def __init__(self, target: Target, n_rows: int) -> None:
        self._target = target
        self.total = np.zeros((n_rows, target.n_values))  # shares of classes, or means
        self.votes = np.zeros(n_rows, dtype=np.int64)  # trees that were added up
        self._offsets: list[Any] = []
        shape = (0, 0) if target.n_classes > 0 else self.total.shape
        # squares of the means in the unit of the largest, and `floor_of` the trees
        self.squares, self.floors = np.zeros(shape), np.zeros(shape)

    def add(self, tree: Tree, votes: Votes) -> None:
        """Add up the next tree; O(rows x n_classes)."""
        with np.errstate(over="ignore", invalid="ignore"):  # see `mean_of_sums`
            value = tree.value_of(votes.leaves)
            self.total[votes.rows] += value
            if len(self.squares) > 0:
                # a column first: with two indices it takes half as long again
                for output, (square, floor) in enumerate(
                    zip(self.squares.T, self.floors.T, strict=True)
                ):
                    square[votes.rows] += self._of_largest(value, output) ** 2
                    floor[votes.rows] += floor_of(tree, output=output)
        self.votes[votes.rows] += 1
        self._offsets.append(tree.offset)

    def mean(self) -> np.ndarray:
        """Mean over the trees so far; nan where there is no vote. float64, as ``total``."""
        return mean_of_sums(self.total, self.votes[:, None], self._offsets or [0.0])

    def _of_largest(self, values: np.ndarray, output: int) -> np.ndarray:
        """How far values are from the offset of an output, in the unit of the farthest."""
        own = self._target.of_outputs[output]
        away: np.ndarray = values[:, output] - own.offset
        return np.ldexp(away, own.y_exponent - LARGEST_BITS)

    def spread(self, output: int = 0) -> np.ndarray:
        """Spread of the trees that predict a row, float64 (n_rows,); nan without a vote.

        Of numbers; as `dtrees.core.predict.intervals.spread_of`.
        """
        with np.errstate(all="ignore"):
            mean, own = self._of_largest(self.mean(), output), self._target.of_outputs[output]
            square, floor = (each[:, output] / self.votes for each in (self.squares, self.floors))
            return spread_of(mean, square, LARGEST_BITS - own.y_exponent, floor)


class OutOfBag(SumsOfTrees):
    """Sums over the trees whose bag lacks a row; `coded_rows` are of the table of the growth."""

    def __init__(self, growth: ForestGrowth, coded_rows: LeafLookup) -> None:
        super().__init__(growth.target, growth.coded.n_rows)
        self.growth, self.coded_rows = growth, coded_rows

    def rows(self, number: int) -> np.ndarray:
        """Rows out of the bag of a tree; int64 (n,), ascending. O(n_rows)."""
        return self.growth.rows_out(self.growth.times(number))

    def votes_of(self, number: int, tree: Tree, rows: np.ndarray | None = None) -> Votes:
        """The rows out of the bag of a tree of this growth, and their leaves; on any thread.

        `rows`, where it is known which rows these are.
        """
        rows = self.rows(number) if rows is None else rows
        return Votes(rows, self.coded_rows.leaves(tree, rows))

    def seen(self, grown: Iterable[tuple[int, Tree, Any]]) -> Iterator[tuple[int, Tree, Votes]]:
        """Trees as they come, with their votes; where codes are not here, some at a time.

        `grown` are numbers and trees of this growth.
        """
        grown = iter(grown)
        while some := list(itertools.islice(grown, TREES_AT_A_PASS)):
            rows = [self.rows(number) for number, _, _ in some]
            self.coded_rows.bring(
                [((tree,), mine) for (_, tree, _), mine in zip(some, rows, strict=True)]
            )
            for (number, tree, _), mine in zip(some, rows, strict=True):
                yield number, tree, self.votes_of(number, tree, mine)


def add_to_sums(
    sums: Sequence[OutOfBag],
    numbers: range,
    trees: Sequence[Sequence[Tree]],
    resampling: Resampling,
    run: Runner,
    enough: Callable[[int], bool] = lambda number: False,
) -> None:
    """Add the next trees of several training sets to their sums, of one growth and its rows.

    The bits are those of a growth of each set alone, which has bags. `sums` and `trees` are by set;
    of each there is a tree for every number. `run` carries tasks for trees, and for sets. `enough`
    is asked after every tree of a set, with the number of the set and on its thread; where it says
    True, the other trees of the set are left out.
    """
    growth, coded_rows = sums[0].growth, sums[0].coded_rows
    ended: set[int] = set()

    def out_of(number: int) -> list[np.ndarray]:
        times = growth.times_of_sets(number, resampling)
        rows = {id(mine): growth.rows_out(mine) for mine in times}
        return [rows[id(mine)] for mine in times]

    def add(number: int, first: int, rows: list[list[np.ndarray]]) -> None:
        for tree, of_sets in zip(trees[number][first:], rows, strict=False):
            if number in ended:
                return
            sums[number].add(tree, sums[number].votes_of(number, tree, of_sets[number]))
            if enough(number):
                ended.add(number)

    step = (
        TREES_AT_ONCE if coded_rows.is_here else max(TREES_AT_ONCE, TREES_AT_A_PASS // len(trees))
    )
    for first in range(0, len(numbers), step):
        some = numbers[first : first + step]
        rows = run([partial(out_of, number) for number in some])
        coded_rows.bring(
            [
                ((own[first + k],), of_sets[i])
                for k, of_sets in enumerate(rows)
                for i, own in enumerate(trees)
                if i not in ended
            ]
        )
        run([partial(add, number, first, rows) for number in range(len(trees))])
