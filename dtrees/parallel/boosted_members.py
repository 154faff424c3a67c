"""Boosted models grown from a table that no worker holds: the partitioned regime.

The rows stay in their blocks. Each worker that has some is a member of an epoch, and grows the
whole model from its own rows, iteration by iteration; members add up what depends on all rows
(`dtrees.core.grow.boosting`, `dtrees.parallel.exchange`). So all of them have the same trees, those
of one place, bit for bit. The client sends a few iterations at a time, about a second of work, and
hears of their trees::

    client    begin, 1 iteration ──▶ ... trees ◀── 12 iterations ──▶ ... trees ◀── 12 iterations ──▶
    member 0        derive  count ═╪═ search  partition  ...               ═ members exchange sums
    member 1        derive  count ═╪═ search  partition  ...

The trees so far are the checkpoint, and they are here. Where a worker dies, hangs, leaves or joins,
the epoch ends. The next one begins on the workers that are there: blocks that are lost are made
again from the user's graph, others are moved so that workers have about as many rows, and raw
predictions follow from the trees so far. Rows are moved by the very steps that the trees hold, so
it is the same model.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np
from dask.sizeof import sizeof

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import BoostedRows, Growing, boost
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.block_tasks import size_of_half
from dtrees.parallel.client import RELEASE_SECONDS, call_with_timeout, cluster_client
from dtrees.parallel.coded_partitions import CodedPartitions, KeptTable, kept_table
from dtrees.parallel.exchange import Epoch, EpochEndedError, end_epoch, open_epoch
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.placed_blocks import PlacedBlocks, share_out
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes, unpack
from dtrees.parallel.tasks import RESTARTS, Call, LostResultsError, TaskRunner, Tasks
from dtrees.parallel.threads import LocalRunner
from dtrees.typing import Members

if TYPE_CHECKING:
    from distributed import Client

SLICE_SECONDS = 1.0  # of iterations that members grow in one go, about
TURN_SECONDS = 1.0  # until it is looked at the client, while others have their turn
LEAST = 4  # of them, but for the first: to begin takes as long as half an iteration

logger = logging.getLogger(__name__)


class Scores(Protocol):
    """How rows of the table are scored where they are; picklable."""

    def here(self, rows: BoostedRows, held: np.ndarray | None, members: Members) -> ScoresHere:
        """Begin with the rows of a member; `held` are those held out of the growth, int64 (n,)."""


class ScoresHere(Protocol):
    """Scores of the rows of all members, after each iteration, which may end the fit."""

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration; whether it was the last one."""

    def told(self) -> Any:
        """The scores so far."""


@dataclass(frozen=True, eq=False)
class SpreadModel:
    """What a model is grown from: the rows are in `parts`.

    Attributes
    ----------
    parts : CodedPartitions
    rows : BoostedRows
        Those of the table, without codes.
    growing : Growing
    thresholds : Thresholds
    held : bool (n_rows,) or None
        Rows that are held out of the growth, to be scored.
    scores : Scores or None
    """

    parts: CodedPartitions
    rows: BoostedRows
    growing: Growing
    thresholds: Thresholds
    held: np.ndarray | None = None
    scores: Scores | None = None


@dataclass(frozen=True, eq=False)
class StoredBoostedRows:
    """What a boosted model knows of the rows of a block, beside their codes.

    `arrays` are "y" and, if there are such, "weight", "chosen" and "held" (bool), and "raw"
    (n_rows, n_values).
    """

    first_row: int
    n_rows: int
    arrays: dict[str, np.ndarray]


sizeof.register(StoredBoostedRows, size_of_half)


def make_boosted_rows(
    rows: slice, names: Sequence[str], stretches: Sequence[Sequence[np.ndarray]]
) -> StoredBoostedRows:
    """The rest of a block, from stretches of each of its arrays."""
    arrays = {name: np.concatenate(own) for name, own in zip(names, stretches, strict=True)}
    return StoredBoostedRows(rows.start, rows.stop - rows.start, arrays)


# -------------------------------------------------------------------------------------------------
# members


@dataclass(eq=False)
class MemberState:
    """The rows of a member, and what it has grown of a model so far."""

    rows: BoostedRows
    growing: Growing
    thresholds: Thresholds
    scores: ScoresHere | None
    raw: np.ndarray  # after the iterations so far

    @classmethod
    def begin(
        cls,
        members: Members,
        halves: Sequence[Any],
        growing: Growing,
        thresholds: Thresholds,
        weight_unit: float,
        scores: Scores | None,
        packed: Any,
    ) -> MemberState:
        """From the blocks of a worker, and the trees of the iterations so far, if there are any."""
        codes, blocks = [half.coded for half in halves[::2]], halves[1::2]
        coded = codes[0] if len(codes) == 1 else CodedMatrix.stack(codes)
        of_rows = {
            name: np.concatenate([block.arrays[name] for block in blocks])
            for name in blocks[0].arrays
        }
        numbers = [np.arange(block.n_rows) + block.first_row for block in blocks]
        raw = np.repeat(growing.initial[:, np.newaxis], coded.n_rows, axis=1)
        if "raw" in of_rows:
            raw = np.ascontiguousarray(of_rows["raw"].T)
        chosen, held = (
            np.flatnonzero(of_rows[name]) if name in of_rows else None
            for name in ("chosen", "held")
        )
        rows = BoostedRows(
            coded,
            of_rows["y"],
            of_rows.get("weight"),
            weight_unit,
            None if chosen is None else chosen.astype(np.uint32),
            raw,
            np.concatenate(numbers).astype(np.uint64),
        )
        scored = None if scores is None else scores.here(rows, held, members)
        trees = () if packed is None else unpack(packed)
        n_values = len(growing.initial)
        walked, everywhere = CodedRows(coded), np.arange(coded.n_rows)
        for first in range(0, len(trees), n_values):
            own = list(trees[first : first + n_values])
            for k, steps in enumerate(walked.means(own, everywhere)):
                raw[k] += steps
            if scored is not None:
                scored(own, raw)
        growing = replace(
            growing,
            first=growing.first + len(trees) // n_values,
            n_there=growing.n_there + len(trees),
        )
        return cls(rows, growing, thresholds, scored, raw)

    def grow(
        self, n_iterations: int, members: Members, cancelled: Callable[[], bool]
    ) -> tuple[list[Tree], bool]:
        """Grow some iterations; their trees, and whether the last one was the last of all."""
        from distributed import get_worker

        run = LocalRunner(max(1, get_worker().state.nthreads))
        is_last = False

        def watch(trees: list[Tree], raw: np.ndarray) -> bool:
            nonlocal is_last
            self.raw = raw
            is_last = self.scores is not None and self.scores(trees, raw)
            return is_last

        trees = boost(
            replace(self.rows, raw=self.raw),
            replace(self.growing, n_iterations=n_iterations),
            self.thresholds,
            run.led,
            run.n_threads,
            cancelled,
            watch,
            members=members,
        )
        self.growing = replace(
            self.growing,
            first=self.growing.first + n_iterations,
            n_there=self.growing.n_there + len(trees),
        )
        return trees, is_last


def grow_iterations(
    epoch: Epoch, rank: int, n_iterations: int, halves: Sequence[Any] = (), sent: Any = None
) -> tuple[Any, bool, Any, Counter[str]]:
    """What the task of a member does: grow some iterations with the others.

    `halves` and `sent` are there in the first task of an epoch: the blocks of the worker, and the
    model with the trees so far. The first member returns the trees.
    """
    run = TaskRunner()
    with epoch.joined(rank, run.cancelled.is_set) as members:
        if sent is not None:
            members.state["model"] = MemberState.begin(members, halves, *sent.value)
        state = members.state["model"]
        trees, is_last = state.grow(n_iterations, members, run.cancelled.is_set)
    if run.cancelled.is_set():
        raise CancelledError
    if members.rank > 0:
        return None, is_last, None, members.work
    told = None if state.scores is None else state.scores.told()
    return pack(trees), is_last, told, members.work


# -------------------------------------------------------------------------------------------------
# client


def boost_partitioned(
    model: SpreadModel, stats: FitStatistics
) -> Generator[tuple[list[Tree], Any]]:
    """Grow a boosted model on the workers of the cluster in force, where its rows are.

    Yields the trees of some iterations, and what the scores tell, as they come. Closing the
    iterator ends the growth and leaves nothing on the cluster. Close it (`contextlib.closing`).
    Raises WorkerLostError, SchedulerLostError, ClusterError.
    """
    with (
        cluster_client() as client,
        kept_table(model.parts, client) as kept,
        closing(_boosted(model, kept, client, stats)) as found,
    ):
        yield from found


@interrupts_deferred_inside
def _boosted(
    model: SpreadModel, kept: KeptTable, client: Client, stats: FitStatistics
) -> Generator[tuple[list[Tree], Any]]:
    with sys.modules["distributed"].span("dtrees.fit"):
        tasks = Tasks(client, stats, collections=model.parts.collections)
        blocks = BlocksOfMembers(tasks, model, kept)
        stats.counts.update(epochs=0, rounds=0, messages=0)
        try:
            with stats.phase("blocks"):
                tasks.begin()
                tasks.run(blocks.make, kept.forget)
            yield from blocks.grow()
        finally:
            blocks.end()


class Turns:
    """Turns of fits whose members wait for each other: one at a time on a cluster.

    Otherwise one worker could begin a task of the first fit, and another one of the second, and
    both would wait for ever. The scheduler takes a turn back from a client that is gone.
    """

    def __init__(self, client: Client) -> None:
        kind = sys.modules["distributed"].Semaphore
        about = {"scheduler_rpc": client.scheduler, "loop": client.loop}
        self._client = client
        self._semaphore: Any = kind(max_leases=1, name="dtrees-members", **about)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and give it back."""
        acquire = partial(self._semaphore.acquire, timeout=TURN_SECONDS)
        while not call_with_timeout(self._client, acquire):
            pass
        try:
            yield
        finally:
            if self._client.status == "running":
                with suppress(Exception):  # the scheduler takes it back
                    call_with_timeout(self._client, self._semaphore.release, RELEASE_SECONDS)

    def end(self) -> None:
        """Want no turn any more, not even one that comes late."""
        self._semaphore.refresh_leases = False
        loop = self._client.loop
        refresh = getattr(self._semaphore, "refresh_callback", None)  # if leases end by themselves
        with suppress(RuntimeError):  # the loop is closed
            if loop is not None and refresh is not None:
                loop.add_callback(refresh.stop)


class BlocksOfMembers(PlacedBlocks):
    """The blocks of a model on the workers, and the epochs in which these are members."""

    def __init__(self, tasks: Tasks, model: SpreadModel, kept: KeptTable) -> None:
        super().__init__(tasks, model.parts, kept)
        self._model = model
        self._chosen: np.ndarray | None = None  # bool
        if model.rows.chosen is not None:
            self._chosen = np.zeros(len(model.rows.y), dtype=bool)
            self._chosen[model.rows.chosen] = True
        self._trees: list[Tree] = []
        self._epoch: Epoch | None = None
        self._turns = Turns(tasks.client)
        self._workers: dict[str, int] = {}  # that there were when it began
        self._halves: dict[str, list[Any]] = {}

    def _call_for_rows(self, rows: slice, workers: tuple[str, ...]) -> Call:
        """What the model knows of the rows of a block."""
        model, own = self._model, self._model.rows
        of_all = {"y": own.y, "weight": own.weight, "held": model.held, "chosen": self._chosen}
        if own.raw is not None:
            of_all["raw"] = own.raw.T
        there = {name: values for name, values in of_all.items() if values is not None}
        sent = [self._sent_rows(values, rows) for values in there.values()]
        return Call("boosted-rows", make_boosted_rows, (rows, list(there), sent), workers)

    def grow(self) -> Generator[tuple[list[Tree], Any]]:
        """Grow all iterations, or those up to the last one that is wanted."""
        left, some, is_last = self._model.growing.n_iterations, 1, False
        while left > 0 and not is_last:
            began = time.monotonic()
            with self._stats.phase("rounds"):
                trees, is_last, scores = self._tasks.run(
                    partial(self._go_on, min(some, left)), self._make_again
                )
            self._trees += trees
            left -= min(some, left)
            seconds = max(1e-3, time.monotonic() - began)
            some = max(LEAST, min(2 * some, int(some * SLICE_SECONDS / seconds)))
            yield trees, scores

    def _go_on(self, n_iterations: int) -> tuple[list[Tree], bool, Any]:
        """Some more iterations, in this epoch or the next ones."""
        n_ended = 0
        while True:
            try:
                with self._turns.turn():
                    return self._in_epoch(n_iterations)
            except EpochEndedError as error:
                n_ended += 1
                self._end_epoch()
                logger.info("an epoch has ended: %s", error)
                if n_ended > RESTARTS:
                    raise WorkerLostError(
                        f"Workers of the Dask cluster were lost {n_ended} times, without an "
                        f"iteration in between. See their logs. {error}"
                    ) from error
                self._tasks.begin()
            except BaseException:
                self._end_epoch()
                raise

    def _in_epoch(self, n_iterations: int) -> tuple[list[Tree], bool, Any]:
        if self._epoch is not None and self._tasks.workers() != self._workers:
            logger.info("workers have come or gone: an epoch ends")
            self._end_epoch()
        sent: tuple[Any, ...] = ()
        if self._epoch is None:
            sent = (self._begin_epoch(),)
        epoch = self._epoch
        assert epoch is not None
        calls = [
            Call(
                "boost-rows",
                grow_iterations,
                (epoch, rank, n_iterations, *((self._halves[each], *sent) if sent else ())),
                (each,),
                "iterations of a boosted model",
                is_bound=True,
            )
            for rank, each in enumerate(epoch.addresses)
        ]
        try:
            found = dict(self._tasks.results(calls, together=True, heed=self._check_members))
        except LostResultsError as error:  # what is lost is made again as the next one begins
            raise EpochEndedError(f"a task of a member is lost: {error}") from error
        packed, is_last, scores, of_first = found[0]
        work = sum((each for *_, each in found.values()), Counter[str]())
        work["rounds"] = of_first["rounds"]
        self._stats.counts.update(work)
        self._stats.counts["bytes_moved"] += packed_bytes(packed)
        return list(unpack(packed)), is_last, scores

    def _check_members(self, workers: Mapping[str, int]) -> None:
        """Raise EpochEndedError where a member is gone: it may be that no one does its task."""
        assert self._epoch is not None
        gone = set(self._epoch.addresses) - workers.keys()
        if gone:
            raise EpochEndedError(f"{min(gone)} has left the cluster.")

    def _begin_epoch(self) -> Any:
        """Place the blocks, and let workers know who the members are; the model, as it is sent."""
        self._tasks.wait([*self._kept.blocks, *self._rows])
        self._spread()
        self._workers, threads = self._tasks.workers(), self._tasks.answering()
        for there in self._tasks.holders([*self._kept.blocks, *self._rows]):
            if self._tasks.hanging() and self._tasks.hanging().issuperset(there):
                raise LostResultsError("Workers that hang have some of the rows.")
        self._halves = self._shared_out(threads)
        addresses = tuple(sorted(self._halves))
        self._epoch = Epoch(uuid4().hex, addresses)
        try:
            self._run_on(addresses, open_epoch)
        except (OSError, NoAnswerError) as error:
            raise EpochEndedError(f"a member does not answer: {error!r}") from error
        self._stats.counts["epochs"] += 1
        logger.info("epoch %s: %d members", self._epoch.name, len(addresses))
        model, packed = self._model, pack(self._trees) if self._trees else None
        about = model.growing, model.thresholds, model.rows.weight_unit, model.scores
        return self._tasks.send("boosted-model", SharedArrays((*about, packed)))

    def _shared_out(self, threads: Mapping[str, int]) -> dict[str, list[Any]]:
        """The blocks of each member, which all have rows that are grown from."""
        lengths, holders = self._kept.lengths, self._tasks.holders(self._kept.blocks)
        ends = np.cumsum([0, *lengths])
        n_grown = np.diff(ends)
        if self._chosen is not None:
            n_grown = np.diff(np.append(0, np.cumsum(self._chosen))[ends])
        found: dict[str, list[Any]] = defaultdict(list)
        idle: list[Any] = []  # their rows may be held out
        for number, worker in enumerate(share_out(lengths, holders, threads)):
            own = found[worker] if n_grown[number] > 0 else idle
            own += self._kept.blocks[number], self._rows[number]
        if self._model.held is not None:
            found[min(found)] += idle
        return dict(found)

    def _end_epoch(self) -> None:
        if self._epoch is not None and self._client.status == "running":
            with suppress(Exception):  # who does not hear of it finds out
                self._run_on(self._epoch.addresses, end_epoch)
        self._epoch = None

    def _run_on(self, addresses: Sequence[str], function: Callable[..., object]) -> None:
        """Run a function of the epoch on workers that are there."""
        assert self._epoch is not None
        run = partial(self._client.run, function, self._epoch.name, on_error="ignore")
        there = sorted(set(addresses) & self._tasks.workers().keys())
        call_with_timeout(self._client, partial(run, workers=there), RELEASE_SECONDS)

    def end(self) -> None:
        """Leave nothing on the cluster."""
        try:
            self._turns.end()
            self._end_epoch()
        finally:
            super().end()
