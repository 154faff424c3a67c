"""Messages between a driver and blocks of rows: small, and the same for all blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from dtrees._pickling import SmallArraysInside
from dtrees.core.model.tree import ABOVE, AT_MOST
from dtrees.core.stores.blocks._node_counts import (
    HIGHEST,
    HIGHEST_SHARE,
    LOWEST,
    LOWEST_SHARE,
    merged,
)

LEAST, MOST = [LOWEST, LOWEST_SHARE], [HIGHEST, HIGHEST_SHARE]  # of sums


@dataclass(frozen=True, eq=False)
class FoundSplit:
    """The test of a node in codes, as its record has it."""

    column: int
    test: int
    boundary: int  # the last code at or below the boundary that occurs in the node
    missing_left: bool  # where missing values go: as was learned, or to the heavier child
    # uint64 (n_codes // 64 + 1,): a bit for each code that goes left, missing first
    subset: np.ndarray | None


@dataclass(frozen=True)
class Root:
    """The root of a tree."""

    node: int
    number: int  # of the tree
    key: int | None = None  # the only one in a bag that would be empty
    fixed_point: float = 1.0  # `Scale.fixed_point`, where the sums of rows depend on it


@dataclass(frozen=True)
class NodeSplit:
    """The tests by which the rows of a node go to two children."""

    node: int
    left: int
    right: int
    column: int
    # training sets, and the split of each, all on this column
    tests: tuple[tuple[int, FoundSplit], ...]


@dataclass(frozen=True)
class SplitUpdate:
    """The changes of a position index."""

    roots: tuple[Root, ...] = ()
    splits: tuple[NodeSplit, ...] = ()
    done: tuple[int, ...] = ()  # nodes whose rows are not needed any more, after the splits


def joined(updates: Sequence[SplitUpdate]) -> SplitUpdate:
    """Updates of several batches of trees, as one."""
    parts = zip(*((each.roots, each.splits, each.done) for each in updates), strict=True)
    return SplitUpdate(*(tuple(chain.from_iterable(part)) for part in parts))


@dataclass(frozen=True)
class HistogramRequest:
    """A node that is to be counted."""

    node: int
    members: int  # a bit for each training set that is asked for
    columns: np.ndarray | None  # int32 (k,): of the histogram; the sums come with it. None: all.
    n_numbers: int  # of the histogram, of the columns that have one and of all sets
    n_stored: int = 0  # numbers of the columns that are listed, about
    by_code: bool = False  # whether columns are listed that else have a cell for each interval
    # uint64 (n,): a bit for each interval of each column, from bit 0 of a word on, column behind
    # column: of these the codes are listed, and nothing else is asked for
    alive: np.ndarray | None = None


NUMBER_BYTES = 16  # of a number that is listed, and of its place


NumberList = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # places, values, who


@dataclass(frozen=True, eq=False)
class StoredCounts(SmallArraysInside):
    """Histograms of listed columns: a list for each request, one behind the other."""

    # places, values: int64 (n,): as `dtrees.core.stores.blocks._node_counts` has them
    places: np.ndarray
    values: np.ndarray
    # uint64 (n,): a bit for each set of the request that has the number. None: each is of one set.
    who: np.ndarray | None
    ends: np.ndarray  # int64 (n_lists,)

    @classmethod
    def of(cls, lists: Sequence[NumberList]) -> StoredCounts:
        """Some lists."""
        ends = np.cumsum([len(places) for places, _, _ in lists], dtype=np.int64)
        if len(lists) == 1:
            return cls(*lists[0], ends)
        places, values, who = zip(*lists, strict=True)
        bits: np.ndarray | None = None
        if any(own is not None for own in who):
            ones = (np.ones(len(own), dtype=np.uint64) for own in places)
            of_lists = zip(ones, who, strict=True)
            bits = np.concatenate([one if own is None else own for one, own in of_lists])
        return cls(np.concatenate(places), np.concatenate(values), bits, ends)

    def lists(self) -> list[NumberList]:
        """Places, values and sets of each list."""
        who = self.who
        return [
            (self.places[own], self.values[own], None if who is None else who[own])
            for own in map(slice, [0, *self.ends[:-1].tolist()], self.ends.tolist())
        ]

    def added(self, other: StoredCounts) -> StoredCounts:
        """The sums, in new arrays."""
        return StoredCounts.of(
            [merged(*pair) for pair in zip(self.lists(), other.lists(), strict=True)]
        )


@dataclass(frozen=True, eq=False)
class Histogram:
    """The sums of some columns of a node by code, for one set."""

    dense: np.ndarray  # int64 (n,): of the dense columns, one behind the other
    # places, values: int64 (n,): of those that are listed; of sparse ones without the cells of
    # their fill codes
    places: np.ndarray
    values: np.ndarray

    def less(self, other: Histogram) -> Histogram:
        """The histogram of a node without the rows of another one, of the same columns."""
        mine, theirs = ((each.places, each.values, None) for each in (self, other))
        places, values, _ = merged(mine, theirs, -1)
        return Histogram(self.dense - other.dense, places, values)


@dataclass(frozen=True)
class Counts(SmallArraysInside):
    """The sums of blocks for some requests, one behind the other."""

    # int64 (members of all requests, 10 + n_classes): as
    # `dtrees.core.stores.blocks._node_counts.count`
    sums: np.ndarray
    histogram: np.ndarray  # int64 (n,): of dense columns
    # of the others; None: there are none, or they are told elsewhere
    stored: StoredCounts | None = None

    def stored_lists(self) -> Iterator[NumberList]:
        """The list of each request; empty ones without end, where there are none."""
        if self.stored is not None:
            yield from self.stored.lists()
            return
        nothing = np.zeros(0, dtype=np.int64)
        while True:
            yield nothing, nothing, None

    def split(self, requests: Sequence[Sequence[HistogramRequest]]) -> list[Counts]:
        """The counts of each of some lists of requests that were counted one behind the other."""
        found, lists = [], self.stored_lists()
        n_sums = n_numbers = 0
        for some in requests:
            first_sum, first_number = n_sums, n_numbers
            n_sums += sum(each.members.bit_count() for each in some)
            n_numbers += sum(each.n_numbers for each in some)
            own = [next(lists) for _ in some]
            stored = None if self.stored is None else StoredCounts.of(own)
            sums, numbers = self.sums[first_sum:n_sums], self.histogram[first_number:n_numbers]
            found.append(Counts(sums, numbers, stored))
        return found


def add_up(counts: Iterable[Counts]) -> Counts:
    """The counts of several blocks, of which one at a time is looked at; they are not changed."""
    rest = iter(counts)
    total = next(rest)
    halves = [] if total.stored is None else [(1, total.stored)]
    is_own = False
    for other in rest:
        if other.stored is not None:
            _add_lists(halves, other.stored)
        if not is_own:  # one copy, whatever their number
            total = Counts(np.array(total.sums), np.array(total.histogram))
            is_own = True
        sums = total.sums
        lowest = np.minimum(sums[:, LEAST], other.sums[:, LEAST])
        highest = np.maximum(sums[:, MOST], other.sums[:, MOST])
        sums += other.sums
        sums[:, LEAST], sums[:, MOST] = lowest, highest
        histogram = total.histogram
        histogram += other.histogram
    stored: StoredCounts | None = None
    for _, half in reversed(halves):
        stored = half if stored is None else half.added(stored)
    return replace(total, stored=stored)


def _add_lists(halves: list[tuple[int, StoredCounts]], stored: StoredCounts) -> None:
    """Add the lists of a block to sums of so many blocks each, ever fewer.

    So each number is moved a few times, however many blocks there are.
    """
    n = 1
    while halves and halves[-1][0] == n:
        n, stored = 2 * n, halves.pop()[1].added(stored)
    halves.append((n, stored))


def merge_bags(
    of_blocks: Iterable[Sequence[tuple[Counts, list[int]]]],
) -> list[tuple[Counts, list[int]]]:
    """Merge what `BlockOfRows.bags` says of several blocks."""
    return [
        (add_up([counts for counts, _ in of_tree]), [key for _, keys in of_tree for key in keys])
        for of_tree in zip(*of_blocks, strict=True)
    ]


def ends_of_codes(tests: Sequence[FoundSplit], n_codes: int, n_ordered: int) -> np.ndarray | None:
    """The last code of each stretch of codes that the tests of a column do not tell apart.

    uint32 (k,), ascending, from the missing one on; None: tests are subsets of the codes. Other
    arguments are as for `codes_left`.
    """
    if any(found.test not in (AT_MOST, ABOVE) for found in tests):
        return None
    ends = {0, n_ordered, n_codes - 1, *(found.boundary for found in tests)}
    return np.array(sorted(ends), dtype=np.uint32)


def codes_left(
    found: FoundSplit, n_codes: int, n_ordered: int, codes: np.ndarray | None = None
) -> np.ndarray:
    """Find the codes of a column that go left; bool, missing first.

    `n_codes` are with the missing one, `n_ordered` of them are ordered. `codes`, uint32 (k,), are
    those that are asked about, of a test that is a comparison; None: all.
    """
    if codes is not None:
        is_above = (codes > found.boundary) & (codes <= n_ordered)
        goes = (codes <= found.boundary) if found.test == AT_MOST else is_above
        goes[0] = found.missing_left
        return goes
    goes = np.zeros(n_codes, dtype=bool)
    if found.test == AT_MOST:
        goes[1 : found.boundary + 1] = True
    elif found.test == ABOVE:
        goes[found.boundary + 1 : n_ordered + 1] = True
    else:
        assert found.subset is not None
        bits = np.unpackbits(found.subset.view(np.uint8), bitorder="little")
        goes[:] = bits[:n_codes]
    goes[0] = found.missing_left
    return goes
