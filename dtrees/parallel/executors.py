"""Where the graphs of a user's collections are computed: here, or on a cluster.

The scheduler in force decides, as for ``X.compute()`` (`dask.base.get_scheduler`)::

    LocalExecutor   threads, synchronous, processes     results are in this process at once
    Tasks           a client's cluster                  results stay on the workers until fetched

Work is a few rounds of tasks. The results of a round may be arguments of the next one
(`Tasks.as_argument`) without coming here; they are there as long as somebody holds them.
Tasks are pure and have keys of their own. Where results are lost with their workers, all of the
work is done again under new keys. That, and what else can happen to them, is the business of
`dtrees.parallel.tasks`.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import dask
from dask import threaded as dask_threads

from dtrees.parallel.client import cluster_client, scheduler_of, this_worker
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred
from dtrees.parallel.lazy_collections import check_persisted, is_lazy, one_kind_at_a_time
from dtrees.parallel.tasks import Tasks

T = TypeVar("T")


def _begin_without_pools() -> None:
    """Forget Dask's pools of the process that this one was forked from: their threads are not here.

    Nor is who may hold their lock.
    """
    dask_threads.default_pool = None
    dask_threads.pools = defaultdict(dict)
    dask_threads.pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_without_pools)


class LocalExecutor:
    """Computes in this process, or in processes of its own, by the ``get`` of a Dask scheduler."""

    def __init__(self, get: Callable[..., Any]) -> None:
        self._get = get

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute collections; returns their results."""
        return one_kind_at_a_time(tasks, lambda same: dask.compute(*same, scheduler=self._get))

    def fetch(self, held: Sequence[Any]) -> list[Any]:
        """The results themselves."""
        return list(held)

    def asked(self, name: str, held: Sequence[Any], function: Callable[[Any], T]) -> list[T]:
        """What a function says of each result; small."""
        return list(map(function, held))

    def as_argument(self, held: Any) -> Any:
        """A result as a single key of a graph."""
        return dask.delayed(held, name=f"dtrees-leaf-{uuid4().hex}", traverse=False)

    def span(self) -> AbstractContextManager[None]:
        """Nobody remembers what is held together."""
        return nullcontext()

    def room(self) -> int | None:
        """There are no workers."""
        return None

    def machines(self) -> dict[str, tuple[int | None, int]]:
        """There are no workers."""
        return {}


Executor = LocalExecutor | Tasks  # of graphs


def run_with_retries(
    collections: Sequence[Any], work: Callable[[Executor], T], stats: FitStatistics | None = None
) -> T:
    """Do work where Dask would compute the first of its collections; again, if results were lost.

    `stats` are told what was lost, and how often all was done again. Raises ClusterError where the
    client is closed or asynchronous, there are no workers, or results were lost too often.
    """
    stats = FitStatistics() if stats is None else stats
    get, client = scheduler_of(collections[:1])
    if client is None:
        try:
            return work(LocalExecutor(get))
        except Exception:
            check_persisted(collections, None)
            raise
    place = nullcontext(client) if this_worker() is None else cluster_client()
    with place as client, interrupts_deferred():
        tasks = Tasks(client, stats, collections=collections)
        tasks.begin()
        try:
            return tasks.run(partial(work, tasks))
        finally:
            tasks.end()


def computed(*values: Any, stats: FitStatistics | None = None) -> list[Any]:
    """Some values in memory, in their order; what is no collection is its own result.

    They are computed where Dask would. `stats` and errors as for `run_with_retries`.
    """
    lazy = [value for value in values if is_lazy(value)]
    if not lazy:
        return list(values)
    found = iter(run_with_retries(lazy, lambda own: own.fetch(own.hold(lazy)), stats))
    return [next(found) if is_lazy(value) else value for value in values]
