"""Where boosted models grow: in this process, or on workers of a Dask cluster.

The regime follows from sizes, as that of a forest. On a cluster the rows stay in their blocks, and
a model grows on one worker, by all of its threads, or on all workers that have rows
(`dtrees.parallel.boosted_members`)::

    local         threads of this process
    replicated    blocks ──▶ the worker of most threads       the only member of an epoch
    partitioned   blocks ──▶ workers that have some each      members of an epoch

Several models of one table, those of a cross-validation, are grown *apart* in the replicated
regime. Each worker has a copy of the codes, and grows some of the models on its threads::

    client    rows of models ──▶ scheduler
    tasks     "block-<fit>" : codes of all rows      worker A ──▶ worker B ──▶ ...
              "boosting-rows-<fit>" : () ──▶ targets, weights, rows of some models
              "boost-models-<fit>" : (codes, rows) ──▶ packed trees of each, scores
    client    ◀── the trees

Where a worker dies, its models are grown again on another one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.lockstep import Grow, Model, Turns, boost_together
from dtrees.core.model.tree import Tree
from dtrees.parallel.block_tasks import StoredCodes
from dtrees.parallel.boosted_members import (
    SpreadModel,
    arrays_elsewhere,
    make_boosted_rows,
    names_of,
    with_raw,
)
from dtrees.parallel.client import cluster_client
from dtrees.parallel.coded_partitions import CodedPartitions, kept_table
from dtrees.parallel.executors import computed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.memory import able_workers, too_large_for_workers, too_small
from dtrees.parallel.placed_blocks import PlacedBlocks, share_out
from dtrees.parallel.regimes import ASKED_FOR, TOO_LARGE, Choice, choose_regime
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes, unpack
from dtrees.parallel.tasks import Call, TaskRunner, Tasks
from dtrees.parallel.threads import LocalRunner

logger = logging.getLogger(__name__)


def place_of_boosting(regime: str | None) -> Choice:
    """Where boosted models grow; `regime` is as for `choose_regime`, which raises ClusterError."""
    choice = choose_regime(regime)
    logger.info("regime %s: %s", choice.regime, choice.reason)
    return choice


def place_of_rows(
    choice: Choice, coded: CodedMatrix | CodedPartitions
) -> tuple[Choice, CodedMatrix | CodedPartitions]:
    """Where a model grows from these rows, and the rows as they are there.

    Rows are in partitions where they stay on the workers of a cluster, and in one table elsewhere.
    TableTooLargeError: no worker has room for all of them, as is asked for.
    """
    if isinstance(coded, CodedPartitions):
        choice = Choice(coded.regime, coded.reason)
    elif choice.regime == "replicated":
        with cluster_client() as client:
            if not able_workers(client, coded.nbytes):
                if choice.reason == ASKED_FOR:
                    raise too_large_for_workers(coded.nbytes, client)
                choice = Choice("local", TOO_LARGE)
    if choice.on_cluster:
        if isinstance(coded, CodedMatrix):
            with kept_table(coded) as kept:  # the same partitions for all growths of a search
                if kept.parts is None or kept.parts.regime != choice.regime:
                    kept.parts = CodedPartitions.cut(coded, choice.reason, choice.regime)
                coded = kept.parts
    elif isinstance(coded, CodedPartitions):
        coded = CodedMatrix.stack(computed(*coded.each()))
    return choice, coded


@interrupts_deferred_inside
def boost_apart(
    models: Sequence[SpreadModel], stats: FitStatistics
) -> Generator[tuple[int, Any, Any]]:
    """Grow several models of one table, each on one worker of the cluster in force.

    Yields their numbers, their trees, or the error of the growth, and what the scores tell, as they
    come. Closing the iterator ends the growth and leaves nothing on the cluster. Close it
    (`contextlib.closing`). Raises ClusterError where the cluster cannot be used, and
    TableTooLargeError where no worker has room for the table.
    """
    parts = models[0].parts
    assert parts is not None
    with cluster_client() as client, kept_table(parts, client) as kept:
        left_out = partial(too_small, client, parts.n_bytes)
        tasks = Tasks(client, stats, parts.collections, left_out)
        table = WholeTable(tasks, parts, kept, arrays_elsewhere(models))
        with table.made():
            places = share_out([1] * len(models), [()] * len(models), tasks.able())
            bundles = [
                [number for number, place in enumerate(places) if place == each]
                for each in dict.fromkeys(places)
            ]
            stats.counts["tasks"] += len(bundles)
            calls = partial(table.calls, models, bundles)
            for number, grown in tasks.each(len(bundles), calls, table.make_again):
                for model, (packed, told) in zip(bundles[number], grown, strict=True):
                    trees = packed
                    if not isinstance(packed, Exception):
                        stats.counts["bytes_moved"] += packed_bytes(packed)
                        trees = list(unpack(packed))
                    yield model, trees, told


class WholeTable(PlacedBlocks):
    """All codes as one block, of which workers have copies."""

    def make(self) -> None:
        """Make it, if a worker has room for it."""
        if not self._tasks.able():
            raise too_large_for_workers(self._parts.n_bytes, self._client)
        super().make()

    def _rows_of_block(self) -> int:
        return self._parts.n_rows

    def _spread(self) -> None:
        """It goes to the workers that ask for it."""

    def _make_rows(self) -> None:
        """Models bring the rest, unless it is there."""
        self._of_parts = [] if self._each is None else self._tasks.hold(self._each())

    def calls(
        self, models: Sequence[SpreadModel], bundles: Sequence[list[int]], left: Sequence[int]
    ) -> Iterator[Call]:
        """Send what models are grown from, and tasks for the workers of most threads."""
        tasks = self._tasks
        threads = tasks.able()
        workers = sorted(threads, key=lambda each: (-threads[each], each))
        largest = sorted(left, key=lambda number: -len(bundles[number]))
        place = {number: workers[k % len(workers)] for k, number in enumerate(largest)}
        n_copies = min(len(workers), len(left))
        tasks.stats.counts["bytes_moved"] += (n_copies - 1) * self._parts.n_bytes
        (codes,) = self._kept.blocks
        for number in left:
            own = [
                (each, replace(models[each], parts=None, elsewhere=None))
                for each in bundles[number]
            ]
            sent = SharedArrays(own)
            tasks.stats.counts["bytes_moved"] += sys.getsizeof(sent)
            rows = tasks.send("boosting-rows", sent)
            about = f"{len(own)} boosted models"
            arguments = codes, rows, self._of_parts
            yield Call("boost-models", boost_models, arguments, (place[number],), about)


def boost_models(
    codes: StoredCodes, sent: SharedArrays, parts: Sequence[dict[str, np.ndarray]]
) -> list[tuple[Any, Any]]:
    """What a task does: grow models on all threads of the worker, as long as somebody wants them.

    `parts` are as `arrays_elsewhere` has them; none: models have their rows. Returns the trees of
    each, packed, or an error, and what its scores tell.
    """
    from distributed import get_worker

    models: list[tuple[int, SpreadModel]] = sent.value
    arrays = make_boosted_rows(slice(0, 0), (), parts).arrays if parts else {}
    coded, is_cancelled = codes.coded, TaskRunner().cancelled.is_set
    run = LocalRunner(max(1, get_worker().state.nthreads))
    found: list[Any] = [None] * len(models)

    def grow_one(place: int, grow: Grow) -> Turns:
        number, own = models[place]
        of_rows = {kind: arrays[name] for kind, name in names_of(number, arrays).items()}
        if of_rows:
            raw = of_rows.get("raw")
            given: Any = {kind: of_rows.get(kind) for kind in ("y", "weight", "chosen")}
            rows = replace(own.rows, **given, raw=None if raw is None else raw.T)
            own = replace(own, rows=rows, held=of_rows.get("held"))
        rows, chosen = replace(own.rows, coded=coded), own.rows.chosen
        if chosen is not None:
            rows = replace(rows, chosen=np.flatnonzero(chosen).astype(np.uint32))
        try:
            scores = None
            if own.scores is not None:
                held = None if own.held is None else np.flatnonzero(own.held)
                scores = own.scores.here(with_raw(rows, own.growing), own.growing, held, None)
            trees: list[Tree] = yield from grow(Model(rows, own.growing, scores))
            found[place] = pack(trees), None if scores is None else scores.told()
        except MemoryError:
            raise
        except Exception as error:  # of a fit: who asked for the models decides what it is worth
            found[place] = error, None

    boost_together(
        coded,
        [partial(grow_one, place) for place in range(len(models))],
        models[0][1].thresholds,
        run.led if len(models) == 1 else run,
        run.n_threads,
        is_cancelled,
        min_rows=models[0][1].growing.rules.min_samples_leaf,
    )
    if is_cancelled():
        raise CancelledError
    return found
