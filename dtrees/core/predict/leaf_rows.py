"""The rows of a fit by the leaves of its trees, and what they say of other rows.

A new row is in a leaf of each tree, with rows of the fit. The weight of such a row is the mean over
the trees of its share in the leaf, and the targets with these weights are the conditional
distribution of the new row (Meinshausen 2006)::

    weight of row i    w_i(x) = mean over trees of [i in the leaf of x] * w_i / weight of the leaf
    distribution       F(v | x) = sum of w_i(x) over rows with y_i <= v
    quantile           least y_i with F(y_i | x) >= q

Rows of a tree are those of its bag, as often as they are in it. So the mean of the distribution is
what the forest predicts.

What is kept is the number of each row's target among the distinct ones, in the order of trees and
leaves; the leaves know how many rows they have. That is 4 bytes for each row in the bag of a tree,
and 2 for how often it is there; without bags, 8 for its weight, if rows have weights. Once it is
asked for, 8 bytes more hold its share of the leaf::

    targets   [ 1.5  2.0  2.5  7.0 ]
    ranks     [ 0  1  3 | 1  2 | ...   leaves of tree 0 | leaves of tree 1 ...

Of several outputs, each has arrays of its own, which stand one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dtrees.coding.tables import Table
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.model.tree import LEAF, Forest, Tree
from dtrees.core.predict._leaf_rows import LeafTable
from dtrees.core.predict.binned import LeafLookup
from dtrees.core.predict.out_of_bag import TREES_AT_A_PASS, TREES_AT_ONCE
from dtrees.core.predict.raw import leaf_blocks
from dtrees.typing import Runner

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

EXACT_BITS = 52  # of the share of a row
ALL_BITS = 62  # of the shares of all trees

# by the first rank, of which each output has another
_tables: WeakKeyDictionary[Forest, dict[int, tuple[np.ndarray, LeafTable]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Targets and weights of the rows of a fit, in the order of trees and leaves."""

    targets: np.ndarray  # float64 (n_targets,): distinct, ascending
    ranks: np.ndarray  # uint32 (n,): numbers of targets, ascending in each leaf
    weights: np.ndarray | None = None  # uint16 or int64 (n,): in any unit; None: one
    starts: np.ndarray | None = None  # int64 (n_outputs,): first targets; None: of one output

    def each(self) -> list[LeafRows]:
        """Those of each output; ValueError: the arrays do not fit each other."""
        if self.starts is None:
            return [self]
        starts, n_outputs = [*self.starts.tolist(), len(self.targets)], len(self.starts)
        if starts[0] != 0 or starts != sorted(starts) or len(self.ranks) % n_outputs > 0:
            raise ValueError("The rows that are kept are not those of the outputs.")
        targets = [self.targets[slice(*both)] for both in pairwise(starts)]
        weights: Any = [None] * n_outputs
        if self.weights is not None:
            weights = np.split(self.weights, n_outputs)
        return list(map(LeafRows, targets, np.split(self.ranks, n_outputs), weights))

    @classmethod
    def of(
        cls,
        growth: ForestGrowth,
        y: np.ndarray,
        trees: Sequence[Tree],
        lookup: LeafLookup,
        run: Runner,
        known: Iterator[np.ndarray],
    ) -> LeafRows:
        """The rows of trees of a growth; `known` are the leaves of all rows in the first ones.

        O(n_rows log n_rows) for each tree and output. Raises ValueError where trees were grown from
        others.

        y : float64 (n_rows,) or (n_rows, n_outputs)
        """
        targets, ordered = [], []
        for column in y.reshape(len(y), -1).T:
            distinct, ranks = np.unique(column, return_inverse=True)
            targets.append(distinct)
            ordered.append((np.argsort(ranks, kind="stable"), ranks.astype(np.uint32)))
        pieces: list[list[tuple[np.ndarray, np.ndarray | None]]] = [[] for _ in targets]
        step = TREES_AT_ONCE if lookup.is_here else TREES_AT_A_PASS
        for first in range(0, len(trees), step):
            some = trees[first : first + step]
            weights = run([partial(_weights, growth, first + k) for k in range(len(some))])
            rows = [np.arange(len(y)) if w is None else np.flatnonzero(w) for w in weights]
            leaves = [
                every[own] for every, own in zip(islice(known, len(some)), rows, strict=False)
            ]
            others = list(zip(some, rows, strict=True))[len(leaves) :]
            lookup.bring([((tree,), own) for tree, own in others])
            leaves += run([partial(lookup.leaves, *each) for each in others])
            given = list(zip(some, weights, rows, leaves, strict=True))
            for own, (order, of_row) in zip(pieces, ordered, strict=True):
                own += run([partial(_by_leaf, order, of_row, *each) for each in given])
        flat = [piece for own in pieces for piece in own]
        all_ranks = np.concatenate([own for own, _ in flat])
        of_rows = [w for _, w in flat if w is not None]
        starts = None
        if y.ndim > 1:
            starts = np.cumsum([0, *map(len, targets[:-1])], dtype=np.int64)
        all_weights = np.concatenate(of_rows) if of_rows else None
        return cls(np.concatenate(targets), all_ranks, all_weights, starts)

    def table(self, forest: Forest) -> LeafTable:
        """The rows, ready to be looked up; made once.

        Raises ValueError where they are not those of the trees.
        """
        known, place = _tables.setdefault(forest, {}), self.ranks.ctypes.data
        ranks, found = known.get(place, (None, None))
        if ranks is None or len(ranks) != len(self.ranks):
            n_nodes = np.array([tree.node_count for tree in forest.trees])
            is_leaf = np.concatenate([tree.test == LEAF for tree in forest.trees])
            n_rows = np.concatenate([tree.n_node_samples for tree in forest.trees])
            start = np.append(0, np.where(is_leaf, n_rows, 0).cumsum(dtype=np.int64))
            w, n = self.weights, len(self.ranks)
            if (
                not start[-1] == n > 0
                or (n_rows[is_leaf] <= 0).any()
                or self.ranks.max() >= len(self.targets)
                or (w is not None and (len(w) != n or w.min() <= 0))
            ):
                raise ValueError("The rows that are kept are not those of the leaves.")
            first_node = n_nodes.cumsum() - n_nodes
            shares = np.empty(n, dtype=np.int64)
            for first, n_own in zip(first_node, n_nodes, strict=True):
                self._share(start[first : first + n_own + 1], 2.0 ** self._exponent(forest), shares)
            found = LeafTable(start, first_node, self.ranks, shares)
            known[place] = self.ranks, found  # which stay, so that nothing else has their place
        assert found is not None
        return found

    def _share(self, start: np.ndarray, unit: float, shares: np.ndarray) -> None:
        """Write the shares of the rows of a tree; those of a leaf add up to the unit.

        `start` are the first rows of its nodes, and the end.
        """
        rows = slice(start[0], start[-1])
        first = start[:-1][np.diff(start) > 0] - start[0]
        n = np.diff(first, append=start[-1] - start[0])
        ones = np.ones(start[-1] - start[0], dtype=np.int64)
        upto = (ones if self.weights is None else self.weights[rows]).cumsum(dtype=np.int64)
        upto -= np.repeat(np.append(0, upto)[first], n)
        upto = np.rint(upto / np.repeat(upto[first + n - 1], n) * unit).astype(np.int64)
        shares[rows] = np.diff(upto, prepend=0)
        shares[rows][first] = upto[first]

    @staticmethod
    def _exponent(forest: Forest) -> int:
        """Shares are multiples of two to the negative of this."""
        return min(EXACT_BITS, ALL_BITS - len(forest).bit_length())

    def quantiles(
        self, forest: Forest, book: CodeBook, table: Table, run: Runner, shares: np.ndarray
    ) -> np.ndarray:
        """Quantiles of the targets of rows, float64 (n_rows, n_quantiles).

        A share of the fixed point's roundings is not asked for: quantiles of shares that are
        reached exactly are those of exact numbers.
        """
        order = np.argsort(shares, kind="stable")
        n_units = len(forest) << self._exponent(forest)
        lost = 2 * len(forest)
        wanted = [max(1, ceil(int(n_units) * share) - lost) for share in shares[order].tolist()]
        kernel, units = self.table(forest), np.array(wanted, dtype=np.int64)
        found = np.empty((table.n_rows, len(wanted)))

        def see(first: int, end: int, leaves: np.ndarray) -> None:
            ranks = np.empty((end - first, len(wanted)), dtype=np.uint32)
            kernel.quantiles(leaves, units, ranks)
            found[first:end, order] = self.targets[ranks]

        leaf_blocks(forest, book, table, run, see)
        return found

    def distribution(
        self, forest: Forest, book: CodeBook, table: Table, run: Runner, values: np.ndarray
    ) -> np.ndarray:
        """Share of the targets of rows that are at most each value, float64 (n_rows, n_values)."""
        order = np.argsort(values, kind="stable")
        bins = np.searchsorted(values[order], self.targets).astype(np.int32)
        kernel, n_units = self.table(forest), float(len(forest) << self._exponent(forest))
        found = np.empty((table.n_rows, len(values)))

        def see(first: int, end: int, leaves: np.ndarray) -> None:
            sums = np.zeros((end - first, len(values) + 1), dtype=np.int64)
            kernel.sums(leaves, bins, sums)
            found[first:end, order] = sums[:, :-1].cumsum(axis=1) / n_units

        leaf_blocks(forest, book, table, run, see)
        return found


def _weights(growth: ForestGrowth, number: int) -> np.ndarray | None:
    """What each row weighs in a tree, integers (n_rows,); None: one."""
    if growth.bags is None:
        return growth.target.w
    return growth.target.bagged(growth.times(number)).w


def _by_leaf(
    order: np.ndarray,
    ranks: np.ndarray,
    tree: Tree,
    weights: np.ndarray | None,
    rows: np.ndarray,
    leaves: np.ndarray,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Ranks and weights of the rows of a tree, leaf by leaf and ascending.

    `order` is that of the targets of all rows. `leaves` are of `rows`, which have a weight.
    """
    inner = tree.test != LEAF
    if (np.bincount(leaves, minlength=tree.node_count) != tree.n_node_samples)[~inner].any():
        raise ValueError(
            "keep_rows=True needs the rows that all trees were grown from. Set warm_start=False to "
            "begin anew with these rows."
        )
    of_row = np.zeros(len(ranks), dtype=np.min_scalar_type(tree.node_count))
    of_row[rows] = leaves
    if weights is not None:
        order = order[weights[order] > 0]
    order = order[np.argsort(of_row[order], kind="stable")]
    return ranks[order], None if weights is None else weights[order]
