"""Trees grown from a table that no worker holds: the partitioned regime.

The codes stay where they are made, in *blocks* of partitions; the client runs the rounds of
`dtrees.core.rounds` and never sees a row::

    blocks    partitions of codes and targets, results of the user's graph     on the workers
    round     one task per thread of a worker: a step, counts of its blocks ──▶ summed up here
    the end   rows of small nodes: block ──▶ one worker, which finishes them ──▶ subtrees

    client    ──steps, requests──▶  count-blocks   count-blocks      one message each way a round
              ◀──────counts──────   (worker A)     (worker B)

What can go wrong, beside what `dtrees.parallel.tasks` says of any task, and what it costs:

    a worker dies                       its blocks are computed again from the user's graph, their
                                        places from the steps so far; the round goes on
    the cluster is restarted            all blocks are made again, `RESTARTS` times; the trees so
                                        far, which are here, are kept
    Ctrl-C, or an error in a task       the client cancels what is left

The model so far is the checkpoint: it is never on a worker only (DESIGN 3.8).
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, nullcontext, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask
import distributed
import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.assembly import Piece
from dtrees.core.blocks import Common, Counts, Request, Root, Step, Unfinished, add_up
from dtrees.core.model import Tree
from dtrees.core.rounds import grow_in_rounds, merge_bags
from dtrees.exceptions import WorkerLostError
from dtrees.parallel.client import GOODBYE, check_open, patiently, release
from dtrees.parallel.encoding import PART_BYTES, CodedPartitions
from dtrees.parallel.in_blocks import PartitionedGrowth
from dtrees.parallel.interrupts import held_back_inside
from dtrees.parallel.ledger import Ledger
from dtrees.parallel.limits import (
    ADDED_AT_ONCE,
    BESIDE_CODES,
    BLOCK_SHARE,
    bytes_of_batch,
    client_bytes,
    n_stretches,
)
from dtrees.parallel.placement import even_moves, share_out
from dtrees.parallel.places import (
    GrowthOfBlocks,
    PackedPieces,
    Work,
    add_counts,
    bring_rows,
    cache,
    count_blocks,
    cut_counts,
    facts_of_block,
    finish_nodes,
    joined,
    make_block,
    room_of_places,
    sum_bags,
)
from dtrees.parallel.replicated import OfTask
from dtrees.parallel.tasks import WATCH, Call, LostResultsError, Tasks, itself

if TYPE_CHECKING:
    from distributed import Client, Future

RESTARTS = 4  # of all blocks, without a result between them
BLOCK_BYTES = 32 * 2**20  # of codes, at most, where partitions are not larger
BLOCKS_PER_THREAD = 2  # at least, where there are so many partitions
MOVES_AT_ONCE = 4  # of blocks, for each worker
UNDER_WAY = 3  # batches, for each thread
GROUP_SHARE = 1 / 12  # and for the codes of the blocks of a task

logger = logging.getLogger(__name__)


@held_back_inside
def grow_partitioned(
    whole: PartitionedGrowth, numbers: Sequence[int], client: Client, ledger: Ledger
) -> Generator[tuple[int, list[Tree]]]:
    """Grow trees from partitions on the workers of a cluster.

    Closing the iterator ends the growth and leaves nothing on the cluster. Close it
    (`contextlib.closing`).

    Parameters
    ----------
    whole : PartitionedGrowth
    numbers : sequence of int
        Of the trees.
    client : distributed.Client
        Synchronous.
    ledger : Ledger
        What is done is written there.

    Yields
    ------
    number : int
    trees : list of Tree
        By training set, as soon as they are complete, in any order.

    Raises
    ------
    WorkerLostError, SchedulerLostError, ClusterError
    """
    span = getattr(distributed, "span", nullcontext)
    with span("dtrees.fit"):
        blocks = BlocksOnWorkers(client, whole, ledger)
        try:
            with ledger.phase("blocks"):
                blocks.make()
            seed = whole.seed()
            for wave in blocks.waves(numbers):
                with closing(grow_in_rounds(seed, wave, blocks, blocks.hear)) as grown:
                    for number, trees in grown:
                        yield number, [whole.growth.pruned(tree) for tree in trees]
        finally:
            blocks.end()


class BlocksOnWorkers:
    """Blocks of rows on the workers of a cluster, as `dtrees.core.rounds.Blocks`.

    Parameters
    ----------
    client : distributed.Client
    growth : PartitionedGrowth
    ledger : Ledger
    """

    def __init__(self, client: Client, growth: PartitionedGrowth, ledger: Ledger) -> None:
        self._client = client
        self._tasks = Tasks(client, ledger)
        self._growth = growth
        self._parts: CodedPartitions = growth.parts
        self._ledger = ledger
        self._blocks: list[Future] = []
        self._lengths: list[int] = []  # their rows
        self._steps: list[Step] = []
        self._sent: list[Future] = []  # the steps, as the workers have them
        self._values: Future | None = None
        self._known = GrowthOfBlocks(uuid4().hex, growth.common())
        self._is_known = False  # to workers, under its name
        self._groups: list[tuple[str, list[int]]] = []
        self._grouped = 0.0
        self._held: list[Future] = []
        self._restarts = 0

    # ---------------------------------------------------------------------------------------------
    # blocks

    def make(self) -> None:
        """Make the blocks from the partitions, and wait for them."""
        self._tasks.begin()
        try:
            self._make()
        except LostResultsError as error:
            self._restart(error)

    def _make(self) -> None:
        self._blocks = []
        make = dask.delayed(make_block, pure=False)
        learn = dask.delayed(facts_of_block, pure=False)
        tasks, facts = [], []
        first_row = 0
        self._lengths = []
        for coded, n_rows in self._parts.groups(self._rows_of_block()):
            self._lengths.append(n_rows)
            rows = slice(first_row, first_row + n_rows)
            block = make(
                [self._sent_codes(each) for each in coded],
                self._pieces(self._growth.growth.target, rows),
                first_row,
                self._pieces(self._keys(), rows),
                self._pieces(self._growth.resampling.cells, rows),
                dask_key_name=self._tasks.key("block"),
            )
            tasks.append(block)
            facts.append(learn(block, dask_key_name=self._tasks.key("facts")))
            first_row += n_rows
        futures = self._tasks.compute([*tasks, *facts])
        self._blocks, facts = futures[: len(tasks)], futures[len(tasks) :]
        self._tasks.wait(facts)
        self._parts.learn(self._tasks.gather(facts))
        release(self._client, facts)
        self._ledger.counts["passes"] += 1
        self._spread()

    def _spread(self) -> None:
        """Move blocks until every thread has about as many rows, some at a time."""
        threads = self._tasks.workers()
        holders = self._tasks.holders(self._blocks)
        moves = even_moves(self._lengths, share_out(self._lengths, holders, threads), threads)
        wanted = [(number, to) for number, to in moves.items() if to not in holders[number]]
        per_row = self._parts.n_bytes / max(1, self._parts.n_rows)
        at_once = MOVES_AT_ONCE * len(threads)
        for start in range(0, len(wanted), at_once):
            moved = {
                number: self._tasks.submit(
                    Call("move-block", itself, (self._blocks[number],), (worker,))
                )
                for number, worker in wanted[start : start + at_once]
            }
            self._tasks.wait(list(moved.values()))
            for number, future in moved.items():
                self._blocks[number] = future  # the other worker may forget it
                self._ledger.counts["bytes_moved"] += int(per_row * self._lengths[number])
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
        most = min([BLOCK_BYTES, *(int(BLOCK_SHARE * limit) for limit in self._tasks.limits())])
        return max(1, min(most // per_row, even))

    def _keys(self) -> np.ndarray | None:
        bags = self._growth.growth.bags
        return None if bags is None or bags.by_row else bags.row_id

    def _pieces(self, values: Any, rows: slice) -> list[Any]:
        """What belongs to some rows, as tasks that hold a few megabytes each."""
        if values is None:
            return []
        is_target = isinstance(values, Target)
        step = max(1, PART_BYTES // (24 if is_target else values.itemsize))
        pieces = []
        for start in range(rows.start, max(rows.stop, rows.start + 1), step):
            some = slice(start, min(start + step, rows.stop))
            piece = values.take(some) if is_target else values[some].copy()
            pieces.append(self._tasks.send("rows-of-block", piece))
        self._held += pieces
        return pieces

    def waves(self, numbers: Sequence[int]) -> list[Sequence[int]]:
        """Trees that grow together."""
        n_threads = sum(self._tasks.workers().values())
        room = sum(room_of_places(*machine) for machine in self._tasks.machines())
        return self._growth.waves(numbers, room, n_threads)

    # ---------------------------------------------------------------------------------------------
    # the protocol

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        self._rename(common)
        self._steps, self._sent = [], []
        try:
            self._spread()  # also to workers that have joined
        except LostResultsError as error:
            self._restart(error)

    def hear(self, what: str, depth: int) -> None:
        """Take note of a round."""
        self._ledger.counts[what + "s"] += 1
        logger.info("%s %d of growth %s", what, depth, self._known.name)

    def bags(self, roots: Sequence[Root]) -> list[tuple[Counts, list[int]]]:
        """What bags add up to."""

        def calls() -> list[Call]:
            return [
                Call("sum-bags", sum_bags, (self._futures(group), self._known, roots), (worker,))
                for worker, group in self._by_worker()
            ]

        with self._ledger.phase("bags"):
            found = [each for of_task in self._all(calls) for each in of_task]
        self._ledger.counts["passes"] += 1
        return merge_bags(found)

    def count(self, step: Step, requests: Sequence[Request]) -> Counts:
        """What some nodes add up to."""
        n_numbers = sum(request.n_numbers for request in requests)
        most = client_bytes()
        merge: Callable[[Sequence[Counts]], Counts] = add_up

        def calls() -> list[Call]:
            nonlocal merge
            self._send_steps(len(self._steps) - 1)
            before = self._sent[: len(self._steps) - 1]
            made = [
                Call(
                    "count-blocks",
                    count_blocks,
                    (self._futures(group), group, self._known, before, step, list(requests)),
                    (worker,),
                )
                for worker, group in self._by_worker()
            ]
            is_large = 8 * n_numbers * len(made) > most
            merge = joined if is_large else add_up
            return self._added_on_workers(made, n_numbers) if is_large else made

        self._steps.append(step)
        with self._ledger.phase("rounds"):
            found: list[tuple[Counts, Work]] = self._all(calls)
            total = merge([counts for counts, _ in found])
        for counts, work in found:
            self._ledger.counts["cache_hits"] += work.hits
            self._ledger.counts["rebuilds"] += work.rebuilds
            self._ledger.counts["bytes_moved"] += counts.nbytes
        self._ledger.counts["passes"] += 1
        return total

    def _added_on_workers(self, calls: Sequence[Call], n_numbers: int) -> list[Call]:
        """Tasks that add up the counts of all others: on each worker, then a few at a time.

        Large histograms are cut into stretches, each of which is added up by itself. What comes to
        the client is one histogram of a node, however many workers there are.
        """
        of_workers: dict[tuple[str, ...], list[Future]] = defaultdict(list)
        for call in calls:
            of_workers[call.workers].append(self._tasks.submit(call))
        counted = [
            (self._added(futures, workers), workers) for workers, futures in of_workers.items()
        ]
        n_parts = n_stretches(8 * n_numbers, len(counted))
        ends = [n_numbers * part // n_parts for part in range(n_parts + 1)]
        found = []
        for first, last in pairwise(ends):
            stretches = [
                future
                if n_parts == 1
                else self._tasks.submit(
                    Call("cut-counts", cut_counts, (future, first, last), workers)
                )
                for future, workers in counted
            ]
            while len(stretches) > ADDED_AT_ONCE:
                stretches = [
                    self._added(stretches[i : i + ADDED_AT_ONCE])
                    for i in range(0, len(stretches), ADDED_AT_ONCE)
                ]
            found.append(Call("add-counts", add_counts, (stretches,)))
        self._ledger.counts["bytes_moved"] += 8 * n_numbers * (len(counted) - 1)
        return found

    def _added(self, counted: list[Future], workers: tuple[str, ...] = ()) -> Future:
        """The sum of some counts."""
        if len(counted) == 1:
            return counted[0]
        return self._tasks.submit(Call("add-counts", add_counts, (counted,), workers))

    def finish(
        self, step: Step, nodes: Sequence[Unfinished]
    ) -> Iterator[tuple[int, tuple[Piece, ...]]]:
        """The subtrees of some nodes."""
        if not nodes:
            return
        self._steps.append(step)
        batches = self._batches(nodes)
        self._ledger.counts["passes"] += 1
        with self._ledger.phase("subtrees"):
            for batch, (packed, facts) in self._each(batches, nodes):
                pieces = iter(packed.pieces())
                self._ledger.counts.update(
                    {name: facts[name] for name in ("cache_hits", "rebuilds", "bytes_moved")}
                )
                self._ledger.counts["bytes_moved"] += packed.nbytes
                for place in batch:
                    yield place, tuple(next(pieces) for _ in nodes[place].sets)

    def end(self) -> None:
        """Leave nothing on the cluster."""
        self._held, self._blocks, self._sent, self._values = [], [], [], None
        self._tasks.end()
        self._forget()

    # ---------------------------------------------------------------------------------------------

    def _rename(self, common: Common) -> None:
        """Take another name, under which no places are known."""
        self._forget()
        self._known = GrowthOfBlocks(uuid4().hex, common)

    def _forget(self) -> None:
        """Let workers drop the places of the growth."""
        if not self._is_known:
            return
        self._is_known = False
        cache().forget(self._known.name)  # in case that workers are here
        if self._client.status != "running":
            return
        with suppress(Exception):  # they go sooner or later anyway
            forget = partial(self._client.run, _forget, self._known.name, on_error="ignore")
            patiently(self._client, forget, GOODBYE)

    def _batches(self, nodes: Sequence[Unfinished]) -> list[list[int]]:
        """Nodes that one task finishes: as many as have so many bytes, the largest first."""
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows)) + BESIDE_CODES
        machines = self._tasks.machines()
        most = bytes_of_batch(
            sum(node.n for node in nodes) * per_row,
            sum(self._tasks.workers().values()),
            [limit / n_threads for limit, n_threads in machines if limit is not None],
        )
        batches: list[list[int]] = []
        used = 0
        for place in sorted(range(len(nodes)), key=lambda i: (nodes[i].tree, -nodes[i].n)):
            size = nodes[place].n * per_row
            if not batches or used + size > most:
                batches.append([])
                used = 0
            batches[-1].append(place)
            used += size
        return batches

    def _each(
        self, batches: list[list[int]], nodes: Sequence[Unfinished]
    ) -> Iterator[tuple[list[int], tuple[PackedPieces, dict[str, Any]]]]:
        """Batches and their subtrees, as they come; a few of them are under way at a time."""
        left = list(range(len(batches)))
        while left:
            done: set[int] = set()
            try:
                for place, found in self._stream(left, batches, nodes):
                    done.add(place)
                    self._restarts = 0
                    yield batches[place], found
                return
            except LostResultsError as error:
                self._restart(error)
            finally:
                left = [place for place in left if place not in done]

    def _stream(
        self, left: Sequence[int], batches: list[list[int]], nodes: Sequence[Unfinished]
    ) -> Iterator[tuple[int, Any]]:
        self._send_steps()
        if self._values is None and self._growth.growth.values is not None:
            self._values = self._tasks.send("code-values", self._growth.growth.values)
        groups = self._by_worker()
        n_threads = sum(self._tasks.workers().values())

        def calls() -> Iterator[Call]:
            for place in left:
                some = [nodes[i] for i in batches[place]]
                names = [node.node for node in some]
                brought = [
                    self._tasks.submit(
                        Call(
                            "bring-rows",
                            bring_rows,
                            (self._futures(group), group, self._known, self._sent, names),
                            (worker,),
                        )
                    )
                    for worker, group in groups
                ]
                yield Call("finish-nodes", _finish_nodes, (brought, some, self._values))

        for at, found in self._tasks.results(calls(), UNDER_WAY * n_threads):
            yield left[at], found

    def _then_steps(self, calls: Sequence[Call]) -> Iterator[Call]:
        """Tasks, and then the step that they make: it is for later rounds, none waits for it."""
        yield from calls
        self._send_steps()

    def _send_steps(self, last: int | None = None) -> None:
        """Give the steps that were taken to the workers, each once; up to one of them, or all."""
        self._is_known = True
        for number in range(len(self._sent), len(self._steps) if last is None else last):
            self._sent.append(self._tasks.send("step", self._steps[number]))

    def _futures(self, group: Sequence[int]) -> list[Future]:
        return [self._blocks[number] for number in group]

    def _by_worker(self) -> list[tuple[str, list[int]]]:
        """Blocks by the worker that has them, a group for each of its threads."""
        now = time.monotonic()
        if self._groups and now < self._grouped + WATCH:
            return self._groups
        threads = self._tasks.workers()
        of_worker: dict[str, list[int]] = defaultdict(list)
        holders = self._tasks.holders(self._blocks)
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
        n_bytes = self._parts.n_bytes * n_blocks // max(1, len(self._blocks))
        most = min((int(GROUP_SHARE * limit) for limit in self._tasks.limits()), default=n_bytes)
        return min(n_blocks, max(n_threads, -(-n_bytes // max(1, most))))

    # ---------------------------------------------------------------------------------------------
    # what is lost

    def _all(self, calls: Callable[[], list[Call]]) -> list[Any]:
        """Results of some tasks, in their order; where they are lost, all of it again."""
        while True:
            try:
                found = dict(self._tasks.results(self._then_steps(calls())))
                self._restarts = 0
                return [found[i] for i in range(len(found))]
            except LostResultsError as error:
                self._restart(error)

    def _restart(self, error: Exception) -> None:
        """Make all blocks again."""
        check_open(self._client)
        self._restarts += 1
        if self._restarts > RESTARTS:
            raise WorkerLostError(
                f"The Dask cluster has lost the table {RESTARTS} times, without a result in "
                f"between. Its workers may have too little memory, or are restarted: see their "
                f"logs. {error}"
            ) from error
        logger.info("the blocks are made again: %s", error)
        self._ledger.counts["restarts"] += 1
        self._tasks.end()
        self._rename(self._known.common)  # where workers have gone, blocks are cut elsewhere
        self._sent, self._values, self._groups = [], None, []
        self._held = []
        try:
            self._make()
        except LostResultsError as again:
            self._restart(again)


def _forget(name: str) -> None:
    cache().forget(name)


def _finish_nodes(
    brought: Any, nodes: Sequence[Unfinished], values: Any
) -> tuple[PackedPieces, dict[str, Any]]:
    """What a task does; it ends when nobody waits for it any more."""
    try:
        return finish_nodes(brought, nodes, values, OfTask(distributed.get_worker()))
    except CancelledError:
        raise distributed.Reschedule from None
