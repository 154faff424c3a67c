"""A block of rows, and what a round asks of it.

A table in several places is cut into blocks, each of which does its part of a round alone and
returns integers that add up (`dtrees.core.rounds`)::

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dtrees._random import BOOTSTRAP, keyed_counts, keyed_largest
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.pickling import SmallArraysInside
from dtrees.coding.target import Target
from dtrees.core._pool import Pool
from dtrees.core._rounds import HIGHEST, LOWEST, count, part, part_kinds
from dtrees.core._shard import Shard
from dtrees.core.assembly import Piece
from dtrees.core.frontier import FoundSplit
from dtrees.core.model import ABOVE, AT_MOST
from dtrees.core.resampling import Resampling, poisson_steps
from dtrees.core.rules import GrowthRules
from dtrees.core.scale import Scale
from dtrees.core.source import ShardSource
from dtrees.typing import Runner, serial

EVERYONE = np.ones(1, dtype=np.uint64)
BESIDE_BLOCK = 0.6  # of the bytes of a block, that its places and what a task makes of it take


@dataclass(frozen=True)
class Draws:
    """How the bags of trees are drawn; see `dtrees.core.resampling.Bags`.

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


@dataclass(frozen=True)
class Root:
    """Where a tree begins.

    Attributes
    ----------
    node : int
    number : int
        Of the tree.
    key : int or None
        The only one in a bag that would be empty.
    class_multiplier : int64 (n_classes,) or None
        Of a bag whose classes are balanced.
    class_exponent : int
    fixed_point : float
        `Scale.fixed_point`, where the sums of rows depend on it.
    """

    node: int
    number: int
    key: int | None = None
    class_multiplier: np.ndarray | None = None
    class_exponent: int = 0
    fixed_point: float = 1.0


@dataclass(frozen=True)
class Parting:
    """How the rows of a node go to two children.

    Attributes
    ----------
    node, left, right : int
    column : int
    tests : tuple of (int, FoundSplit)
        Training sets, and the split of each, all on this column.
    """

    node: int
    left: int
    right: int
    column: int
    tests: tuple[tuple[int, FoundSplit], ...]


@dataclass(frozen=True)
class Step:
    """What changes places.

    Attributes
    ----------
    roots : tuple of Root
    partings : tuple of Parting
    done : tuple of int
        Nodes whose rows are not needed any more, after the partings.
    """

    roots: tuple[Root, ...] = ()
    partings: tuple[Parting, ...] = ()
    done: tuple[int, ...] = ()


@dataclass(frozen=True)
class Request:
    """A node that is to be counted.

    Attributes
    ----------
    node : int
    members : int
        A bit for each training set that is asked for.
    columns : int32 (k,)
        Of the histogram; the sums come with it.
    n_numbers : int
        Of the histogram, of all sets.
    """

    node: int
    members: int
    columns: np.ndarray
    n_numbers: int


@dataclass(frozen=True)
class Counts(SmallArraysInside):
    """What blocks add up to, for some requests, one behind the other.

    Attributes
    ----------
    sums : int64 (members of all requests, 8 + n_classes)
        As `dtrees.core._rounds.count`.
    histogram : int64 (n,)
    """

    sums: np.ndarray
    histogram: np.ndarray

    def __sizeof__(self) -> int:
        """As `nbytes`: Dask asks for it, to know what to spill."""
        return object.__sizeof__(self) + self.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return self.sums.nbytes + self.histogram.nbytes


def _size(*parts: object) -> int:
    """Bytes of what an object is made of."""
    return sum(sys.getsizeof(part) for part in parts if part is not None)


def add_up(counts: Iterable[Counts]) -> Counts:
    """The counts of several blocks, of which one at a time is looked at; they are not changed."""
    rest = iter(counts)
    total = next(rest)
    is_own = False
    for other in rest:
        if not is_own:  # one copy, whatever their number
            total = Counts(np.array(total.sums), np.array(total.histogram))
            is_own = True
        sums = total.sums
        lowest = np.minimum(sums[:, LOWEST], other.sums[:, LOWEST])
        highest = np.maximum(sums[:, HIGHEST], other.sums[:, HIGHEST])
        sums += other.sums
        sums[:, LOWEST], sums[:, HIGHEST] = lowest, highest
        histogram = total.histogram
        histogram += other.histogram
    return total


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


@dataclass(frozen=True)
class Unfinished:
    """A node of few rows, whose subtrees are grown where its rows are brought to.

    Attributes
    ----------
    node, tree : int
    number : int
        Of the tree.
    sets : tuple of int
    depth, path : int
    n : int
        Most rows that a set has here.
    rules : tuple of GrowthRules
        By set.
    scales : tuple of Scale
        By set.
    """

    node: int
    tree: int
    number: int
    sets: tuple[int, ...]
    depth: int
    path: int
    n: int
    rules: tuple[GrowthRules, ...]
    scales: tuple[Scale, ...]


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
        scale = Scale(1.0, 1.0)  # of no concern: nothing is searched here
        self._shard = Shard(block.coded, block.target, common.rules, scale, counts=True)

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
            self._shard, *rows, members, columns, root.class_multiplier, root.fixed_point
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
        rows: np.ndarray = self._shard.rows()
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
            sides = part(self._shard, held.rows, held.times, column, goes_left)
        else:
            left_of = np.zeros(shape[0], dtype=np.uint64)
            members = 0
            for number, found in parting.tests:
                members |= 1 << number
                left_of |= codes_left(found, *shape).astype(np.uint64) << np.uint64(number)
            rows = held.rows, held.times, held.kind, held.masks
            sides = part_kinds(self._shard, *rows, column, left_of, members)
        left, right = sides
        return Held(held.root, *left), Held(held.root, *right)


def codes_left(found: FoundSplit, n_codes: int, n_ordered: int) -> np.ndarray:
    """Which codes of a column go left; bool (n_codes,), missing first.

    Parameters
    ----------
    found : FoundSplit
    n_codes, n_ordered : int
        Codes with the missing one, and how many of them are ordered.
    """
    goes = np.zeros(n_codes, dtype=bool)
    if found.test == AT_MOST:
        goes[1 : found.boundary + 1] = True
    elif found.test == ABOVE:
        goes[found.boundary + 1 : n_ordered + 1] = True
    else:
        assert found.subset is not None
        for code, is_left in found.subset.items():
            goes[code] = is_left
    goes[0] = found.missing_left
    return goes


def stacked(parts: Sequence[Brought]) -> Brought:
    """Rows of a node that come from several blocks; copies, whose arrays are aligned."""
    coded = CodedMatrix.stack([part.coded for part in parts])
    target = Target.stack([part.target for part in parts])
    if parts[0].kind is None:
        return Brought(coded, target, None, EVERYONE)
    masks, number = np.unique(np.concatenate([part.masks for part in parts]), return_inverse=True)
    ends = np.cumsum([len(part.masks) for part in parts])
    of_parts = np.split(number.astype(np.uint16), ends[:-1])
    kinds = [own[part.kind] for own, part in zip(of_parts, parts, strict=True)]
    return Brought(coded, target, np.concatenate(kinds), masks)


def grow_brought(
    brought: Sequence[Brought],
    node: Unfinished,
    values: tuple[np.ndarray, np.ndarray] | None,
    pool: Pool,
    run: Runner = serial,
) -> tuple[Piece, ...]:
    """Grow the subtrees of a node, a piece for each of its sets, on one thread.

    Parameters
    ----------
    brought : sequence of Brought
        All rows of the node, from all blocks.
    node : Unfinished
    values : (float64, int64 (n_columns + 1,)) or None
        `CodeBook.code_values`, for random cuts.
    pool : Pool
    run : Runner, default=serial
        Its event ``cancelled`` ends the growth.

    Raises
    ------
    CancelledError
    """
    rows = stacked(brought)
    source = ShardSource(
        rows.coded,
        rows.target,
        node.rules[0],
        run=run,
        values=values,
        pool=pool,
        scale=node.scales[0],
    )
    if rows.kind is None:
        return (source.finish(node.depth, node.path),)
    bits = np.array(node.sets, dtype=np.uint64)
    mix = (rows.masks >> bits[:, None]) & np.uint64(1) > 0
    resampling = Resampling(rows.kind, mix)
    return tuple(source.sets(resampling, node.rules, node.depth, node.path, node.scales))
