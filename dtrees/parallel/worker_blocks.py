"""Blocks of rows on the workers of a cluster: how they are made, where they are, and moved.

A round takes as long as the thread with the most rows. Dask makes blocks wherever there is room at
the moment, on two idle workers often all of them on one, and workers come and go.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask
import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import Common
from dtrees.core.stores.blocks.messages import SplitUpdate
from dtrees.parallel.block_tasks import (
    GrowthOfBlocks,
    cache,
    facts_of_codes,
    make_codes,
    make_rows,
)
from dtrees.parallel.client import RELEASE_SECONDS, call_with_timeout, memory_limits, release
from dtrees.parallel.coded_partitions import PART_BYTES, CodedPartitions
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.kept_tables import KeptTable
from dtrees.parallel.local_partitioned import PartitionedGrowth
from dtrees.parallel.memory import BLOCK_SHARE
from dtrees.parallel.submission import Call, identity
from dtrees.parallel.tasks import WATCH_SECONDS, Tasks

if TYPE_CHECKING:
    from distributed import Client, Future


def share_out(
    lengths: Sequence[int], holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str]:
    """The worker of each block, one that has it: of several, the one with the least to do.

    `lengths` are rows of the blocks. Of their `holders`, those that are gone do not count, and
    where none is left, any may make the block again. `threads` are those of all workers.
    """
    loads = dict.fromkeys(threads, 0)
    workers = [""] * len(lengths)
    for number in _largest_first(lengths):
        have_it = [worker for worker in holders[number] if worker in threads]
        workers[number] = _freest(have_it or threads, loads, threads, lengths[number])
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
    for number in _largest_first(lengths):
        held[workers[number]].append(number)
        loads[workers[number]] += lengths[number]
    moves: dict[int, str] = {}
    while True:
        full = max(threads, key=lambda worker: loads[worker] / threads[worker])
        most = loads[full] / threads[full]
        for number in held[full]:
            size = lengths[number]
            free = _freest(threads, loads, threads, size)
            if free != full and (loads[free] + size) / threads[free] < most:
                break
        else:
            return {i: worker for i, worker in moves.items() if worker != workers[i]}
        held[full].remove(number)
        held[free].append(number)
        loads[full] -= size
        loads[free] += size
        moves[number] = free


def _largest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda number: (-lengths[number], number))


def _freest(
    workers: Sequence[str] | Mapping[str, int],
    loads: Mapping[str, int],
    threads: Mapping[str, int],
    size: int,
) -> str:
    """The worker that has the fewest rows for each of its threads, with so many more."""
    return min(workers, key=lambda worker: ((loads[worker] + size) / threads[worker], worker))


BLOCK_BYTES = 32 * 2**20  # of codes, at most, where partitions are not larger
BLOCKS_PER_THREAD = 2  # at least, where there are so many partitions
MOVES_AT_ONCE = 4  # of blocks, for each worker
GROUP_SHARE = 1 / 12  # of the memory of a worker, for the codes of the blocks of a task


class WorkerBlocks:
    """Blocks of a growth, by the worker that has them."""

    def __init__(
        self, client: Client, growth: PartitionedGrowth, kept: KeptTable, stats: FitStatistics
    ) -> None:
        self._client = client
        self._tasks = Tasks(client, stats, collections=growth.parts.collections)
        self._growth = growth
        self._parts: CodedPartitions = growth.parts
        self._stats = stats
        self._kept = kept
        self._rows: list[Future] = []  # of the blocks: what is not kept
        self._lengths: list[int] = []  # their rows
        self._updates: list[SplitUpdate] = []
        self._sent: list[Future] = []  # the updates, as the workers have them
        self._values: Future | None = None
        self._known = GrowthOfBlocks(uuid4().hex, growth.common())
        self._is_known = False  # to workers, under its name
        self._groups: list[tuple[str, list[int]]] = []
        self._grouped = 0.0
        self._held: list[Future] = []

    def make(self) -> None:
        """Make the blocks from the partitions, and wait for them."""
        self._tasks.begin()
        self._tasks.run(self._make, self._kept.forget)

    def _make_again(self) -> None:
        self._kept.forget()
        self._make()

    def _make(self) -> None:
        self._rename(self._known.common)  # where workers have gone, blocks are cut elsewhere
        self._sent, self._values, self._groups = [], None, []
        self._held, self._rows = [], []
        if self._kept.blocks:
            self._tasks.wait(self._kept.blocks)
        else:
            self._make_codes()
        self._lengths = self._kept.lengths
        self._spread()
        self._make_rows()

    def _make_codes(self) -> None:
        """Make the codes of the blocks, which stay for the next growth."""
        make = dask.delayed(make_codes, pure=False)
        learn = dask.delayed(facts_of_codes, pure=False)
        tasks, facts = [], []
        lengths: list[int] = []
        for coded, n_rows in self._parts.groups(self._rows_of_block()):
            parts = [self._sent_codes(each) for each in coded]
            tasks.append(make(parts, dask_key_name=self._tasks.key("block")))
            key = self._tasks.key("facts")
            facts.append(learn(tasks[-1], sum(lengths), dask_key_name=key))
            lengths.append(n_rows)
        futures = self._tasks.compute([*tasks, *facts])
        self._kept.blocks, facts = futures[: len(tasks)], futures[len(tasks) :]
        self._kept.lengths = lengths
        self._tasks.hand_over(self._kept.blocks)
        self._tasks.wait(facts)
        self._parts.learn(self._tasks.gather(facts))
        release(self._client, facts)
        self._stats.counts["passes"] += 1

    def _make_rows(self) -> None:
        """Send what else there is of the rows of the blocks, to where their codes are."""
        calls: list[Call] = []
        first_row, keys, cells = 0, self._growth.keys, self._growth.resampling.cells
        holders = self._tasks.holders(self._kept.blocks)
        for n_rows, workers in zip(self._lengths, holders, strict=True):
            rows = slice(first_row, first_row + n_rows)
            targets = self._sent_rows(self._growth.growth.target, rows)
            own = self._sent_rows(keys, rows), self._sent_rows(cells, rows)
            calls.append(Call("block-rows", make_rows, (targets, first_row, *own), tuple(workers)))
            first_row += n_rows
        self._rows = self._tasks.submit(calls)
        self._tasks.wait(self._rows)
        self._held = []

    def _spread(self) -> None:
        """Move blocks until every thread has about as many rows, some at a time."""
        threads = self._tasks.workers()
        holders = self._tasks.holders(self._kept.blocks)
        moves = even_moves(self._lengths, share_out(self._lengths, holders, threads), threads)
        wanted = [(number, to) for number, to in moves.items() if to not in holders[number]]
        per_row = self._parts.n_bytes / max(1, self._parts.n_rows)
        at_once = MOVES_AT_ONCE * len(threads)
        for start in range(0, len(wanted), at_once):
            some = wanted[start : start + at_once]
            moved = self._tasks.submit(
                [
                    Call("move-block", identity, (self._kept.blocks[number],), (worker,))
                    for number, worker in some
                ]
            )
            self._tasks.wait(moved)
            for (number, _), future in zip(some, moved, strict=True):
                self._tasks.hand_over([future])
                release(self._client, [self._kept.blocks[number]])  # the other worker forgets it
                self._kept.blocks[number] = future
                self._stats.counts["bytes_moved"] += int(per_row * self._lengths[number])
        self._groups = []

    def _sent_codes(self, part: Any) -> Any:
        """Codes that are here, as a task that holds them; a task as it is."""
        if not isinstance(part, CodedMatrix):
            return part
        self._held.append(self._tasks.send("codes-of-block", part))
        return self._held[-1]

    def _rows_of_block(self) -> int:
        """Rows that a block may have, where partitions are not larger."""
        threads = sum(self._tasks.workers().values())
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows))
        even = -(-self._parts.n_rows // (BLOCKS_PER_THREAD * threads))
        limits = memory_limits(self._client)
        most = min([BLOCK_BYTES, *(int(BLOCK_SHARE * limit) for limit in limits)])
        return max(1, min(most // per_row, even))

    def _sent_rows(self, values: Any, rows: slice) -> list[Any]:
        """What belongs to some rows, as tasks that hold a few megabytes each."""
        if values is None:
            return []
        is_target = isinstance(values, Target)
        step = max(1, PART_BYTES // (24 if is_target else values.itemsize))
        sent = []
        for start in range(rows.start, max(rows.stop, rows.start + 1), step):
            some = slice(start, min(start + step, rows.stop))
            of_rows = values.take(some) if is_target else values[some].copy()
            sent.append(self._tasks.send("rows-of-block", of_rows))
        self._held += sent
        return sent

    def end(self) -> None:
        """Leave nothing on the cluster."""
        self._held, self._rows, self._sent, self._values = [], [], [], None
        self._tasks.end()
        self._forget()

    def _rename(self, common: Common) -> None:
        """Take another name, under which no positions are known."""
        self._forget()
        self._known = GrowthOfBlocks(uuid4().hex, common)

    def _forget(self) -> None:
        """Let workers drop the positions of the growth."""
        if not self._is_known:
            return
        self._is_known = False
        cache().forget(self._known.name)  # in case that workers are here
        if self._client.status != "running":
            return
        with suppress(Exception):  # they go sooner or later anyway
            forget = partial(self._client.run, _forget, self._known.name, on_error="ignore")
            call_with_timeout(self._client, forget, RELEASE_SECONDS)

    def _futures(self, group: Sequence[int]) -> list[Future]:
        """Codes and the rest of each block, in turn."""
        return [half for n in group for half in (self._kept.blocks[n], self._rows[n])]

    def _by_worker(self) -> list[tuple[str, list[int]]]:
        """Blocks by the worker that has them, a group for each of its threads."""
        now = time.monotonic()
        if self._groups and now < self._grouped + WATCH_SECONDS:
            return self._groups
        threads = self._tasks.workers()
        of_worker: dict[str, list[int]] = defaultdict(list)
        holders = self._tasks.holders(self._kept.blocks)
        for number, worker in enumerate(share_out(self._lengths, holders, threads)):
            of_worker[worker].append(number)
        self._groups = [
            (worker, group.tolist())
            for worker, blocks in of_worker.items()
            for group in np.array_split(blocks, self._n_groups(len(blocks), threads[worker]))
            if len(group) > 0
        ]
        self._grouped = now
        return self._groups

    def _n_groups(self, n_blocks: int, n_threads: int) -> int:
        """Tasks of a round on a worker: one for each thread, more where blocks are on its disk.

        A task has all of its blocks in memory.
        """
        n_bytes = self._parts.n_bytes * n_blocks // max(1, len(self._kept.blocks))
        limits = memory_limits(self._client)
        most = min((int(GROUP_SHARE * limit) for limit in limits), default=n_bytes)
        return min(n_blocks, max(n_threads, -(-n_bytes // max(1, most))))


def _forget(name: str) -> None:
    cache().forget(name)
