"""Where the graphs of a user's collections are computed: here, or on a cluster.

The scheduler in force decides, as for ``X.compute()`` (`dask.base.get_scheduler`)::

    Here        threads, synchronous, processes     results are in this process at once
    OnCluster   a client's cluster                  results stay on the workers until fetched

Work is a few rounds of tasks, and the results of a round may be arguments of the next one
(`Carrier.leaf`) without coming here. Tasks are pure and have keys of their own, so where results
are lost with their workers, all of the work is done again under new keys, `ATTEMPTS` times
(`carried`). The client never waits without looking at its connection, and leaves nothing on the
cluster.
"""

from __future__ import annotations

import logging
import queue
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

import dask
from dask.base import get_scheduler

from dtrees.exceptions import ClusterError, NoAnswerError
from dtrees.parallel.client import (
    SLICE,
    await_workers,
    cancel,
    check_open,
    check_versions,
    cluster_client,
    in_task,
    patiently,
)

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

ATTEMPTS = 4  # of work whose results are lost with their workers
WATCH = 2.0  # seconds without a result until the workers are counted

logger = logging.getLogger(__name__)


class LostResultsError(ClusterError):
    """Results that went with their workers; the work can be done again."""


class Carrier(Protocol):
    """What computes."""

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute collections; their results, wherever they are."""

    def fetch(self, held: Sequence[Any]) -> list[Any]:
        """Results that are held, in this process."""

    def leaf(self, held: Any) -> Any:
        """A result that is held, as an argument of tasks."""

    def drop(self, held: Sequence[Any]) -> None:
        """Let go of results that are held."""

    def room(self) -> int | None:
        """Bytes that the smallest worker has; None where there are no workers."""


class Here:
    """Computes in this process, or in processes of its own.

    Parameters
    ----------
    get : callable
        Of a Dask scheduler.
    """

    def __init__(self, get: Callable[..., Any]) -> None:
        self._get = get

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute collections; returns their results."""
        return list(dask.compute(*tasks, scheduler=self._get))

    def fetch(self, held: Sequence[Any]) -> list[Any]:
        """The results themselves."""
        return list(held)

    def leaf(self, held: Any) -> Any:
        """A result as a single key of a graph."""
        return dask.delayed(held, name=f"dtrees-leaf-{uuid4().hex}", traverse=False)

    def drop(self, held: Sequence[Any]) -> None:
        """They go with whoever has them."""

    def room(self) -> int | None:
        """There are no workers."""
        return None


class OnCluster:
    """Computes on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Synchronous.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._futures: list[Future] = []

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute collections; returns futures, all of which are finished.

        Raises
        ------
        LostResultsError, ClusterError
        BaseException
            What a task raises.
        """
        await_workers(self._client)
        if not self._futures:
            with suppress(NoAnswerError):  # workers that are too busy to answer
                check_versions(self._client)
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        with _span():
            futures = self._client.compute(list(tasks))
        self._futures.extend(futures)
        for future in futures:
            future.add_done_callback(ended.put)
        looked = time.monotonic()
        for _ in futures:
            while True:
                try:
                    self._check(ended.get(timeout=SLICE))
                    break
                except queue.Empty:
                    check_open(self._client)
                    if time.monotonic() > looked + WATCH:
                        await_workers(self._client)
                        looked = time.monotonic()
        return futures

    def fetch(self, held: Sequence[Any]) -> list[Any]:
        """Results of futures."""
        gather = partial(self._client.gather, list(held))
        try:
            found: list[Any] = patiently(self._client, gather)
        except (CancelledError, OSError, KeyError) as error:
            raise LostResultsError("Results were lost on their way to the client.") from error
        return found

    def leaf(self, held: Any) -> Any:
        """The future itself."""
        return held

    def drop(self, held: Sequence[Any]) -> None:
        """Let the scheduler forget futures."""
        keys = {future.key for future in held}
        self._futures = [future for future in self._futures if future.key not in keys]

    def room(self) -> int | None:
        """Memory of the smallest worker that has a limit."""
        await_workers(self._client)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] for worker in workers if worker.get("memory_limit")]
        return min(limits, default=None)

    def end(self) -> None:
        """Leave nothing on the cluster."""
        futures, self._futures = self._futures, []
        cancel(self._client, futures)

    def _check(self, future: Future) -> None:
        """Raise when a future has ended without a result."""
        if future.status == "error":
            reason = patiently(self._client, future.exception)
            if isinstance(reason, sys.modules["distributed"].KilledWorker):
                raise LostResultsError(
                    "Workers have died while they coded a part of the table. They may have too "
                    "little memory: see their logs, or make the chunks of X smaller."
                ) from reason
            raise reason
        if future.status in ("cancelled", "lost"):
            raise LostResultsError("Results were lost with their workers.")


def carried(collections: Sequence[Any], work: Callable[[Carrier], T]) -> T:
    """Do work where Dask would compute some collections.

    Parameters
    ----------
    collections : sequence of Dask collections
    work : callable
        Called with a `Carrier`; again, where results were lost.

    Raises
    ------
    ClusterError
        The client is closed or asynchronous, there are no workers, or results were lost too often.
    BaseException
        What `work` raises.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with _carrier(collections) as carrier:
                return work(carrier)
        except LostResultsError as error:
            if attempt == ATTEMPTS:
                raise ClusterError(
                    f"The Dask cluster has lost results {ATTEMPTS} times over. {error}"
                ) from error
            logger.info("the parts are computed again: %s", error)
    raise AssertionError


@contextmanager
def _carrier(collections: Sequence[Any]) -> Iterator[Carrier]:
    """Where Dask would compute collections."""
    try:
        get = get_scheduler(collections=list(collections))
    except RuntimeError as error:
        raise ClusterError(
            "The current Dask client was made with asynchronous=True, and a fit of a Dask "
            "collection waits for its results. Fit in a thread with a synchronous Client of the "
            "same scheduler, or under dask.config.set(scheduler='threads')."
        ) from error
    distributed = sys.modules.get("distributed")
    client = getattr(get, "__self__", None)
    if distributed is None or not isinstance(client, distributed.Client):
        yield Here(get)
        return
    check_open(client)
    with cluster_client() if in_task() else nullcontext(client) as client:
        carrier = OnCluster(client)
        try:
            yield carrier
        finally:
            carrier.end()


def _span() -> AbstractContextManager:
    """What is submitted stands in the span of the fit."""
    span = getattr(sys.modules["distributed"], "span", None)
    return nullcontext() if span is None else span("dtrees.fit")
