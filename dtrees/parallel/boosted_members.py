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
the epoch ends (`dtrees.parallel.epochs`). In the next one blocks that are lost are made
again from the user's graph, others are moved so that workers have about as many rows, and raw
predictions follow from the trees so far. Rows are moved by the very steps that the trees hold, so
it is the same model.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from dask.sizeof import sizeof

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import BoostedRows, Growing, boost
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.parallel.block_tasks import size_of_half
from dtrees.parallel.client import cluster_client, limits_of
from dtrees.parallel.coded_partitions import CodedPartitions, KeptTable, kept_table
from dtrees.parallel.epochs import Epochs, slice_seconds
from dtrees.parallel.exchange import Epoch
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.memory import too_large_for_workers, too_small
from dtrees.parallel.placed_blocks import PlacedBlocks, share_out
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes, unpack
from dtrees.parallel.tasks import Call, TaskRunner, Tasks
from dtrees.parallel.threads import LocalRunner
from dtrees.typing import Members

if TYPE_CHECKING:
    from distributed import Client

LEAST = 4  # of them, but for the first: to begin takes as long as half an iteration

logger = logging.getLogger(__name__)


class Scores(Protocol):
    """How rows of the table are scored where they are; picklable."""

    def here(
        self, rows: BoostedRows, held: np.ndarray | None, members: Members | None
    ) -> ScoresHere:
        """Begin with the rows of a member; `held` are those held out of the growth, int64 (n,).

        `members` have others; None: nobody has.
        """


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
    trees : sequence of Tree
        Those of the first iterations, which are there.
    """

    parts: CodedPartitions
    rows: BoostedRows
    growing: Growing
    thresholds: Thresholds
    held: np.ndarray | None = None
    scores: Scores | None = None
    trees: Sequence[Tree] = ()


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
        members: Members | None,
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
        self, n_iterations: int, members: Members | None, cancelled: Callable[[], bool]
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
        others = members if len(epoch.addresses) > 1 else None
        if sent is not None:
            members.state["model"] = MemberState.begin(others, halves, *sent.value)
        state = members.state["model"]
        trees, is_last = state.grow(n_iterations, others, run.cancelled.is_set)
    if run.cancelled.is_set():
        raise CancelledError
    if members.rank > 0:
        return None, is_last, None, members.work
    told = None if state.scores is None else state.scores.told()
    return pack(trees) if trees else None, is_last, told, members.work


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


class BlocksOfMembers(PlacedBlocks):
    """The blocks of a model on the workers, and the epochs in which these are members."""

    def __init__(self, tasks: Tasks, model: SpreadModel, kept: KeptTable) -> None:
        super().__init__(tasks, model.parts, kept, None)
        self._model = model
        self._chosen: np.ndarray | None = None  # bool
        if model.rows.chosen is not None:
            self._chosen = np.zeros(len(model.rows.y), dtype=bool)
            self._chosen[model.rows.chosen] = True
        self._trees = list(model.trees)
        self._is_alone = model.parts.regime == "replicated"
        self._alone = ""  # the worker that has all blocks then
        self._epochs = Epochs(tasks, self._threads if self._is_alone else None)

    def _threads(self) -> dict[str, int]:
        """Threads of the workers that the blocks are to be on; TableTooLargeError: on none."""
        threads = self._tasks.answering()
        if not self._is_alone:
            return threads
        small = too_small(self._client, self._parts.n_bytes)
        able = {each: n for each, n in threads.items() if each not in small}
        if not able:
            least = min(filter(None, limits_of(self._client).values()), default=0)
            raise too_large_for_workers(self._parts.n_bytes, least)
        if self._alone not in able:
            self._alone = min(able, key=lambda each: (-able[each], each))
        return {self._alone: able[self._alone]}

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
        """Grow all iterations, or those up to the last one that is wanted.

        Where all are there, their scores are told.
        """
        growing, some, is_last = self._model.growing, 1, False
        left = growing.n_iterations - len(self._trees) // len(growing.initial)
        while not is_last:
            began, most = time.monotonic(), slice_seconds(len(self._tasks.workers()))
            with self._stats.phase("rounds"):
                go_on = partial(self._go_on, min(some, left))
                trees, is_last, scores = self._tasks.run(go_on, self._make_again)
            self._trees += trees
            left -= min(some, left)
            is_last |= left == 0
            seconds = max(1e-3, time.monotonic() - began)
            some = max(LEAST, min(2 * some, int(some * most / seconds)))
            yield trees, scores

    def _go_on(self, n_iterations: int) -> tuple[list[Tree], bool, Any]:
        """Some more iterations, in this epoch or the next ones."""
        about = "iterations of a boosted model"
        call = Call("boost-rows", grow_iterations, (n_iterations,), about=about)
        found = self._epochs.results(self._begin, call)
        packed, is_last, scores, of_first = found[0]
        work = sum((each for *_, each in found), Counter[str]())
        work["rounds"] = of_first["rounds"]
        self._stats.counts.update(work)
        if packed is None:  # all are there
            return [], is_last, scores
        self._stats.counts["bytes_moved"] += packed_bytes(packed)
        return list(unpack(packed)), is_last, scores

    def _begin(self) -> tuple[dict[str, list[Any]], Any]:
        """The blocks of each member, and the model, as it is sent."""
        self.settle()
        halves = self._shared_out(self._threads())
        model, packed = self._model, pack(self._trees) if self._trees else None
        about = model.growing, model.thresholds, model.rows.weight_unit, model.scores
        return halves, self._tasks.send("boosted-model", SharedArrays((*about, packed)))

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
            own = found[worker] if n_grown[number] > 0 or self._is_alone else idle
            own += self._kept.blocks[number], self._rows[number]
        if self._model.held is not None and idle:
            found[min(found)] += idle
        return dict(found)

    def end(self) -> None:
        """Leave nothing on the cluster."""
        try:
            self._epochs.end()
        finally:
            super().end()
