"""A block of rows, and what a round asks of it.

A table in several places is cut into blocks, each of which does its part of a round alone and
returns integers that add up (`dtrees.core.grow.rounds`)::

    updates      where the trees begin, how nodes were split    the same for all blocks
      v
    positions    node -> its rows in this block                 a function of block and updates
      v
    counts       sums and histograms of requested nodes         added up over the blocks
    rows         of nodes that are small enough to be gathered

A `PositionIndex` is never the only copy of anything: it follows from the codes and the updates so
far, and whoever loses it computes it again (DESIGN 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees._forks import cached_property
from dtrees._pickling import SmallArraysInside
from dtrees._random import BOOTSTRAP, keyed_largest
from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.membership.resampling import counts_of_bag
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import (
    LISTED,
    StoredCounter,
    count,
    list_codes,
    merged,
    ways_of,
    without_intervals,
)
from dtrees.core.stores.blocks._node_partition import partition
from dtrees.core.stores.blocks.messages import (
    Counts,
    HistogramRequest,
    NodeSplit,
    NumberList,
    Root,
    SplitUpdate,
    StoredCounts,
    codes_left,
    ends_of_codes,
)

EVERYONE = np.ones(1, dtype=np.uint64)
FEW_CODES = 4096  # of a column whose tests are looked up by code


@dataclass(frozen=True)
class Draws:
    """The draws of the bags of trees; see `dtrees.core.membership.resampling.Bags`."""

    seed: int
    rate: float
    heaviest: float | None = None  # the largest of the means of all rows, where rows have weights
    pasted: tuple[int, int] | None = None

    @property
    def share(self) -> float:
        """Share of the rows that a bag holds, about."""
        return -math.expm1(-self.rate) if self.pasted is None else self.rate


@dataclass(frozen=True)
class Resolution:
    """The fineness in which columns of many codes are counted. No tree depends on it."""

    # ordered columns of more codes are counted by intervals of codes, where there are bounds. With
    # fewer codes, one histogram is cheaper than a second request (measured: 1 to 12 times).
    interval_codes: int = 65_535
    n_intervals: int = 255  # at most so many
    listed_codes: int = 65_535  # other columns of more codes are listed


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table, one behind the other."""

    coded: CodedMatrix
    target: Target  # of these rows, in the units of all
    first_row: int  # number of the first of them in the table
    keys: np.ndarray | None = None  # uint64 (n_rows,): of the bags; None: the numbers of the rows
    # uint16 or uint32 (n_rows,): of the training sets; None: there is one set, with all rows
    cells: np.ndarray | None = None


@dataclass(frozen=True)
class Common:
    """The facts that all blocks know."""

    rules: GrowthRules
    draws: Draws | None  # None: every tree sees every row once
    # uint64 (n_cells,): by cell: a bit for each training set that has its rows
    masks: np.ndarray | None
    resolution: Resolution = Resolution()


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Rows of a node in a block."""

    root: Root  # of the tree
    rows: np.ndarray  # uint32 (n,), ascending
    # uint16 (n,): how often each of them is in the bag; None: there are no bags
    times: np.ndarray | None
    # uint16 (n,): of training sets; None: all rows are of one combination
    combination: np.ndarray | None
    masks: np.ndarray  # uint64 (n_combinations,): a bit for each training set that has the rows

    @property
    def masks_of_rows(self) -> np.ndarray | None:
        """The sets of each row, uint64 (n,); None: all rows are of one combination."""
        return None if self.combination is None else self.masks.take(self.combination)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.rows, self.times, self.combination, self.masks)
        return sum(int(array.nbytes) for array in arrays if array is not None)


PositionIndex = dict[int, NodeRows]


def concatenated(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Arrays one behind the other, of which all are there or none."""
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if there else None


@dataclass(frozen=True, eq=False)
class GatheredRows(SmallArraysInside):
    """Rows of some nodes, one node behind the other, taken out of a block."""

    coded: CodedMatrix
    target: Target
    times: np.ndarray | None  # as that of `NodeRows`
    # uint64 (n,): a bit for each training set that has the row; None: there is one set
    masks: np.ndarray | None
    n_rows: np.ndarray  # int64 (n_nodes,): of each node


class BlockOfRows:
    """The work of a round on one block.

    Parameters
    ----------
    block : Block
    common : Common
    """

    def __init__(self, block: Block, common: Common) -> None:
        self._block = block
        self._common = common
        self._dataset = Dataset(block.coded, block.target, common.rules)
        self._ways: np.ndarray = ways_of(self._dataset, common.resolution)
        self._ways_by_code = without_intervals(self._ways)
        self._is_sparse = block.coded.storage == SPARSE
        self._all_columns = np.arange(block.coded.n_columns, dtype=np.int32)
        self._first = np.concatenate([[0], np.cumsum(block.coded.n_codes + 1)])

    def advance(self, positions: PositionIndex, update: SplitUpdate) -> PositionIndex:
        """The positions after an update, in a new index. O(rows of nodes that are split)."""
        found = dict(positions)
        for root in update.roots:
            found[root.node] = self._all_rows(root)
        for split in update.splits:
            found[split.left], found[split.right] = self._partition(found[split.node], split)
        for node in update.done:
            del found[node]
        return found

    def count(self, positions: PositionIndex, requests: Sequence[HistogramRequest]) -> Counts:
        """Sums and histograms of nodes. O(rows x dense columns + their stored cells)."""
        all_sums, histograms = [], []
        is_listed = False  # whether a column could be, which is the same for all blocks
        for request in requests:
            columns, ways = self._asked(request)
            is_listed |= request.alive is not None or bool((ways == LISTED).any())
            columns = columns[(ways[columns] != LISTED) & (request.alive is None)]
            node = positions[request.node]
            sums, histogram = count(self._dataset, node, request.members, columns, ways)
            all_sums.append(sums)
            histograms.append(histogram.ravel())
        stored = self._listed(positions, requests) if is_listed else None
        return Counts(np.concatenate(all_sums), np.concatenate(histograms), stored)

    def _listed(
        self, positions: PositionIndex, requests: Sequence[HistogramRequest]
    ) -> StoredCounts:
        """The list of each request."""
        counter = StoredCounter(self._dataset, self._block.coded) if self._is_sparse.any() else None
        return StoredCounts.of(
            [self._list_of(positions[each.node], each, counter) for each in requests]
        )

    def _list_of(self, node: NodeRows, request: HistogramRequest, counter: Any) -> NumberList:
        """The list of a request: of sparse columns, and of dense ones."""
        columns, ways = self._asked(request)
        listed = np.sort(columns[~self._is_sparse[columns] & (ways[columns] == LISTED)])
        if request.alive is not None:
            listed, ways = columns, self._ways
        dense: NumberList = list_codes(
            self._dataset, node, request.members, listed, self._first, ways, request.alive
        )
        if counter is None or request.alive is not None:
            return dense
        stored: NumberList = counter.count(node, request.members, request.columns)
        if len(listed) == 0:
            return stored
        both: NumberList = merged(stored, dense)
        return both

    def _asked(self, request: HistogramRequest) -> tuple[np.ndarray, np.ndarray]:
        """The columns of a request, and the ways in which all columns are counted."""
        columns = self._all_columns if request.columns is None else request.columns
        return columns, self._ways_by_code if request.by_code else self._ways

    def gather(
        self, positions: PositionIndex, groups: Sequence[Sequence[int]]
    ) -> list[GatheredRows]:
        """The rows of each group of nodes. O(rows x columns), but for a node of all rows."""
        found = [[positions[node] for node in group] for group in groups]
        rows = [np.concatenate([node.rows for node in group]) for group in found]
        whole = self._block.coded
        is_whole = [len(group) == 1 and len(group[0].rows) == whole.n_rows for group in found]
        some = [own for own, is_all in zip(rows, is_whole, strict=True) if not is_all]
        matrices = whole.take_each(some)
        gathered = []
        for group, own, is_all in zip(found, rows, is_whole, strict=True):
            times = concatenated([node.times for node in group])
            masks = concatenated([node.masks_of_rows for node in group])
            about = whole if is_all else next(matrices), self._block.target.take(own), times, masks
            gathered.append(GatheredRows(*about, np.array([len(node.rows) for node in group])))
        return gathered

    def bags(self, roots: Sequence[Root], n_sets: int = 1) -> list[tuple[Counts, list[int]]]:
        """The sums of the bag of each tree, by set, and the key of its largest draw, if any."""
        draws = self._common.draws
        rows, keys = self._counting
        if draws is not None and draws.heaviest is not None:  # the one of a bag that has no other
            assert self._block.target.means is not None
            keys = keys[self._block.target.means.take(rows) == draws.heaviest]
        members, columns, found = (1 << n_sets) - 1, self._all_columns[:0], []
        for root in roots:
            node = self._all_rows(root)
            sums, histogram = count(self._dataset, node, members, columns, self._ways)
            largest = []
            if draws is not None and len(keys) > 0:
                largest = [int(keyed_largest(draws.seed, BOOTSTRAP, root.number, keys))]
            found.append((Counts(sums, histogram.ravel()), largest))
        return found

    # ---------------------------------------------------------------------------------------------

    @cached_property
    def _counting(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have a weight, and a training set, ascending; and their keys."""
        rows: np.ndarray = self._dataset.rows()
        if self._common.masks is not None:
            assert self._block.cells is not None
            has_set = self._common.masks != 0
            if not has_set.all():
                rows = rows[has_set.take(self._block.cells.take(rows))]
        keys = self._block.keys
        if keys is None:
            first, n_rows = self._block.first_row, self._block.coded.n_rows
            keys = np.arange(first, first + n_rows, dtype=np.uint64)
        return rows, keys if len(rows) == len(keys) else keys.take(rows)

    @cached_property
    def _combinations(self) -> tuple[np.ndarray, np.ndarray]:
        """The combination of each of these rows, and the sets of each combination."""
        assert self._common.masks is not None
        assert self._block.cells is not None
        masks, of_cell = np.unique(self._common.masks, return_inverse=True)
        cells = self._block.cells.take(self._counting[0])
        return of_cell.astype(np.uint16).take(cells), masks

    def _all_rows(self, root: Root) -> NodeRows:
        """The rows of the bag of a tree."""
        rows, keys = self._counting
        of_row, masks = (None, EVERYONE) if self._common.masks is None else self._combinations
        draws = self._common.draws
        if draws is None:
            return NodeRows(root, rows, None, of_row, masks)
        if root.key is None:
            means = self._block.target.means
            means = None if means is None else means.take(rows)
            times = counts_of_bag(draws.seed, draws.rate, root.number, keys, means, draws.pasted)
        else:
            times = (keys == np.uint64(root.key)).astype(np.uint16)
        drawn = np.flatnonzero(times)
        of_row = None if of_row is None else of_row.take(drawn)
        own = times.take(drawn) if draws.pasted is None else None  # no row counts twice
        return NodeRows(root, rows.take(drawn), own, of_row, masks)

    def _partition(self, node: NodeRows, split: NodeSplit) -> tuple[NodeRows, NodeRows]:
        column = split.column
        n_codes = int(self._block.coded.n_codes[column]) + 1
        n_ordered = int(self._block.coded.n_ordered[column])
        ends = None
        if n_codes > FEW_CODES:
            ends = ends_of_codes([found for _, found in split.tests], n_codes, n_ordered)
        left_of = np.zeros(n_codes if ends is None else len(ends), dtype=np.uint64)
        members = 0
        for number, found in split.tests:
            members |= 1 << number
            goes_left = codes_left(found, n_codes, n_ordered, ends)
            left_of |= goes_left.astype(np.uint64) << np.uint64(number)
        left, right = partition(self._dataset, node, column, left_of, members, ends)
        return NodeRows(node.root, *left), NodeRows(node.root, *right)
