"""What workers do in a growth of partitions, and what they remember of it.

Tasks are pure: they return the same for the same arguments, wherever and however often they run. A
worker keeps the positions of its blocks after an update (`PositionCache`), by growth, block and
update. The next round goes on from there. A worker may have just got the block, or others may have
pushed them out. Then they are computed again from the updates so far::

    round r of block b     positions after update r - 1 here?     yes: one update
                                                                  no: all updates from the first

What is remembered is bounded by bytes. What was used least recently goes first. Where the positions
of one growth are more than that, the first ones stay. Its blocks come one after the other in every
round, so some are spared the work. A growth that is over is forgotten, and what tasks of it do
afterwards is not remembered.

Results tell Dask their sizes, which decide what a worker spills.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

import numpy as np
from dask.sizeof import sizeof
from dask.system import CPU_COUNT

from dtrees._forks import lock_of_process
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, GatheredRows, PositionIndex
from dtrees.core.stores.blocks.messages import Counts, Root, SplitUpdate
from dtrees.parallel.client import this_worker
from dtrees.parallel.coded_partitions import PartFacts
from dtrees.parallel.memory import configured_bytes, free_bytes

BESIDE_BLOCK = 0.6  # of the bytes of a block: its positions, and what a task makes of it


@dataclass(frozen=True, eq=False)
class StoredCodes:
    """Codes of a block as the result of a task: a worker that unpickles it imports its size, too.

    They outlive the growths that read them, which bring the rest of each block.
    """

    coded: CodedMatrix


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rest of a block, as the attributes of `Block`."""

    target: Target
    first_row: int
    keys: np.ndarray | None
    cells: np.ndarray | None


@sizeof.register(StoredCodes)
@sizeof.register(StoredRows)
def size_of_half(half: StoredCodes | StoredRows) -> int:
    """Bytes of half a block, and of what goes with it.

    Positions and copies of rows are memory of the process, which Dask does not count with results.
    Where blocks alone fill the share of a worker that it gives to results, there is no room for
    them, and the worker is killed.
    """
    return int((1 + BESIDE_BLOCK) * sum(map(sizeof, vars(half).values())))


@sizeof.register(GatheredRows)
def size_of_rows(rows: GatheredRows) -> int:
    """Bytes of gathered rows."""
    return sum(map(sizeof, vars(rows).values()))


sizeof.register(Counts, attrgetter("nbytes"))

POSITIONS_SHARE = 0.25  # of what the process of a worker leaves, unless dask.config says otherwise
REMEMBERED = 1000  # names of growths that are over

_lock = lock_of_process()  # of all caches: there is one in a process


@dataclass(eq=False)
class PositionCache:
    """Positions by growth and block, the most recent ones, of at most `limit` bytes."""

    limit: int
    _held: OrderedDict[tuple[str, int], tuple[int, PositionIndex, int]] = field(
        default_factory=OrderedDict, init=False
    )
    _over: deque[str] = field(  # growths that are forgotten
        default_factory=partial(deque, maxlen=REMEMBERED), init=False
    )

    def get(self, growth: str, block: int) -> tuple[int, PositionIndex]:
        """How many updates were taken, and the positions after them; 0 where nothing is known."""
        with _lock:
            found = self._held.get((growth, block))
            if found is None:
                return 0, {}
            self._held.move_to_end((growth, block))
            return found[0], found[1]

    def put(self, growth: str, block: int, n_updates: int, positions: PositionIndex) -> None:
        """Remember positions, unless later ones are known, or there is no room."""
        key = growth, block
        with _lock:
            before = self._held.get(key)
            if growth in self._over or (before is not None and before[0] >= n_updates):
                return
            size = sum(held.nbytes for held in positions.values())
            self._held.pop(key, None)
            room = self.limit - size - sum(held[2] for held in self._held.values())
            for other, (n, _, gone) in list(self._held.items()):
                if room >= 0:
                    break
                if other[0] != growth or n < n_updates - 1:  # of no use in this round
                    del self._held[other]
                    room += gone
            if room >= 0:
                self._held[key] = n_updates, positions, size

    def forget(self, growth: str) -> None:
        """Drop what is known of a growth, for good."""
        with _lock:
            self._over.append(growth)
            for key in [key for key in self._held if key[0] == growth]:
                del self._held[key]


_cache: PositionCache | None = None


def cache() -> PositionCache:
    """The positions that this process remembers."""
    global _cache
    with _lock:
        if _cache is None:
            limit, n_threads, worker = None, CPU_COUNT, this_worker()
            if worker is not None:
                limit, n_threads = worker.memory_manager.memory_limit, worker.state.nthreads
            _cache = PositionCache(room_of_positions(limit, n_threads))
        return _cache


def room_of_positions(memory_limit: int | None, n_threads: int) -> int:
    """Bytes of positions that a worker may remember.

    A share of the memory that its process leaves, or what ``dask.config`` says under
    "dtrees.position-cache". A worker without a limit has the share of the machine that goes with
    its threads.
    """
    room = memory_limit
    if not room:
        from distributed.system import MEMORY_LIMIT

        room = int(MEMORY_LIMIT * min(1, n_threads / CPU_COUNT))
    return configured_bytes("dtrees.position-cache", int(POSITIONS_SHARE * free_bytes(room)))


Work = Counter[str]  # what a task did beside its result, by the names of `FitStatistics.counts`


@dataclass(frozen=True)
class GrowthOfBlocks:
    """What a task has to know of a growth."""

    name: str
    common: Common


def make_codes(coded: Sequence[CodedMatrix]) -> StoredCodes:
    """Codes of a block from those of partitions that lie one behind the other."""
    return StoredCodes(coded[0] if len(coded) == 1 else CodedMatrix.stack(coded))


def make_rows(
    targets: Sequence[Target],
    first_row: int,
    keys: Sequence[np.ndarray],
    cells: Sequence[np.ndarray],
) -> StoredRows:
    """What else a growth knows of the rows of a block, as the attributes of `Block`.

    They are cut in any way; the last two are empty for None.
    """
    return StoredRows(
        targets[0] if len(targets) == 1 else Target.stack(targets),
        first_row,
        np.concatenate(keys) if keys else None,
        np.concatenate(cells) if cells else None,
    )


def block_of(codes: StoredCodes, rows: StoredRows) -> Block:
    """A block from the results of `make_codes` and `make_rows`."""
    return Block(codes.coded, rows.target, rows.first_row, rows.keys, rows.cells)


def facts_of_codes(codes: StoredCodes, first_row: int) -> PartFacts:
    """What a growth learns of the codes of a block, by the number of its first row."""
    return PartFacts.of(codes.coded, first_row)


def positions_of(
    block: Block,
    number: int,
    growth: GrowthOfBlocks,
    updates: Sequence[SplitUpdate],
    work: Work,
) -> tuple[BlockOfRows, PositionIndex]:
    """The positions of a block after some updates; `work` is told whether they were known."""
    rows = BlockOfRows(block, growth.common)
    known, positions = cache().get(growth.name, number)
    if known > len(updates):
        known, positions = 0, {}
    work["cache_hits" if known > 0 or len(updates) == 1 else "rebuilds"] += 1
    for update in updates[known:]:
        positions = rows.advance(positions, update)
    cache().put(growth.name, number, len(updates), positions)
    return rows, positions


def sum_bags(
    codes: StoredCodes, rows: StoredRows, common: Common, roots: Sequence[Root], n_sets: int
) -> list[tuple[Counts, list[int]]]:
    """What `BlockOfRows.bags` says of a block."""
    return BlockOfRows(block_of(codes, rows), common).bags(roots, n_sets)
