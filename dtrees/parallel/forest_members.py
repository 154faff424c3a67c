"""Rounds of forests between workers: the nodes that are spread, without the client.

Each worker with blocks is a member of an epoch (`dtrees.parallel.epochs`). The trees of a batch are
dealt out: a member decides on the splits of its own, and counts its rows for all of them. So in a
round every member tells all others what its trees ask for, and gets what all rows add up to in the
nodes of its trees; histograms are added up and searched once, however many members there are::

    member 0   ask ═╪═ update, count own blocks, nodes of all trees ═╪═ search trees 0, 2, 4 ...
    member 1   ask ═╪═ update, count own blocks, nodes of all trees ═╪═ search trees 1, 3, 5 ...
                 gather                                          sum_parts

Codes stay results of tasks, which Dask may have on disk; a member takes them up block by block, and
remembers positions as tasks do, which finish the trees (`dtrees.parallel.partitioned`). After about
a second the client hears of the trees so far, which is what the next epoch begins with.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dtrees.core.grow.round_spec import RoundSpec
from dtrees.core.grow.tree_batch import Asked, TreeBatch
from dtrees.core.stores.blocks.block import Block
from dtrees.core.stores.blocks.messages import Counts, SplitUpdate, add_up, joined
from dtrees.parallel.block_tasks import GrowthOfBlocks, Work, blocks_of, positions_of
from dtrees.parallel.exchange import Epoch, EpochEndedError, Exchange
from dtrees.parallel.tasks import TaskRunner
from dtrees.parallel.threads import LocalRunner


@dataclass(frozen=True)
class PlaceOfBlock:
    """A block among the results that a worker has."""

    number: int
    codes: Any  # key
    rows: Any  # key

    def block(self, worker: Any) -> Block:
        """The block; raises EpochEndedError where it has gone elsewhere."""
        try:
            (block,) = blocks_of([worker.data[self.codes], worker.data[self.rows]])
        except KeyError as error:
            raise EpochEndedError(f"A block has left {worker.address}.") from error
        return block


class Slice(NamedTuple):
    """What a member has done in a slice."""

    packed: dict[int, bytes]  # its batches by number (`TreeBatch.packed`)
    pack_seconds: float
    is_last: bool  # whether all nodes have grown
    updates: list[SplitUpdate]  # of the first member
    heard: Counter[str]  # of the first member, as `grow_in_rounds` tells it
    work: Counter[str]


@dataclass(eq=False)
class MemberOfRounds:
    """The trees of a member, and what it knows of all others."""

    own: dict[int, TreeBatch]
    member_of: list[int]  # of each batch
    growth: GrowthOfBlocks
    updates: list[SplitUpdate]  # so far
    places: Sequence[PlaceOfBlock]
    worker: Any
    run: LocalRunner

    @classmethod
    def begin(
        cls,
        members: Exchange,
        places: Sequence[PlaceOfBlock],
        growth: GrowthOfBlocks,
        spec: RoundSpec,
        packed: Sequence[bytes],
        updates: Sequence[SplitUpdate],
    ) -> MemberOfRounds:
        """From the batches of all members and the updates so far."""
        from distributed import get_worker

        worker = get_worker()
        run = LocalRunner(max(1, worker.state.nthreads))
        spec = replace(spec, run=run)
        member_of = [k % members.n_members for k in range(len(packed))]
        own = {
            k: TreeBatch.unpacked(spec, packed[k])
            for k, member in enumerate(member_of)
            if member == members.rank
        }
        return cls(own, member_of, growth, list(updates), places, worker, run)

    def grow(self, members: Exchange, seconds: float, cancelled: Any) -> Slice:
        """Grow for so many seconds, by the clock of the first member."""
        began, n_before = time.monotonic(), len(self.updates)
        heard, work, is_late = Counter[str](), Work(cache_hits=0, rebuilds=0), False
        while True:
            if cancelled():
                raise CancelledError
            asked = {k: batch.ask(is_late) for k, batch in self.own.items()}
            told = members.gather((asked, time.monotonic() > began + seconds))
            of_all = {k: own for each, _ in told for k, own in sorted(each.items()) if own}
            if not of_all:
                break
            is_late |= told[0][1]
            heard.update({what for each in of_all.values() for what, _ in each.heard[:1]})
            heard["pass"] += 1
            heard["code request"] += sum(len(each.heard) - 1 for each in of_all.values())
            parts: list[dict[int, Counts]] = [{} for _ in told]
            for k, counts in self._count(of_all, work).items():
                parts[self.member_of[k]][k] = counts
            for k, counts in members.sum_parts(parts, add_batches).items():
                self.own[k].hear(counts)
        packing = time.monotonic()
        packed = {k: batch.packed() for k, batch in self.own.items()}
        pack_seconds = time.monotonic() - packing
        is_last = not any(batch.frontier for batch in self.own.values())
        work.update({name: n for name, n in members.work.items() if name != "rounds"})
        return Slice(packed, pack_seconds, is_last, self.updates[n_before:], heard, work)

    def _count(self, asked: Mapping[int, Asked], work: Counter[str]) -> dict[int, Counts]:
        """What the rows of the member add up to, by batch."""
        updates = [each.update for each in asked.values() if each.update is not None]
        if updates:
            self.updates.append(joined(updates))
        requests = [each.requests for each in asked.values()]
        together = [request for some in requests for request in some]

        def of_block(place: PlaceOfBlock) -> Counts:
            block = place.block(self.worker)
            own = Work()
            rows, positions = positions_of(block, place.number, self.growth, self.updates, own)
            works.append(own)
            return rows.count(positions, together)

        works: list[Work] = []
        groups = np.array_split(np.arange(len(self.places)), self.run.n_threads)
        some = [[self.places[i] for i in group] for group in groups if len(group) > 0]
        counts = add_up(self.run([partial(add_up, map(of_block, group)) for group in some]))
        for own in works:
            work.update(own)
        return dict(zip(asked, counts.split(requests), strict=True))


def add_batches(one: dict[int, Counts], other: dict[int, Counts]) -> dict[int, Counts]:
    """The counts of two members for some batches."""
    return {k: add_up([counts, other[k]]) for k, counts in one.items()}


def grow_rounds(
    epoch: Epoch,
    rank: int,
    seconds: float,
    places: Sequence[PlaceOfBlock] = (),
    sent: Any = None,
) -> Slice:
    """What the task of a member does: grow for some seconds with the others.

    `places` and `sent` are there in the first task of an epoch.
    """
    run = TaskRunner()
    with epoch.joined(rank, run.cancelled.is_set) as members:
        if sent is not None:
            members.state["rounds"] = MemberOfRounds.begin(members, places, *sent.value)
        state: MemberOfRounds = members.state["rounds"]
        return state.grow(members, seconds, run.cancelled.is_set)
