"""What workers do in a growth of partitions, and what they remember of it.

Tasks are pure: they return the same for the same arguments, wherever and however often they run. A
member of an epoch keeps the positions of its blocks after an update (`PositionCache`). The next
round goes on from there. Where there was no room, they are computed again from the updates so far::

    round r of block b     positions after update r - 1 here?     yes: one update
                                                                  no: all updates from the first

What is remembered is bounded by bytes. Where the positions of a growth are more than that, the
first ones stay. Its blocks come one after the other in every round, so some are spared the work.

Results tell Dask their sizes, which decide what a worker spills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from weakref import WeakSet

import numpy as np
from dask.sizeof import sizeof
from dask.system import CPU_COUNT

from dtrees._forks import lock_of_process
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, PositionIndex
from dtrees.core.stores.blocks.messages import Counts, Root, SplitUpdate
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


sizeof.register(Counts, attrgetter("nbytes"))

POSITIONS_SHARE = 0.25  # of what the process of a worker leaves, unless dask.config says otherwise

_lock = lock_of_process()
_caches: WeakSet[PositionCache] = WeakSet()  # of this process, which may be several workers

Work = Counter[str]  # what a task did beside its result, by the names of `FitStatistics.counts`


class PositionCache:
    """Positions of the blocks of a growth on a worker; `limit` are bytes of all growths there."""

    def __init__(self, worker: str, limit: int) -> None:
        self._worker, self._limit = worker, limit
        self._held: dict[int, tuple[int, PositionIndex, int]] = {}
        with _lock:
            _caches.add(self)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return sum(size for _, _, size in self._held.values())

    def after(
        self, updates: Sequence[SplitUpdate], number: int, rows: BlockOfRows, work: Work
    ) -> PositionIndex:
        """The positions of a block after some updates; `work` is told whether any were known.

        They are remembered where there is room.
        """
        known, positions, _ = self._held.get(number, (0, {}, 0))
        work["cache_hits" if known > 0 or len(updates) < 2 else "rebuilds"] += 1
        for update in updates[known:]:
            positions = rows.advance(positions, update)
        size = sum(held.nbytes for held in positions.values())
        with _lock:
            self._held.pop(number, None)
            if size + sum(c.nbytes for c in _caches if c._worker == self._worker) <= self._limit:
                self._held[number] = len(updates), positions, size
        return positions

    def end(self) -> None:
        """Forget all, for good: a traceback may keep who has it, and threads may go on."""
        self._limit = -1
        self.forget()

    def forget(self) -> None:
        """Forget all, before another tree."""
        with _lock:
            self._held.clear()


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


def block_of(codes: StoredCodes, rows: StoredRows, target: Target | None = None) -> Block:
    """A block from the results of `make_codes` and `make_rows`, or with another target."""
    own = rows.target if target is None else target
    return Block(codes.coded, own, rows.first_row, rows.keys, rows.cells)


def facts_of_codes(codes: StoredCodes, first_row: int) -> PartFacts:
    """What a growth learns of the codes of a block, by the number of its first row."""
    return PartFacts.of(codes.coded, first_row)


def sum_bags(
    codes: StoredCodes, rows: StoredRows, common: Common, roots: Sequence[Root], n_sets: int
) -> list[tuple[Counts, list[int]]]:
    """What `BlockOfRows.bags` says of a block."""
    return BlockOfRows(block_of(codes, rows), common).bags(roots, n_sets)
