"""Boosted models grown from a table that no worker holds: the partitioned regime.

The rows stay in their blocks. Each worker that has some is a member of an epoch, and grows the
whole model from its own rows, iteration by iteration; members add up what depends on all rows
(`dtrees.core.grow.boosting`, `dtrees.parallel.exchange`). So all of them have the same trees, those
of one place, bit for bit. The client sends a few iterations at a time, about a second of work, and
hears of their trees::

    client    begin, 1 iteration ──▶ ... trees ◀── 12 iterations ──▶ ... trees ◀── 12 iterations ──▶
    member 0        derive  count ═╪═ search  partition  ...               ═ members exchange sums
    member 1        derive  count ═╪═ search  partition  ...

The trees so far are the checkpoint, and they are here. In another epoch (`dtrees.parallel.epochs`)
raw predictions follow from them. Rows are moved by the very steps that the trees hold, so it is the
same model.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import dask
import numpy as np
from dask.sizeof import sizeof

from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.coding.mapped import empty_on_disk, let_go
from dtrees.core.grow._team import Team
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import (
    TAKEN_BYTES,
    BoostedRows,
    Booster,
    Growing,
    grow_model,
    lead,
)
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.parallel.block_tasks import size_of_half
from dtrees.parallel.client import cluster_client
from dtrees.parallel.coded_partitions import CodedPartitions, KeptTable, kept_table
from dtrees.parallel.cost import GrowthSize
from dtrees.parallel.epochs import Epochs, slice_seconds
from dtrees.parallel.exchange import Epoch
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.memory import (
    bytes_of_boosting,
    room_of_member,
    too_large_for_workers,
    too_small,
)
from dtrees.parallel.placed_blocks import PlacedBlocks, PlaceOfBlock
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes, unpack
from dtrees.parallel.tasks import Call, TaskRunner, Tasks
from dtrees.parallel.threads import LocalRunner
from dtrees.parallel.together import OfModel, Together
from dtrees.typing import Members, T

if TYPE_CHECKING:
    from distributed import Future

WALK_ROWS = 2**18  # whose leaves are found together, as an epoch begins

logger = logging.getLogger(__name__)


class Scores(Protocol):
    """How rows of the table are scored where they are; picklable."""

    def here(
        self,
        rows: BoostedRows,
        growing: Growing,
        held: np.ndarray | None,
        members: Members | None,
        others: Sequence[Any] = (),
    ) -> ScoresHere:
        """Begin with the rows of a member, and what is grown from them.

        `held`, int64 (n,), are rows that are held out of the growth. `members` have
        others; None: nobody has. `others` are parts of `SpreadModel.others`.
        """


class ScoresHere(Protocol):
    """Scores of the rows of all members, after each iteration, which may end the fit."""

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration; whether it was the last one."""

    def told(self) -> Any:
        """The scores so far."""


@dataclass(frozen=True, eq=False)
class SpreadModel:
    """What a model is grown from: the rows are in `parts`."""

    parts: CodedPartitions | None  # None: where the rows are
    rows: BoostedRows  # of the table, without codes; which are chosen is bool (n_rows,)
    growing: Growing
    thresholds: Thresholds
    held: np.ndarray | None = None  # bool (n_rows,): held out of the growth, to be scored
    scores: Scores | None = None
    trees: Sequence[Tree] = ()  # of the first iterations, which are there
    # arrays of each partition by kind, where `rows` are not here: tasks of Dask, made anew
    elsewhere: Callable[[], list[Any]] | None = None
    # parts of tables that are scored, too, and are not grown from: such tasks
    others: Callable[[], list[Any]] | None = None


@dataclass(frozen=True, eq=False)
class StoredBoostedRows:
    """What boosted models know of the rows of a block, beside their codes; as `arrays_of`.

    `others` are parts of `SpreadModel.others`.
    """

    first_row: int
    n_rows: int
    arrays: dict[str, np.ndarray]
    others: Sequence[Any]


sizeof.register(StoredBoostedRows, size_of_half)


def arrays_of(
    models: Sequence[SpreadModel],
) -> tuple[dict[str, np.ndarray], list[dict[str, str]]]:
    """What models know of the rows of a table, each array once, and the names by model and kind.

    Kinds are "y" and, if there are such, "weight", "chosen" and "held" (bool), and "raw"
    (n_rows, n_values). Of several outputs "y" is (n_rows, n_outputs).
    """
    arrays: dict[str, np.ndarray] = {}
    names: list[dict[str, str]] = []
    for number, model in enumerate(models):
        rows = model.rows
        raw = None if rows.raw is None else rows.raw.T
        own = {"weight": rows.weight, "chosen": rows.chosen, "held": model.held, "raw": raw}
        names.append({})
        for kind, values in {"y": rows.y.T, **own}.items():
            if values is None:
                continue
            same = (
                name
                for name, other in arrays.items()
                if name.startswith(kind) and (other is values or np.array_equal(other, values))
            )
            names[-1][kind] = name = next(same, f"{kind}-{number}")
            arrays.setdefault(name, values)
    return arrays, names


OF_ALL = ("y", "raw")  # what all models of a table have in common


def arrays_elsewhere(models: Sequence[SpreadModel]) -> Callable[[], list[Any]] | None:
    """Tasks for what models know of the rows of each partition, as `arrays_of`; None: it is here.

    Arrays that only one of several models has are called by kind and number.
    """
    own = [model.elsewhere for model in models if model.elsewhere is not None]
    if len(own) < 2:
        return own[0] if own else None
    join = dask.delayed(_joined_arrays, pure=False)
    return lambda: list(map(join, map(list, zip(*(each() for each in own), strict=True))))


def _joined_arrays(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of a partition, from those of each model."""
    return {
        kind if kind in OF_ALL else f"{kind}-{number}": values
        for number, arrays in enumerate(parts)
        for kind, values in arrays.items()
    }


def names_of(number: int, arrays: Iterable[str]) -> dict[str, str]:
    """The names of the arrays of a model, by kind, as `arrays_elsewhere` has them."""
    named = [(name, *name.partition("-")) for name in arrays]
    return {kind: name for name, kind, _, own in named if own in ("", str(number))}


def make_boosted_rows(
    rows: slice, others: Sequence[Any], parts: Sequence[dict[str, np.ndarray]]
) -> StoredBoostedRows:
    """The rest of a block, from that of stretches of its rows."""
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return StoredBoostedRows(rows.start, rows.stop - rows.start, arrays, others)


# -------------------------------------------------------------------------------------------------
# members


def with_raw(
    rows: BoostedRows, growing: Growing, empty: Callable[..., np.ndarray] = np.empty
) -> BoostedRows:
    """The rows with raw predictions of their own that they begin with, in an array of `empty`."""
    raw = empty((len(growing.initial), rows.n_rows), dtype=np.float64)
    raw[:] = growing.initial[:, np.newaxis] if rows.raw is None else rows.raw
    return replace(rows, raw=raw)


@dataclass(eq=False)
class MemberState:
    """The rows of a member, and what it has grown of a model so far."""

    rows: BoostedRows
    growing: Growing
    thresholds: Thresholds
    scores: ScoresHere | None
    members: Members | None
    lay_out: Callable[..., ColumnBlocks]  # the codes; by the least rows of a leaf, and threads
    team: Team = field(default_factory=Team)
    booster: Booster | None = None  # once something has grown

    @classmethod
    def begin_all(
        cls,
        members: Members | None,
        together: Together | None,
        places: Sequence[PlaceOfBlock],
        models: Sequence[tuple[Any, ...]],
        bytes_of_row: float,
    ) -> dict[int, MemberState]:
        """Those of several models, from the blocks of a worker; they have one table of codes.

        Blocks are read one by one. Codes that are more than memory go to the worker's disk.
        """
        from distributed import get_worker

        worker, blocks = get_worker(), []

        def read() -> Iterator[CodedMatrix]:
            for place in places:
                codes, rows = place.halves(worker)
                blocks.append(rows)
                yield codes.coded

        coded, n_rows = next(read()), sum(place.n_rows for place in places)
        (rows,) = blocks
        models = [
            (names or names_of(number, rows.arrays), *own)
            for number, (names, *own) in enumerate(models)
        ]
        growing = [own for _, own, *_ in models]
        takes_codes = len(places) > 1 == len(models) and "held" not in models[0][0]
        takes_codes &= members is not None or models[0][4] is None  # whose scores walk down trees
        n_bytes = bytes_of_row * n_rows * (2 - takes_codes)
        n_values = sum(len(own.initial) for own in growing)
        n_codes = int(coded.n_codes[coded.storage != SPARSE].sum())
        n_bytes += bytes_of_boosting(growing[0].rules, n_values, n_rows, n_codes)
        empty: Callable[..., np.ndarray] = np.empty
        if n_bytes > room_of_member(worker.memory_manager.memory_limit):
            folder, owner = worker.local_directory, worker.address
            empty = partial(empty_on_disk, folder=folder, owner=owner)
            logger.info("%s has the codes of its rows on its disk", worker.address)
        if len(places) > 1 or empty is not np.empty:
            blocks.clear()
            coded = CodedMatrix.stack(read(), n_rows, empty)
        arrays = {}
        for name, own in rows.arrays.items():
            arrays[name] = empty((n_rows, *own.shape[1:]), dtype=own.dtype)
            np.concatenate([block.arrays[name] for block in blocks], out=arrays[name])
        numbers = None
        if any(own.subsample < 1.0 for own in growing):
            of_blocks = [np.arange(block.n_rows) + block.first_row for block in blocks]
            numbers = np.concatenate(of_blocks).astype(np.uint64)
        how = {
            "takes_codes": takes_codes and coded.u8.nbytes >= TAKEN_BYTES,
            "is_part": members is not None or growing[0].order is not None,
            "empty": empty,
        }
        lay_out = cache(partial(ColumnBlocks, coded, **how))  # once for all models
        parts = [part for block in blocks for part in block.others]
        of_table = parts, lay_out, empty, coded, numbers
        works = {}
        for number, (names, *own) in enumerate(models):
            others = members if together is None else OfModel(together, number)
            of_rows = {kind: arrays[name] for kind, name in names.items()}
            works[number] = partial(cls.begin, others, *of_table, of_rows, *own)
        return each_of(works, together)

    @classmethod
    def begin(
        cls,
        members: Members | None,
        others: Sequence[Any],
        lay_out: Callable[..., ColumnBlocks],
        empty: Callable[..., np.ndarray],
        coded: CodedMatrix,
        numbers: np.ndarray | None,
        of_rows: dict[str, np.ndarray],
        growing: Growing,
        thresholds: Thresholds,
        weight_unit: float,
        scores: Scores | None,
        packed: Any,
    ) -> MemberState:
        """From what a worker has, and the trees of the iterations so far, if there are any."""
        chosen, held = (
            np.flatnonzero(of_rows[name]) if name in of_rows else None
            for name in ("chosen", "held")
        )
        y = of_rows["y"]
        if y.ndim == 2:
            y = empty(y.shape[::-1], dtype=y.dtype)
            y[:] = of_rows["y"].T
        rows = BoostedRows(
            coded,
            y,
            of_rows.get("weight"),
            weight_unit,
            None if chosen is None else chosen.astype(np.uint32),
            of_rows["raw"].T if "raw" in of_rows else None,  # models may share it
            numbers,
        )
        rows = with_raw(rows, growing, empty)
        raw = rows.raw
        assert raw is not None
        let_go(raw)
        scored = None if scores is None else scores.here(rows, growing, held, members, others)
        trees = () if packed is None else unpack(packed)
        n_trees = growing.n_trees
        walked = CodedRows(coded)
        for first in range(0, len(trees), n_trees):
            own = list(trees[first : first + n_trees])
            for start in range(0, coded.n_rows, WALK_ROWS):
                some = np.arange(start, min(start + WALK_ROWS, coded.n_rows))
                for k, steps in enumerate(walked.means(own, some)):
                    raw[k, some] += steps
            let_go(raw)
            if scored is not None:
                scored(own, raw)
        growing = replace(growing, first=growing.first + len(trees) // n_trees)
        return cls(rows, growing, thresholds, scored, members, lay_out)

    def columns(self, n_threads: int) -> ColumnBlocks:
        """The codes, laid out for so many threads."""
        least = 0 if self.members else self.growing.rules.min_samples_leaf
        return self.lay_out(least, max(1, n_threads // self.growing.n_trees))

    def grow(
        self, n_iterations: int, n_threads: int, cancelled: Callable[[], bool]
    ) -> tuple[list[Tree], bool]:
        """Grow some iterations; their trees, and whether the last one was the last of all."""
        run = LocalRunner(n_threads)
        made: list[Tree] = []
        is_last = False

        def watch(trees: list[Tree], raw: np.ndarray) -> bool:
            nonlocal is_last
            is_last = self.scores is not None and self.scores(trees, raw)
            return is_last

        def grow() -> None:
            if self.booster is None:
                about = self.team, self.columns(n_threads), self.members
                self.booster = Booster(self.rows, self.growing, *about)
                self.rows = replace(self.rows, raw=None)  # it has its own
            how = made, cancelled, watch, n_iterations
            for _turn in grow_model(self.booster, self.thresholds, *how):
                pass

        self.team.open()
        lead(self.team, grow, run.led, run.n_threads)
        return made, is_last


def each_of(works: Mapping[int, Callable[[], T]], together: Together | None) -> dict[int, T]:
    """Do the work of several models, at the same time if they go together."""
    if together is not None:
        return together.run(works)
    return {number: work() for number, work in works.items()}


def grow_iterations(
    epoch: Epoch,
    rank: int,
    wanted: Sequence[tuple[int, int]],
    places: Sequence[PlaceOfBlock] = (),
    sent: Any = None,
) -> tuple[list[tuple[Any, bool, Any]], Counter[str]]:
    """What the task of a member does: grow some iterations of models with the others.

    `wanted` are numbers of models, and of iterations of each. `places` and `sent` are there in the
    first task of an epoch: the blocks of the worker, and the models with the trees so far. Returns
    for each model its trees, of the first member, whether they end it, and what scores tell.
    """
    from distributed import get_worker

    run, n_threads = TaskRunner(), max(1, get_worker().state.nthreads)
    found: list[tuple[Any, bool, Any]] = []
    with epoch.joined(rank, run.cancelled.is_set) as members:
        if sent is not None:
            others = members if len(epoch.addresses) > 1 else None
            together = None
            models, bytes_of_row = sent.value
            if others is not None and len(models) > 1:
                together = Together(others, n_threads)
            states = MemberState.begin_all(others, together, places, models, bytes_of_row)
            members.state.update(models=states, together=together)
        states, together = members.state["models"], members.state["together"]
        if together is not None:
            n_threads = max(1, n_threads // len(states))
            states[0].columns(n_threads)  # for all of them
        how = n_threads, run.cancelled.is_set
        works = {number: partial(states[number].grow, n, *how) for number, n in wanted}
        for number, (trees, is_last) in each_of(works, together).items():
            scores = states[number].scores
            told = None if scores is None or rank > 0 else scores.told()
            found.append((pack(trees) if trees and rank == 0 else None, is_last, told))
    if run.cancelled.is_set():
        raise CancelledError
    return found, members.work


# -------------------------------------------------------------------------------------------------
# client


@interrupts_deferred_inside
def boost_partitioned(
    models: Sequence[SpreadModel], stats: FitStatistics
) -> Generator[tuple[int, list[Tree], Any]]:
    """Grow boosted models of one table on the workers of the cluster in force, where its rows are.

    Yields the number of a model, the trees of some iterations, and what the scores tell, as they
    come. Closing the iterator ends the growth and leaves nothing on the cluster. Close it
    (`contextlib.closing`). Raises WorkerLostError, SchedulerLostError, ClusterError.
    """
    parts = models[0].parts
    assert parts is not None
    with cluster_client() as client, kept_table(parts, client) as kept:
        tasks = Tasks(client, stats, collections=parts.collections)
        blocks = BlocksOfMembers(tasks, models, parts, kept)
        stats.counts.update(epochs=0, rounds=0, messages=0)
        with blocks.made():
            yield from blocks.grow()


class BlocksOfMembers(PlacedBlocks):
    """The blocks of models on the workers, and the epochs in which these are members."""

    def __init__(
        self,
        tasks: Tasks,
        models: Sequence[SpreadModel],
        parts: CodedPartitions,
        kept: KeptTable,
    ) -> None:
        there, self._others = arrays_elsewhere(models), models[0].others  # of one model
        self._others_there: list[Future] = []  # until blocks are made
        super().__init__(tasks, parts, kept, there)
        self._models = models
        of_rows = ({}, [{}] * len(models)) if there is not None else arrays_of(models)
        self._arrays, self._names = of_rows
        self._trees = [list(model.trees) for model in models]
        self._is_alone = parts.regime == "replicated"  # one worker has all blocks
        self._epochs: Epochs = Epochs(tasks, self._is_alone)

    def _able(self) -> dict[str, int]:
        """Threads of the workers that may have blocks; TableTooLargeError: of none."""
        small = too_small(self._client, self._parts.n_bytes) if self._is_alone else ()
        able = {each: n for each, n in super()._able().items() if each not in small}
        if not able:
            raise too_large_for_workers(self._parts.n_bytes, self._client)
        return able

    def _n_members(self, threads: Mapping[str, int]) -> int:
        return 1 if self._is_alone else super()._n_members(threads)

    def _size(self) -> GrowthSize:
        models, parts = self._models, self._parts
        return GrowthSize(
            boosting=models[0].growing.rules,
            n_rows=parts.n_rows,
            n_columns=parts.n_columns,
            n_trees=max(model.growing.n_iterations for model in models),
            n_sets=sum(len(model.growing.initial) for model in models),
            bytes_per_row=parts.n_bytes / max(1, parts.n_rows),
            n_codes=int(parts.n_codes.mean()),
        )

    def _rows_of_block(self) -> int:
        whole, of_block = self._parts.n_rows, super()._rows_of_block()
        return whole if self._is_alone else max(1, of_block // 2)  # members are more even so

    def _make_rows(self) -> None:
        self._others_there = [] if self._others is None else self._tasks.hold(self._others())
        super()._make_rows()
        self._others_there = []

    def _call_for_rows(self, rows: slice, workers: tuple[str, ...]) -> Call:
        """What the models know of the rows of a block, and its share of other parts."""
        number = int(np.searchsorted(np.cumsum(self._kept.lengths), rows.start, side="right"))
        others = self._others_there[number :: len(self._kept.lengths)]
        is_there = self._each is not None
        parts = self._rows_there(rows) if is_there else self._sent_rows(self._arrays, rows)
        return Call("boosted-rows", make_boosted_rows, (rows, others, parts), workers)

    def grow(self) -> Generator[tuple[int, list[Tree], Any]]:
        """Grow all iterations, or those up to the last one that is wanted.

        Where all are there, their scores are told.
        """
        left, some = {}, 1
        for number, model in enumerate(self._models):
            n_there = len(self._trees[number]) // model.growing.n_trees
            left[number] = model.growing.n_iterations - n_there
        while left:
            wanted = [(number, min(some, n)) for number, n in left.items()]
            began, most = time.monotonic(), slice_seconds(len(self.members))
            with self._stats.phase("rounds"):
                found = self._tasks.run(partial(self._go_on, wanted), self.make_again)
            seconds = max(1e-3, time.monotonic() - began)
            some = max(1, min(2 * some, int(some * most / seconds)))
            for (number, n), (trees, is_last, told) in zip(wanted, found, strict=True):
                self._trees[number] += trees
                left[number] -= n
                if is_last or left[number] == 0:
                    del left[number]
                yield number, trees, told

    def _go_on(self, wanted: Sequence[tuple[int, int]]) -> list[tuple[list[Tree], bool, Any]]:
        """Some more iterations of each model, in this epoch or the next ones."""
        about = "iterations of a boosted model"
        call = Call("boost-rows", grow_iterations, (wanted,), about=about)
        found = self._epochs.results(self._begin, call, self._threads)
        of_models, of_first = found[0]
        work = sum((each for _, each in found), Counter[str]())
        work["rounds"] = of_first["rounds"]
        self._stats.counts.update(work)
        grown = []
        for packed, is_last, told in of_models:
            if packed is not None:  # or all are there
                self._stats.counts["bytes_moved"] += packed_bytes(packed)
            grown.append(([] if packed is None else list(unpack(packed)), is_last, told))
        return grown

    def _begin(self) -> tuple[dict[str, list[Any]], Any]:
        """The blocks of each member, and the models, as they are sent."""
        places = self.settle()
        models = []
        for names, own, trees in zip(self._names, self._models, self._trees, strict=True):
            so_far = own.scores, pack(trees) if trees else None
            models.append((names, own.growing, own.thresholds, own.rows.weight_unit, *so_far))
        bytes_of_row = self._parts.n_bytes / max(1, self._parts.n_rows)
        return places, self._tasks.send("boosted-model", SharedArrays((models, bytes_of_row)))
