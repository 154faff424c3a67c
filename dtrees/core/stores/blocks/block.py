"""A block of rows, and what a round asks of it.

A table in several places is cut into blocks, each of which does its part of a round alone and
returns integers that add up (`dtrees.core.grow.rounds`)::

    step      where the trees begin, how nodes were split            the same for all blocks
      v
    places    node -> its rows in this block                         a function of block and steps
      v
    counts    sums and histograms of the nodes that are asked for    added up over the blocks
    rows      of nodes that are few enough to be brought together

`Places` are never the only copy of anything: they follow from the codes and the steps so far, and
whoever loses them computes them again (DESIGN 3.8).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dtrees._pickling import SmallArraysInside
from dtrees._random import BOOTSTRAP, keyed_counts, keyed_largest
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.membership.resampling import poisson_steps
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._block import count, part, partition_shared
from dtrees.core.stores.blocks.messages import Counts, Parting, Request, Root, Step, codes_left

EVERYONE = np.ones(1, dtype=np.uint64)
BESIDE_BLOCK = 0.6  # of the bytes of a block, that its places and what a task makes of it take


@dataclass(frozen=True)
class Draws:
    """How the bags of trees are drawn; see `dtrees.core.membership.resampling.Bags`.

    Attributes
    ----------
    seed : int
    rate : float
    balanced : bool, default=False
        Whether the classes of each bag have the same total weight.
    """

    seed: int
    rate: float
    balanced: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table, one behind the other.

    Attributes
    ----------
    coded : CodedMatrix
    target : Target
        Of these rows, in the units of all.
    first_row : int
        Number of the first of them in the table.
    keys : uint64 (n_rows,) or None
        Of the bags; None: the numbers of the rows.
    cells : uint16 or uint32 (n_rows,) or None
        Of the training sets; None: there is one set, with all rows.
    """

    coded: CodedMatrix
    target: Target
    first_row: int
    keys: np.ndarray | None = None
    cells: np.ndarray | None = None

    def __sizeof__(self) -> int:
        """With the arrays, and with what goes with them: Dask asks for it, to know what to spill.

        Places and copies of rows are memory of the process, which Dask does not count with results.
        Where blocks alone fill the share of a worker that it gives to results, there is no room for
        them, and the worker is killed.
        """
        own = _size(self.coded, self.target, self.keys, self.cells)
        return object.__sizeof__(self) + own + int(BESIDE_BLOCK * own)

    @property
    def row_keys(self) -> np.ndarray:
        """Keys of the rows for the draws of bags; uint64 (n_rows,)."""
        if self.keys is not None:
            return self.keys
        return np.arange(self.first_row, self.first_row + self.coded.n_rows, dtype=np.uint64)


@dataclass(frozen=True)
class Common:
    """What all blocks know.

    Attributes
    ----------
    rules : GrowthRules
    draws : Draws or None
        None: every tree sees every row once.
    masks : uint64 (n_cells,) or None
        By cell: a bit for each training set that has its rows.
    """

    rules: GrowthRules
    draws: Draws | None
    masks: np.ndarray | None


def _size(*parts: object) -> int:
    """Bytes of what an object is made of."""
    return sum(sys.getsizeof(part) for part in parts if part is not None)


@dataclass(frozen=True, eq=False)
class Held:
    """Rows of a node in a block.

    Attributes
    ----------
    root : Root
        Of the tree.
    rows : uint32 (n,), ascending
    times : uint16 (n,) or None
        How often each of them is in the bag; None: there are no bags.
    kind : uint16 (n,) or None
        None: all rows are of one kind.
    masks : uint64 (n_kinds,)
        By kind: a bit for each training set that has the row here.
    """

    root: Root
    rows: np.ndarray
    times: np.ndarray | None
    kind: np.ndarray | None = None
    masks: np.ndarray = field(default_factory=lambda: EVERYONE)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.rows, self.times, self.kind, self.masks)
        return sum(int(array.nbytes) for array in arrays if array is not None)


Places = dict[int, Held]


@dataclass(frozen=True, eq=False)
class Brought(SmallArraysInside):
    """Rows of a node, taken out of a block.

    Attributes
    ----------
    coded : CodedMatrix
    target : Target
        Of the bag.
    kind : uint16 (n_rows,) or None
        None: there is one training set.
    masks : uint64 (n_kinds,)
        By kind: a bit for each training set that has the row.
    """

    coded: CodedMatrix
    target: Target
    kind: np.ndarray | None
    masks: np.ndarray

    def __sizeof__(self) -> int:
        """With the arrays: Dask asks for it, to know what to spill."""
        return object.__sizeof__(self) + _size(self.coded, self.target, self.kind)


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

    def advance(self, places: Places, step: Step) -> Places:
        """The places after a step; those before it are not changed. O(rows of nodes that part)."""
        found = dict(places)
        for root in step.roots:
            found[root.node] = self._all_rows(root)
        for parting in step.partings:
            found[parting.left], found[parting.right] = self._part(found[parting.node], parting)
        for node in step.done:
            del found[node]
        return found

    def count(self, places: Places, requests: Sequence[Request]) -> Counts:
        """Sums and histograms of nodes. O(rows x columns)."""
        found = [
            self._count(places[request.node], request.members, request.columns)
            for request in requests
        ]
        sums, histograms = zip(*found, strict=True)
        return Counts(np.concatenate(sums), np.concatenate([each.ravel() for each in histograms]))

    def _count(
        self, held: Held, members: int, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        root = held.root
        rows = held.rows, held.times, held.kind, held.masks
        found: tuple[np.ndarray, np.ndarray] = count(
            self._dataset, *rows, members, columns, root.class_multiplier, root.fixed_point
        )
        return found

    def bring(self, places: Places, nodes: Sequence[int]) -> list[Brought]:
        """The rows of nodes. O(rows x columns)."""
        brought = []
        for node in nodes:
            held = places[node]
            target = self._block.target.take(held.rows)
            if held.times is not None:
                target = target.bagged(held.times)
            if held.root.class_multiplier is not None:
                target = replace(
                    target,
                    class_multiplier=held.root.class_multiplier,
                    class_exponent=held.root.class_exponent,
                )
            coded = self._block.coded.take(held.rows)
            brought.append(Brought(coded, target, held.kind, held.masks))
        return brought

    def bags(self, roots: Sequence[Root]) -> list[tuple[Counts, list[int]]]:
        """What the bag of each tree adds up to, and the key of its largest draw, if there is one.

        There is one training set.
        """
        return [self._bag_facts(root) for root in roots]

    def _bag_facts(self, root: Root) -> tuple[Counts, list[int]]:
        held = self._all_rows(root)
        sums, histogram = self._count(held, 1, np.zeros(0, dtype=np.int32))
        draws = self._common.draws
        _, keys = self._counting
        if draws is None or len(keys) == 0:
            return Counts(sums, histogram.ravel()), []
        largest = int(keyed_largest(draws.seed, BOOTSTRAP, root.number, keys))
        return Counts(sums, histogram.ravel()), [largest]

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
        keys = self._block.row_keys
        return rows, keys if len(rows) == len(keys) else keys.take(rows)

    @cached_property
    def _kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """The kind of each of these rows, and the sets of each kind."""
        assert self._common.masks is not None
        assert self._block.cells is not None
        masks, kind = np.unique(self._common.masks, return_inverse=True)
        cells = self._block.cells.take(self._counting[0])
        return kind.astype(np.uint16).take(cells), masks

    def _all_rows(self, root: Root) -> Held:
        """The rows of the bag of a tree."""
        rows, keys = self._counting
        kind, masks = (None, EVERYONE) if self._common.masks is None else self._kinds
        draws = self._common.draws
        if draws is None:
            return Held(root, rows, None, kind, masks)
        if root.key is None:
            steps = poisson_steps(draws.rate)
            times = keyed_counts(draws.seed, BOOTSTRAP, root.number, keys, steps)
        else:
            times = (keys == np.uint64(root.key)).astype(np.uint16)
        drawn = np.flatnonzero(times)
        kind = None if kind is None else kind.take(drawn)
        return Held(root, rows.take(drawn), times.take(drawn), kind, masks)

    def _part(self, held: Held, parting: Parting) -> tuple[Held, Held]:
        n_codes, n_ordered = self._block.coded.n_codes, self._block.coded.n_ordered
        column = parting.column
        shape = int(n_codes[column]) + 1, int(n_ordered[column])
        if self._common.masks is None:
            ((_, found),) = parting.tests
            goes_left = codes_left(found, *shape).view(np.uint8)
            sides = part(self._dataset, held.rows, held.times, column, goes_left)
        else:
            left_of = np.zeros(shape[0], dtype=np.uint64)
            members = 0
            for number, found in parting.tests:
                members |= 1 << number
                left_of |= codes_left(found, *shape).astype(np.uint64) << np.uint64(number)
            rows = held.rows, held.times, held.kind, held.masks
            sides = partition_shared(self._dataset, *rows, column, left_of, members)
        left, right = sides
        return Held(held.root, *left), Held(held.root, *right)
