"""Boosted models, grown here or on a worker of a Dask cluster.

A boosted model grows in one place, by threads that share its rows (`dtrees.core.grow.boosting`). So
it is one task, which has all threads of its worker::

    client   rows, growing ──submit──▶ scheduler
    tasks    "boosting-rows-<fit>-1" : () ──▶ codes, targets, weights
             ("boost-<fit>", 2) : (rows,) ──▶ packed trees             the worker of most threads
    client   ◀── the trees

What happens to the task is the business of `dtrees.parallel.tasks`: where its worker dies, it is
done again on another one, from the first tree. The regime is chosen as for a single tree, so a
cluster is used where it is asked for. Rows that stay in their partitions are the business of
`dtrees.parallel.boosted_members`.
"""

from __future__ import annotations

import logging
import sys
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, Protocol

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import BoostedRows, Growing, boost
from dtrees.core.model.tree import Tree
from dtrees.parallel.client import cluster_client, limits_of
from dtrees.parallel.coded_partitions import CodedPartitions
from dtrees.parallel.executors import computed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred
from dtrees.parallel.memory import too_large_for_workers, too_small
from dtrees.parallel.regimes import TOO_LITTLE, Choice, choose_regime
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes, unpack
from dtrees.parallel.tasks import Call, TaskRunner, Tasks
from dtrees.parallel.threads import LocalRunner


class Ends(Protocol):
    """Says when a model has enough trees; it counts what it hears."""

    def copied(self) -> Ends:
        """One that has heard the same, and goes on by itself."""
        ...

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration, as a `Watch` of the growth; whether it was the last."""
        ...


logger = logging.getLogger(__name__)


def place_of_boosting(regime: str | None, owner: str, *, side_by_side: bool = False) -> Choice:
    """Where a boosted model grows.

    `regime` is as for `choose_regime`, `owner` the name of the estimator, for messages. A model
    that is `side_by_side` with others, one of several training sets, grows in this process. Raises
    ValueError where the partitioned regime is asked for, and ClusterError where the replicated one
    is, and there is no cluster that can be used.
    """
    choice = choose_regime(regime, n_trees=1)
    if side_by_side and choice.regime == "partitioned":
        raise ValueError(
            f"Several models of {owner} do not grow in the partitioned regime yet, as their rows "
            "have to be in one place. Give regime='local' (in this process), or fit one model."
        )
    if choice.reason == TOO_LITTLE:
        choice = Choice("local", "a boosted model grows in one place")
    if side_by_side and choice.regime == "replicated":
        choice = Choice("local", "boosted models grow side by side in this process")
    logger.info("regime %s: %s", choice.regime, choice.reason)
    return choice


def place_of_rows(
    choice: Choice, coded: CodedMatrix | CodedPartitions
) -> tuple[Choice, CodedMatrix | CodedPartitions]:
    """Where a model grows from these rows, and the rows as they are there.

    Rows are in partitions where they stay on the workers of a cluster, and in one table elsewhere.
    """
    if isinstance(coded, CodedPartitions):
        choice = Choice("partitioned", coded.reason)
    if choice.regime == "partitioned" and choice.on_cluster:
        if isinstance(coded, CodedMatrix):
            coded = CodedPartitions.cut(coded, choice.reason)
    elif isinstance(coded, CodedPartitions):
        coded = CodedMatrix.stack(computed(*coded.each()))
    return choice, coded


def boost_replicated(
    rows: BoostedRows,
    growing: Growing,
    thresholds: Thresholds,
    ends: Ends | None,
    stats: FitStatistics,
) -> list[Tree]:
    """Grow a boosted model on a worker, which has a copy of `ends` that hears of each iteration.

    The same trees as `dtrees.core.grow.boosting.boost`. ClusterError: a cluster cannot be used.
    TableTooLargeError: no worker has room for the table.
    """
    sent = SharedArrays((rows, growing, thresholds, ends))
    with cluster_client() as client, interrupts_deferred():
        tasks = Tasks(client, stats, left_out=partial(too_small, client, sys.getsizeof(sent)))
        stats.counts["bytes_moved"] += 0
        with sys.modules["distributed"].span("dtrees.fit"):
            try:
                tasks.begin()
                stats.counts["tasks"] += 1
                trees: list[Tree] = []
                for _, packed in tasks.each(1, partial(_calls, tasks, sent)):
                    stats.counts["bytes_moved"] += packed_bytes(packed)
                    trees = list(unpack(packed))
                return trees
            finally:
                tasks.end()


def _calls(tasks: Tasks, sent: SharedArrays, left: Any) -> list[Call]:
    """Send what the model is grown from, and a task for the worker of most threads.

    Raises TableTooLargeError where no worker has room for it.
    """
    threads, n_bytes = tasks.able(), sys.getsizeof(sent)
    if not threads:
        most = max(filter(None, limits_of(tasks.client).values()), default=0)
        raise too_large_for_workers(n_bytes, most)
    best = min(threads, key=lambda address: (-threads[address], address))
    tasks.stats.counts["bytes_moved"] += n_bytes
    future = tasks.send("boosting-rows", sent)
    return [Call("boost", boost_on_worker, (future,), (best,), "a boosted model")]


def boost_on_worker(sent: SharedArrays) -> dict[str, Any]:
    """What the task does: grow the model on all threads of the worker, as long as it is wanted."""
    from distributed import get_worker

    rows, growing, thresholds, ends = sent.value
    is_cancelled = TaskRunner().cancelled.is_set
    run = LocalRunner(max(1, get_worker().state.nthreads))
    own = None if ends is None else ends.copied()  # the task may be done again
    trees = boost(rows, growing, thresholds, run.led, run.n_threads, is_cancelled, own)
    if is_cancelled():
        raise CancelledError
    return pack(trees)
