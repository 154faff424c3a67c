"""A coded table in blocks of rows on the workers of a cluster, and where they are.

A block is codes, which stay for the next growth, and what else a growth knows of its rows. Both are
results of tasks, so those of a worker that dies are made again::

    partitions of the user ──▶ codes of a block ─┐
    targets, weights, ...  ──▶ rows of a block  ─┴─▶ where the codes are

What else there is comes from the user's graph, too, where it is in collections
(`dtrees.parallel.row_columns`), and is sent from here otherwise.

Messages cost time, so a growth has as many members as pay (`dtrees.parallel.cost`). The others code
partitions, and take the place of a member that is gone.

A round takes as long as the thread with the most rows. Dask makes blocks wherever there is room at
the moment, on two idle workers often all of them on one, and workers come and go. So blocks are
moved until all threads of members have about as many rows (`even_moves`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import dask
import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.parallel.block_tasks import facts_of_codes, make_codes
from dtrees.parallel.client import RELEASE_SECONDS, call_with_timeout, release
from dtrees.parallel.coded_partitions import (
    PART_BYTES,
    CodedPartitions,
    KeptTable,
    PartFacts,
    cut_rows,
)
from dtrees.parallel.cost import GrowthSize, members_that_pay
from dtrees.parallel.epochs import Epochs
from dtrees.parallel.exchange import EpochEndedError
from dtrees.parallel.memory import BLOCK_SHARE, BLOCKS_PER_THREAD
from dtrees.parallel.tasks import Call, LostResultsError, Tasks, identity

if TYPE_CHECKING:
    from distributed import Future

BLOCK_BYTES = 32 * 2**20  # of codes, at most, where partitions are not larger
MOVES_AT_ONCE = 4  # of blocks, for each worker
TARGET_BYTES = 24  # of a row, at most


@dataclass(frozen=True)
class PlaceOfBlock:
    """A block among the results that a worker has, in its memory or on its disk."""

    number: int
    n_rows: int
    codes: Any  # key
    rows: Any  # key

    def halves(self, worker: Any) -> tuple[Any, Any]:
        """The block; raises EpochEndedError where it has gone elsewhere.

        Blocks are taken up one after the other, again and again. What is on the disk stays there:
        in memory it would take the place of another one that comes before it.
        """
        data = worker.data
        disk = getattr(data, "disk", {})
        try:
            there = ((key, disk.get(key)) for key in (self.codes, self.rows))
            codes, rows = (data[key] if half is None else half for key, half in there)
            return codes, rows
        except KeyError as error:
            raise EpochEndedError(f"A block has left {worker.address}.") from error


class PlacedBlocks:
    """The blocks of a growth on the workers of a cluster."""

    def __init__(
        self,
        tasks: Tasks,
        parts: CodedPartitions,
        kept: KeptTable,
        each: Callable[[], list[Any]] | None,
    ) -> None:
        self._client = tasks.client
        self._each = each  # what else there is of each partition, as tasks; None: it is here
        self._of_parts: list[Future] = []  # their results, until blocks are made
        self._tasks = tasks
        self._parts = parts
        self._stats = tasks.stats
        self._kept = kept
        self._rows: list[Future] = []  # of the blocks: what is not kept
        self._epochs: Epochs | None = None  # whose members have the blocks
        self.members: dict[str, int] = {}  # threads of the workers that the blocks are to be on,
        self._seen: dict[str, int] = {}  # and of those that it could have been

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the blocks for what is done in this context, and leave nothing on the cluster."""
        with self._tasks.span():
            try:
                with self._stats.phase("blocks"):
                    self._tasks.begin()
                    self._tasks.run(self.make, self._kept.forget)
                yield
            finally:
                self.end()

    def make_again(self) -> None:
        """Make them once more: some are lost."""
        self._kept.forget()
        self.make()

    def make(self) -> None:
        """Make the codes of the blocks, which stay for the next growth, and what else they need."""
        self._rows = []
        self._tasks.wait(self._kept.blocks)
        if (of_block := self._rows_of_block()) < self._kept.rows_of_block:
            self._kept.forget()  # more members would not get a block each
        if not self._kept.blocks:
            make = dask.delayed(make_codes, pure=False)
            learn = dask.delayed(facts_of_codes, pure=False)
            send, key = partial(self._tasks.send, "codes-of-block"), self._tasks.key
            tasks, facts = [], []
            lengths: list[int] = []
            share = -(-self._parts.n_rows // max(1, len(self.members)))
            for coded, n_rows in self._parts.groups(of_block, share):
                here = [each.nbytes for each in coded if isinstance(each, CodedMatrix)]
                self._stats.counts["bytes_moved"] += sum(here)
                parts = [send(each) if isinstance(each, CodedMatrix) else each for each in coded]
                tasks.append(make(parts, dask_key_name=key("block")))
                facts.append(learn(tasks[-1], sum(lengths), dask_key_name=key("facts")))
                lengths.append(n_rows)
            futures = self._tasks.hold([*tasks, *facts])
            self._kept.blocks, facts = futures[: len(tasks)], futures[len(tasks) :]
            self._kept.lengths, self._kept.rows_of_block = lengths, of_block
            self._tasks.hand_over(self._kept.blocks)
            self._parts.facts = PartFacts.joined(self._tasks.fetch(facts))
            release(self._client, facts)
            self._stats.counts["passes"] += 1
        self._spread()
        self._make_rows()

    def _make_rows(self) -> None:
        """Send what else there is of the rows of the blocks, to where their codes are."""
        calls: list[Call] = []
        first_row = 0
        self._of_parts = [] if self._each is None else self._tasks.hold(self._each())
        holders = self._tasks.holders(self._kept.blocks)
        for n_rows, workers in zip(self._kept.lengths, holders, strict=True):
            calls.append(self._call_for_rows(slice(first_row, first_row + n_rows), tuple(workers)))
            first_row += n_rows
        self._rows = self._tasks.submit(calls)
        self._tasks.wait(self._rows)
        self._of_parts = []

    def _call_for_rows(self, rows: slice, workers: tuple[str, ...]) -> Call:
        """The task that makes what else there is of some rows, on these workers."""
        raise NotImplementedError

    def _spread(self) -> None:
        """Move blocks until every thread has about as many rows, some at a time."""
        threads = self._threads()
        if len(self._tasks.workers()) == 1:
            return
        holders = self._tasks.holders(self._kept.blocks)
        lengths = self._kept.lengths
        places = dict(enumerate(share_out(lengths, holders, threads)))
        places |= even_moves(lengths, [*places.values()], threads)
        wanted = [
            (number, to)
            for number, to in places.items()
            if holders[number] and to not in holders[number]
        ]
        moved = self._moved(self._kept.blocks, wanted)
        self._tasks.hand_over(moved)
        per_row = self._parts.n_bytes / max(1, self._parts.n_rows)
        self._stats.counts["bytes_moved"] += int(per_row * sum(lengths[i] for i, _ in wanted))

    def _moved(self, halves: list[Future], wanted: Sequence[tuple[int, str]]) -> list[Future]:
        """Move halves of blocks by number, some at a time; the new ones, which take their places.

        The worker that a half was on forgets it.
        """
        found: list[Future] = []
        at_once = MOVES_AT_ONCE * len(self._tasks.workers())
        for start in range(0, len(wanted), at_once):
            some = wanted[start : start + at_once]
            moved = self._tasks.submit(
                [Call("move-block", identity, (halves[i],), (worker,)) for i, worker in some]
            )
            self._tasks.wait(moved)
            for (i, _), future in zip(some, moved, strict=True):
                release(self._client, [halves[i]])
                halves[i] = future
            found += moved
        return found

    def settle(self) -> dict[str, list[PlaceOfBlock]]:
        """Wait until every block is on a worker that answers, which has about as many as others.

        Returns the blocks of each. Raises LostResultsError where that is not so: they have to be
        made again.
        """
        halves = [*self._kept.blocks, *self._rows]
        self._tasks.wait(halves)
        self._spread()
        hanging = self._tasks.hanging()
        if hanging.issuperset(self._tasks.workers()):  # they may be busy only, and nobody else is
            hanging = frozenset()
        halves = [*self._kept.blocks, *self._rows]
        if hanging and any(hanging.issuperset(there) for there in self._tasks.holders(halves)):
            raise LostResultsError("Workers that hang have some of the rows.")
        lengths, holders = self._kept.lengths, self._tasks.holders(self._kept.blocks)
        workers = share_out(lengths, holders, self._threads())
        there = zip(workers, self._tasks.holders(self._rows), strict=True)
        away = [(i, worker) for i, (worker, have_it) in enumerate(there) if worker not in have_it]
        self._moved(self._rows, away)
        found: dict[str, list[PlaceOfBlock]] = defaultdict(list)
        owners: dict[Any, str] = {}
        for number, worker in enumerate(workers):
            keys = self._kept.blocks[number].key, self._rows[number].key
            found[worker].append(PlaceOfBlock(number, lengths[number], *keys))
            owners |= dict.fromkeys(keys, worker)
        self._drop_copies(owners)
        return dict(found)

    def _drop_copies(self, owners: dict[Any, str]) -> None:
        """Let results be on their owners only: of several copies Dask drops any."""

        def drop(dask_scheduler: Any) -> None:  # by value: dtrees need not be there
            for key, owner in owners.items():
                task = dask_scheduler.tasks.get(key)
                there = {each.address for each in task.who_has or ()} if task is not None else set()
                for other in there - {owner} if owner in there else ():
                    dask_scheduler.request_remove_replicas(other, [key], stimulus_id="dtrees-copy")

        with suppress(Exception):  # where one is dropped, the epoch ends
            ask = partial(self._client.run_on_scheduler, drop)
            call_with_timeout(self._client, ask, RELEASE_SECONDS)

    def _threads(self) -> dict[str, int]:
        """Threads of the workers that the blocks are to be on; those of before, if they are there.

        Otherwise those of the most threads, or blocks.
        """
        if (threads := self._able()) != self._seen:
            n = self._n_members(threads)
            blocks = Counter(chain.from_iterable(self._tasks.holders(self._kept.blocks)))

            def rank(each: str) -> tuple[bool, int, int, str]:
                return each not in self.members, -threads[each], -blocks[each], each

            self.members = {each: threads[each] for each in sorted(threads, key=rank)[:n]}
            self._seen = threads
        return self.members

    def _able(self) -> dict[str, int]:
        """Threads of the workers that may have blocks."""
        return self._tasks.answering()

    def _n_members(self, threads: Mapping[str, int]) -> int:
        """How many of these workers are to have blocks."""
        n, room = len(threads), self._tasks.room()
        size = replace(self._size(), n_threads=sum(threads.values()) // n, memory_limit=room)
        return members_that_pay(size, n)

    def _size(self) -> GrowthSize:
        """How large the growth is."""
        raise NotImplementedError

    def _rows_of_block(self) -> int:
        """Rows that a block may have, where partitions are not larger."""
        threads = sum(self._threads().values())
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows))
        even = -(-self._parts.n_rows // (BLOCKS_PER_THREAD * threads))
        room = self._tasks.room()
        most = BLOCK_BYTES if room is None else min(BLOCK_BYTES, int(BLOCK_SHARE * room))
        return max(1, min(most // per_row, even))

    def _rows_there(self, rows: slice, number: int = 0) -> list[Any]:
        """What belongs to the partitions of a block, as tasks; `number`: of several kinds."""
        ends, found = np.cumsum(self._parts.lengths), []
        first, last = np.searchsorted(ends, (rows.start, rows.stop - 1), side="right")
        for k in range(first, last + 1):
            length = self._parts.lengths[k]
            begin = int(ends[k]) - length
            some = slice(max(rows.start - begin, 0), min(rows.stop - begin, length))
            part = self._of_parts[number * len(ends) + k]
            if some.stop - some.start < length:
                (part,) = self._tasks.submit([Call("cut-rows", cut_rows, (part, some))])
            found.append(part)
        return found

    def _sent_rows(self, values: Any, rows: slice) -> list[Any]:
        """What belongs to some rows, as tasks that hold a few megabytes each."""
        if values is None:
            return []
        arrays = values.values() if isinstance(values, dict) else [values]
        step = max(1, PART_BYTES // sum(getattr(own, "itemsize", TARGET_BYTES) for own in arrays))
        sent = []
        for start in range(rows.start, max(rows.stop, rows.start + 1), step):
            some = slice(start, min(start + step, rows.stop))
            sent.append(self._tasks.send("rows-of-block", cut_rows(values, some)))
        return sent

    def end(self) -> None:
        """Leave nothing on the cluster."""
        try:
            if self._epochs is not None:
                self._epochs.end()
        finally:
            self._rows = []
            self._tasks.end()


def share_out(
    lengths: Sequence[int], holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str]:
    """The worker of each block, one that has it: of several, the one with the least to do.

    `lengths` are rows of the blocks. Of their `holders`, those that are gone do not count, and
    where none is left, any may make the block again. `threads` are those of all workers.
    """
    loads = dict.fromkeys(threads, 0)
    workers = [""] * len(lengths)
    for number in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        have_it = [worker for worker in holders[number] if worker in threads]
        _, workers[number] = _freest(have_it or threads, loads, threads, lengths[number])
        loads[workers[number]] += lengths[number]
    return workers


def even_moves(
    lengths: Sequence[int], workers: Sequence[str], threads: Mapping[str, int]
) -> dict[int, str]:
    """Workers that blocks should go to, by number, so that threads have about as many rows each.

    `workers` are as from `share_out`. Blocks go one by one from the worker with the most rows per
    thread to the one that would have the fewest. Each is the largest that makes it better.
    """
    loads = dict.fromkeys(threads, 0)
    held: dict[str, list[int]] = {worker: [] for worker in threads}
    for number in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        held[workers[number]].append(number)
        loads[workers[number]] += lengths[number]
    moves: dict[int, str] = {}
    while True:
        most, full = max((loads[worker] / threads[worker], worker) for worker in threads)
        for number in held[full]:
            size = lengths[number]
            least, free = _freest(threads, loads, threads, size)
            if free != full and least < most:
                break
        else:
            return {i: worker for i, worker in moves.items() if worker != workers[i]}
        held[full].remove(number)
        held[free].append(number)
        loads[full] -= size
        loads[free] += size
        moves[number] = free


def _freest(
    workers: Iterable[str], loads: Mapping[str, int], threads: Mapping[str, int], size: int
) -> tuple[float, str]:
    """The fewest rows for each thread that a worker has with so many more, and that worker."""
    return min(((loads[worker] + size) / threads[worker], worker) for worker in workers)
