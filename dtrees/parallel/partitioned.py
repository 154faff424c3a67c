"""Trees grown from a table that no worker holds: the partitioned regime.

The codes stay where they are made, in *blocks* of partitions; the client runs the rounds of
`dtrees.core.rounds` and never sees a row::

    blocks    partitions of codes and targets, results of the user's graph     on the workers
    round     one task per thread of a worker: a step, counts of its blocks ──▶ summed up here
    the end   rows of small nodes: block ──▶ one worker, which finishes them ──▶ subtrees

    client    ──steps, requests──▶  count-blocks   count-blocks      one message each way a round
              ◀──────counts──────   (worker A)     (worker B)

What can go wrong, and what it costs:

    a worker dies                       its blocks are computed again from the user's graph, their
                                        places from the steps so far; the round goes on
    a task is blamed for the death of   it is submitted under a new key, `ATTEMPTS` times
    several workers (`KilledWorker`)
    the cluster is restarted            all blocks are made again, `RESTARTS` times; the trees so
                                        far, which are here, are kept
    a worker hangs: it neither works    after `PATIENCE` it is taken out of the cluster, so that
    nor dies                            others get what it had; where all of them hang, the client
                                        waits `SILENCES` times as long, then `WorkerLostError`
    no worker is left                   the client waits for one, then raises `WorkerLostError`
    the scheduler is lost               `SchedulerLostError`
    Ctrl-C, or an error in a task       the client cancels what is left

The model so far is the checkpoint: it is never on a worker only (DESIGN 3.8).
"""

from __future__ import annotations

import logging
import math
import queue
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

import dask
import distributed
import numpy as np
from dask.utils import parse_bytes, parse_timedelta

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.assembly import Piece
from dtrees.core.blocks import Common, Counts, Request, Root, Step, Unfinished, add_up
from dtrees.core.model import Tree
from dtrees.core.rounds import grow_in_rounds, merge_bags
from dtrees.exceptions import NoAnswerError, SchedulerLostError, WorkerLostError
from dtrees.parallel.carriers import LostResultsError
from dtrees.parallel.client import (
    GOODBYE,
    SLICE,
    await_workers,
    cancel,
    check_open,
    check_versions,
    patiently,
)
from dtrees.parallel.encoding import PART_BYTES, CodedPartitions
from dtrees.parallel.in_blocks import PartitionedGrowth
from dtrees.parallel.ledger import Ledger
from dtrees.parallel.places import (
    GrowthOfBlocks,
    PackedPieces,
    Work,
    add_counts,
    bring_rows,
    cache,
    count_blocks,
    cut_counts,
    finish_nodes,
    itself,
    joined,
    make_block,
    missing_columns,
    room_of_places,
    sum_bags,
)
from dtrees.parallel.replicated import OfTask

if TYPE_CHECKING:
    from distributed import Client, Future

ATTEMPTS = 4  # of a task whose workers die
RESTARTS = 4  # of all blocks, without a result between them
WATCH = 2.0  # seconds without a result until the workers are counted
PATIENCE = "30s"  # unless dask.config says otherwise, under "dtrees.worker-patience"
SILENCES = 4  # of all workers, as long as `PATIENCE` each, until they are given up
BLOCK_BYTES = 32 * 2**20  # of codes, at most, where partitions are not larger
BLOCKS_PER_THREAD = 2  # at least, where there are so many partitions
BATCH_BYTES = 16 * 2**20  # of rows that are brought together by a task
BATCHES_PER_THREAD = 3  # under way
BLOCK_SHARE = 1 / 24  # of the memory of a worker, for the codes of a block, at most
GROUP_SHARE = 1 / 12  # and for the codes of the blocks of a task
CLIENT_BYTES = "8 MiB"  # of histograms that the client adds up itself
ROW_BYTES = 4  # of a row in an open node: its number,
TIMES_BYTES = 2  # how often it is in the bag, where there are bags,
KIND_BYTES = 2  # and its kind, where there are several training sets

logger = logging.getLogger(__name__)


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


@dataclass(eq=False)
class Call:
    """A task that is to be done, as often as it takes.

    Attributes
    ----------
    name : str
        Of its kind.
    function : callable
    arguments : tuple
    workers : tuple of str
        That have what it needs.
    deaths : int
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    workers: tuple[str, ...] = ()
    deaths: int = 0


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
        self._growth = growth
        self._parts: CodedPartitions = growth.parts
        self._ledger = ledger
        self._name = uuid4().hex
        self._n_calls = 0
        self._blocks: list[Future] = []
        self._steps: list[Step] = []
        self._sent: list[Future] = []  # the steps, as the workers have them
        self._values: Future | None = None
        self._known = GrowthOfBlocks(self._name, growth.common())
        self._is_known = False  # to workers, under its name
        self._groups: list[tuple[str, list[int]]] = []
        self._grouped = 0.0
        self._held: list[Future] = []
        self._made: WeakSet[Future] = WeakSet()  # whoever holds them, a traceback for instance
        self._workers: set[str] = set()
        self._restarts = 0
        self._silences = 0
        self._slowness = 1  # of results on their way
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    # ---------------------------------------------------------------------------------------------
    # blocks

    def make(self) -> None:
        """Make the blocks from the partitions, and wait for them."""
        self._look_at(await_workers(self._client))
        with suppress(NoAnswerError):  # workers that are too busy to answer
            check_versions(self._client)
        try:
            self._make()
        except LostResultsError as error:
            self._restart(error)

    def _make(self) -> None:
        self._blocks = []
        name = uuid4().hex
        delayed = dask.delayed(make_block, pure=False)
        tasks, facts = [], []
        first_row = 0
        for number, (coded, n_rows) in enumerate(self._parts.groups(self._rows_of_block())):
            rows = slice(first_row, first_row + n_rows)
            block = delayed(
                [self._sent_codes(each) for each in coded],
                self._pieces(self._growth.growth.target, rows),
                first_row,
                self._pieces(self._keys(), rows),
                self._pieces(self._growth.resampling.cells, rows),
                dask_key_name=(f"block-{name}", number),
            )
            tasks.append(block)
            missing = dask.delayed(missing_columns, pure=False)
            facts.append(missing(block, dask_key_name=(f"missing-{name}", number)))
            first_row += n_rows
        futures = self._keep(*self._client.compute([*tasks, *facts]))
        self._blocks, facts = futures[: len(tasks)], futures[len(tasks) :]
        found = self._gathered(facts)
        self._parts.learn_missing(np.logical_or.reduce(found))
        cancel(self._client, facts)
        self._ledger.counts["passes"] += 1
        self._groups = []

    def _sent_codes(self, part: Any) -> Any:
        """Codes that are here, as a task that holds them; a task as it is."""
        if not isinstance(part, CodedMatrix):
            return part
        self._held.append(self._send(f"codes-of-block-{uuid4().hex}", part))
        return self._held[-1]

    def _rows_of_block(self) -> int:
        """Rows that a block may have, where partitions are not larger."""
        threads = sum(await_workers(self._client).values())
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows))
        even = -(-self._parts.n_rows // (BLOCKS_PER_THREAD * threads))
        most = min([BLOCK_BYTES, *(int(BLOCK_SHARE * limit) for limit in self._limits())])
        return max(1, min(most // per_row, even))

    def _limits(self) -> list[int]:
        """Bytes of the workers that have a limit."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return [worker["memory_limit"] for worker in workers if worker.get("memory_limit")]

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
            pieces.append(self._send(f"rows-of-block-{uuid4().hex}", piece))
        self._held += pieces
        return pieces

    def waves(self, numbers: Sequence[int]) -> list[Sequence[int]]:
        """Trees that grow together: as many as there is memory for the rows of their nodes."""
        room = sum(
            room_of_places(worker.get("memory_limit"), worker["nthreads"])
            for worker in self._client.scheduler_info(n_workers=-1)["workers"].values()
        )
        draws = self._growth.common().draws
        share = 1.0 if draws is None else -math.expm1(-draws.rate)
        has_sets = not self._growth.resampling.is_plain
        row = ROW_BYTES + TIMES_BYTES * (draws is not None) + KIND_BYTES * has_sets
        of_tree = max(1.0, row * share * self._parts.n_rows)
        most = max(1, min(len(numbers), int(room / of_tree)))
        n_waves = -(-len(numbers) // most)
        ends = [len(numbers) * wave // n_waves for wave in range(n_waves + 1)]
        return [numbers[ends[i] : ends[i + 1]] for i in range(n_waves)]

    # ---------------------------------------------------------------------------------------------
    # the protocol

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        self._rename(common)
        self._steps, self._sent = [], []

    def hear(self, what: str, depth: int) -> None:
        """Take note of a round."""
        self._ledger.counts[what + "s"] += 1
        logger.info("%s %d of growth %s", what, depth, self._name)

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
        most = parse_bytes(dask.config.get("dtrees.client-histograms", CLIENT_BYTES))
        merge: Callable[[Sequence[Counts]], Counts] = add_up

        def calls() -> list[Call]:
            nonlocal merge
            self._send_steps()
            before = self._sent[: len(self._steps)]
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

        with self._ledger.phase("rounds"):
            found: list[tuple[Counts, Work]] = self._all(calls)
            total = merge([counts for counts, _ in found])
        self._steps.append(step)
        for counts, work in found:
            self._ledger.counts["cache_hits"] += work.hits
            self._ledger.counts["rebuilds"] += work.rebuilds
            self._ledger.counts["bytes_moved"] += counts.nbytes
        self._ledger.counts["passes"] += 1
        return total

    def _added_on_workers(self, calls: Sequence[Call], n_numbers: int) -> list[Call]:
        """Tasks that add up the counts of all others, a stretch of the histograms each.

        What comes to the client is one histogram of a node, however many workers there are.
        """
        counted = [(self._submit(call), call.workers) for call in calls]
        n_parts = min(len(calls), n_numbers)
        ends = [n_numbers * part // n_parts for part in range(n_parts + 1)]
        added = []
        for first, last in pairwise(ends):
            stretches = [
                self._submit(Call("cut-counts", cut_counts, (future, first, last), workers))
                for future, workers in counted
            ]
            added.append(Call("add-counts", add_counts, (stretches,)))
        self._ledger.counts["bytes_moved"] += 8 * n_numbers * (len(calls) - 1)
        return added

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
        cancel(self._client, self._made)
        self._forget()
        if self._client.status == "running":
            with suppress(Exception):
                self._look_at(patiently(self._client, self._client.nthreads, GOODBYE))

    # ---------------------------------------------------------------------------------------------

    def _rename(self, common: Common) -> None:
        """Take another name, under which no places are known."""
        self._forget()
        self._name = uuid4().hex
        self._known = GrowthOfBlocks(self._name, common)

    def _forget(self) -> None:
        """Let workers drop the places of the growth."""
        if not self._is_known:
            return
        self._is_known = False
        cache().forget(self._name)  # in case that workers are here
        if self._client.status != "running":
            return
        with suppress(Exception):  # they go sooner or later anyway
            forget = partial(self._client.run, _forget, self._name, on_error="ignore")
            patiently(self._client, forget, GOODBYE)

    def _batches(self, nodes: Sequence[Unfinished]) -> list[list[int]]:
        """Nodes that one task finishes: as many as have so many bytes, the largest first."""
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows)) + 16
        n_threads = sum(await_workers(self._client).values())
        total = sum(node.n for node in nodes) * per_row
        most = min(BATCH_BYTES, max(1, total // (4 * n_threads)))
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
            self._values = self._send(f"code-values-{uuid4().hex}", self._growth.growth.values)
        groups = self._by_worker()
        n_threads = sum(await_workers(self._client).values())

        def calls() -> Iterator[Call]:
            for place in left:
                some = [nodes[i] for i in batches[place]]
                names = [node.node for node in some]
                brought = [
                    self._submit(
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

        for at, found in self._results(calls(), BATCHES_PER_THREAD * n_threads):
            yield left[at], found

    def _send_steps(self) -> None:
        """Give the steps that were taken to the workers, each once."""
        self._is_known = True
        for number in range(len(self._sent), len(self._steps)):
            key = f"step-{self._name}-{number}-{uuid4().hex}"
            self._sent.append(self._send(key, self._steps[number]))

    def _send(self, key: str, value: Any) -> Future:
        """A value as a task that holds it."""
        return self._guarded(partial(self._client.submit, itself, value, key=key, pure=False))

    def _guarded(self, submit: Callable[[], Future]) -> Future:
        """A future that is submitted."""
        try:
            (future,) = self._keep(submit())
        except CancelledError as error:  # what it needs
            raise LostResultsError("Results were lost with their workers.") from error
        except Exception:
            check_open(self._client)
            raise
        return future

    def _keep(self, *futures: Future) -> list[Future]:
        """Futures, all of which are cancelled in the end."""
        self._made.update(futures)
        return list(futures)

    def _futures(self, group: Sequence[int]) -> list[Future]:
        return [self._blocks[number] for number in group]

    def _by_worker(self) -> list[tuple[str, list[int]]]:
        """Blocks by the worker that has them, a group for each of its threads."""
        now = time.monotonic()
        if self._groups and now < self._grouped + WATCH:
            return self._groups
        threads = await_workers(self._client)
        try:
            who_has = patiently(self._client, partial(self._client.who_has, self._blocks))
        except CancelledError as error:
            raise LostResultsError("Results were lost with their workers.") from error
        self._look_at(threads)
        of_worker: dict[str, list[int]] = defaultdict(list)
        for number, future in enumerate(self._blocks):
            holders = [worker for worker in who_has.get(future.key, ()) if worker in threads]
            worker = min(holders or threads, key=lambda name: (len(of_worker.get(name, ())), name))
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
        most = min((int(GROUP_SHARE * limit) for limit in self._limits()), default=n_bytes)
        return min(n_blocks, max(n_threads, -(-n_bytes // max(1, most))))

    def _look_at(self, workers: Iterable[str]) -> None:
        """Count the workers that have gone since the last time."""
        now = set(workers)
        self._ledger.counts["lost_workers"] += len(self._workers - now)
        self._workers = now

    # ---------------------------------------------------------------------------------------------
    # tasks

    def _all(self, calls: Callable[[], list[Call]]) -> list[Any]:
        """Results of some tasks, in their order; where they are lost, all of it again."""
        while True:
            try:
                made = calls()
                found = dict(self._results(made, len(made)))
                self._restarts = 0
                return [found[i] for i in range(len(made))]
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
        cancel(self._client, self._made)
        self._rename(self._known.common)  # where workers have gone, blocks are cut elsewhere
        self._sent, self._values, self._groups = [], None, []
        self._held = []
        try:
            self._make()
        except LostResultsError as again:
            self._restart(again)

    def _submit(self, call: Call) -> Future:
        self._n_calls += 1
        key = (f"{call.name}-{self._name}", self._n_calls)
        submit = partial(
            self._client.submit,
            call.function,
            *call.arguments,
            key=key,
            pure=False,
            workers=list(call.workers) or None,
            allow_other_workers=bool(call.workers),
        )
        return self._guarded(submit)

    def _gathered(self, futures: Sequence[Future]) -> list[Any]:
        """Results of futures that are under way, in their order."""
        pending = dict(zip(futures, range(len(futures)), strict=True))
        found: dict[int, Any] = {}
        for future in futures:
            future.add_done_callback(self._ended.put)
        while pending:
            for future in self._await(pending):
                place = pending.pop(future)
                if future.status == "error":
                    reason = patiently(self._client, future.exception)
                    if isinstance(reason, distributed.KilledWorker):
                        raise LostResultsError(
                            "Workers have died while they coded a part of the table. They may "
                            "have too little memory: see their logs, or make the chunks of X "
                            "smaller."
                        ) from reason
                    raise reason
                fetched = self._fetch([future])
                if fetched is None:
                    pending[future] = place
                    future.add_done_callback(self._ended.put)
                else:
                    (found[place],) = fetched
        return [found[i] for i in range(len(futures))]

    def _results(self, calls: Iterable[Call], at_once: int) -> Iterator[tuple[int, Any]]:
        """Results of tasks, as they come; so many are under way at a time."""
        waiting = enumerate(calls)
        pending: dict[Future, tuple[int, Call]] = {}

        def submit(place: int, call: Call) -> None:
            future = self._submit(call)
            pending[future] = place, call
            future.add_done_callback(self._ended.put)

        try:
            more = True
            while more or pending:
                while more and len(pending) < at_once:
                    taken = next(waiting, None)
                    more = taken is not None
                    if taken is not None:
                        submit(*taken)
                if not pending:
                    return
                ended = self._await(pending)
                good = [future for future in ended if future.status == "finished"]
                for future in ended:
                    place, call = pending[future]
                    if future.status == "error":
                        del pending[future]
                        submit(place, self._again(call, future))
                results = self._fetch(good)
                if results is None:
                    for future in good:
                        future.add_done_callback(self._ended.put)
                    continue
                for future, result in zip(good, results, strict=True):
                    place, _ = pending.pop(future)
                    yield place, result
        finally:
            cancel(self._client, pending)

    def _again(self, call: Call, future: Future) -> Call:
        """A task whose workers have died, to be submitted again; raises what it raised."""
        reason = patiently(self._client, future.exception)
        if not isinstance(reason, distributed.KilledWorker):
            raise reason
        if reason.task != future.key:  # it is of no use without what it needs
            raise LostResultsError(f"Workers have died in a task {reason.task}.") from reason
        if call.deaths + 1 == ATTEMPTS:
            raise WorkerLostError(
                f"Workers have died {ATTEMPTS} times over in a task '{call.name}'. They may have "
                "too little memory: see their logs."
            ) from reason
        logger.info("a task %r is submitted again: %s", call.name, reason)
        self._ledger.counts["retries"] += 1
        return Call(call.name, call.function, call.arguments, (), call.deaths + 1)

    def _await(self, pending: dict[Future, Any]) -> list[Future]:
        """Some futures that have ended, of those that are waited for."""
        began = looked = time.monotonic()
        patience = _patience()
        while True:
            try:
                ended = [self._ended.get(timeout=SLICE)]
            except queue.Empty:
                check_open(self._client)
                now = time.monotonic()
                if now > looked + WATCH:
                    await_workers(self._client)
                    looked = time.monotonic()
                if now > began + patience:
                    self._remove_hanging()
                    began = time.monotonic()
                continue
            with suppress(queue.Empty):
                while True:
                    ended.append(self._ended.get_nowait())
            mine = [future for future in dict.fromkeys(ended) if future in pending]
            for future in mine:
                if future.status in ("cancelled", "lost"):
                    raise LostResultsError("Results were lost with their workers.")
                if future.status == "pending":  # it was lost, and is computed again
                    future.add_done_callback(self._ended.put)
            mine = [future for future in mine if future.status in ("finished", "error")]
            if mine:
                return mine

    def _fetch(self, futures: list[Future]) -> list[Any] | None:
        """Results of tasks that are done; None: a worker has not given them in time."""
        if not futures:
            return []
        try:
            gather = partial(self._client.gather, futures)
            found: list[Any] = patiently(self._client, gather, self._slowness * _patience())
            self._slowness = 1
        except NoAnswerError:
            self._slowness *= 2
            self._remove_hanging()
            return None
        except SchedulerLostError:
            raise
        except Exception as error:
            raise LostResultsError("Results were lost on their way to the client.") from error
        return found

    def _remove_hanging(self) -> None:
        """Take workers out of the cluster that have been silent for long, though they have work.

        What the scheduler would do after "distributed.scheduler.worker-ttl", five minutes as a
        rule.
        """
        try:
            answering = set(check_versions(self._client))
        except NoAnswerError as error:
            self._silences += 1
            if self._silences == SILENCES:
                raise WorkerLostError(
                    f"No worker of the Dask cluster has answered for {SILENCES} times "
                    f"{_patience():g} seconds. See their logs."
                ) from error
            return
        self._silences = 0
        hanging = set(await_workers(self._client)) - answering
        if not hanging:
            return
        logger.warning("workers do not answer, and are taken out of the cluster: %s", hanging)
        self._groups = []
        with suppress(Exception):
            remove = partial(self._client.run_on_scheduler, _remove_workers, sorted(hanging))
            patiently(self._client, remove, GOODBYE)


def _patience() -> float:
    """Seconds without a result until workers are asked whether they are there."""
    seconds: float = parse_timedelta(dask.config.get("dtrees.worker-patience", PATIENCE))
    return seconds


async def _remove_workers(addresses: Sequence[str], dask_scheduler: Any) -> None:
    for address in addresses:
        await dask_scheduler.remove_worker(address, stimulus_id=f"dtrees-hanging-{uuid4().hex}")


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
