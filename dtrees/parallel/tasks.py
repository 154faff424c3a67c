"""Tasks on the workers of a cluster, seen from the client.

Tasks are pure: where one runs, and how often, makes no difference to its result. So whatever
happens to one, it can be done again::

    submitted ──▶ on the workers ──ended──▶ fetched ──▶ a result

    it is blamed for the death of     it is submitted under a new key, `ATTEMPTS` times
    several workers (`KilledWorker`)
    its result, or what it needs,     `LostResultsError`: whoever knows how all of it was made
    went with a worker, for good      makes it again
    nothing comes for `PATIENCE`      workers that hang are taken out of the cluster, so that others
                                      get what they had; where all of them hang, the client waits
                                      `SILENCES` times as long, then `WorkerLostError`
    no worker is left                 the client waits for one, then raises `WorkerLostError`
    the scheduler is lost             `SchedulerLostError`

The client waits in slices, and never without a look at its connection. Futures are those of whoever
holds them; in the end all that are left are released.
"""

from __future__ import annotations

import logging
import queue
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

from dtrees.exceptions import ClusterError, NoAnswerError, WorkerLostError
from dtrees.parallel.client import (
    GOODBYE,
    SLICE,
    await_workers,
    check_open,
    check_versions,
    look,
    patiently,
    release,
    seconds_of,
    sending_data,
)
from dtrees.parallel.interrupts import let_through
from dtrees.parallel.ledger import Ledger
from dtrees.parallel.one_kind import one_kind_at_a_time

if TYPE_CHECKING:
    from distributed import Client, Future

ATTEMPTS = 4  # of a task whose workers die
WATCH = 2.0  # seconds without a result until the workers are counted
PATIENCE = "30s"  # unless dask.config says otherwise, under "dtrees.worker-patience"
SILENCES = 4  # of all workers, as long as `PATIENCE` each, until they are given up

logger = logging.getLogger(__name__)


class LostResultsError(ClusterError):
    """Results that went with their workers; the work can be done again."""


@dataclass(frozen=True, eq=False)
class Call:
    """A task that is to be done, as often as it takes.

    Attributes
    ----------
    name : str
        Of its kind.
    function : callable
    arguments : tuple
    workers : tuple of str, default=()
        That have what it needs.
    deaths : int, default=0
        How often it was blamed for those of workers.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    workers: tuple[str, ...] = ()
    deaths: int = 0


@dataclass(eq=False)
class Tasks:
    """Tasks of a client.

    Attributes
    ----------
    client : distributed.Client
        Synchronous.
    ledger : Ledger
        Retries and lost workers are counted there.
    name : str
        Stands in the keys of what is submitted.
    """

    client: Client
    ledger: Ledger = field(default_factory=Ledger)
    name: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        self._n_calls = 0
        self._made: WeakSet[Future] = WeakSet()  # whoever holds them, a traceback for instance
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._fetched: list[Future] = []
        self._silences = 0
        self._slowness = 1  # of results on their way

    def begin(self) -> None:
        """Wait for workers, and look at their versions.

        Raises
        ------
        ClusterError
            A worker has another dtrees.
        WorkerLostError
            There is none.
        """
        look(self.client, self.ledger, await_workers(self.client))
        with suppress(NoAnswerError):  # workers that are too busy to answer
            check_versions(self.client)

    def end(self) -> None:
        """Leave nothing on the cluster."""
        self._fetched = []
        release(self.client, self._made)
        look(self.client, self.ledger)

    # ---------------------------------------------------------------------------------------------
    # workers

    def workers(self) -> dict[str, int]:
        """Threads of every worker by address; waits for the first worker when there is none."""
        found = await_workers(self.client)
        self.ledger.see_workers(found)
        return found

    def machines(self) -> list[tuple[int | None, int]]:
        """Bytes of each worker, None where it has no limit, and its threads."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return [(worker.get("memory_limit") or None, worker["nthreads"]) for worker in workers]

    def limits(self) -> list[int]:
        """Bytes of the workers that have a limit."""
        return [limit for limit, _ in self.machines() if limit is not None]

    def holders(self, futures: Sequence[Future]) -> list[Sequence[str]]:
        """Addresses of the workers that have the result of each future."""
        try:
            who_has = patiently(self.client, partial(self.client.who_has, list(futures)))
        except CancelledError as error:
            raise LostResultsError("Results were lost with their workers.") from error
        return [who_has.get(future.key, ()) for future in futures]

    # ---------------------------------------------------------------------------------------------
    # what is submitted

    def compute(self, collections: Sequence[Any]) -> list[Future]:
        """Submit graphs; returns their futures in this order."""
        return one_kind_at_a_time(collections, lambda same: self._keep(*self.client.compute(same)))

    def send(self, name: str, value: Any) -> Future:
        """A value as a task of this name that holds it, so that it can be computed again."""
        key = self.key(name)
        with sending_data():
            return self._guarded(partial(self.client.submit, itself, value, key=key, pure=False))

    def submit(self, call: Call) -> Future:
        """Submit a task."""
        submit = partial(
            self.client.submit,
            call.function,
            *call.arguments,
            key=self.key(call.name),
            pure=False,
            workers=list(call.workers) or None,
            allow_other_workers=bool(call.workers),
        )
        return self._guarded(submit)

    def key(self, name: str) -> tuple[str, int]:
        """A new key; the scheduler remembers the groups of keys of all fits, which are few so."""
        self._n_calls += 1
        return f"{name}-{self.name}", self._n_calls

    def _guarded(self, submit: Callable[[], Future]) -> Future:
        """A future that is submitted."""
        try:
            (future,) = self._keep(submit())
        except CancelledError as error:  # what it needs
            raise LostResultsError("Results were lost with their workers.") from error
        except Exception:
            check_open(self.client)
            raise
        return future

    def _keep(self, *futures: Future) -> list[Future]:
        """Futures, all of which are released in the end."""
        self._made.update(futures)
        return list(futures)

    # ---------------------------------------------------------------------------------------------
    # what comes

    def results(
        self, calls: Iterable[Call], at_once: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Do tasks.

        Parameters
        ----------
        calls : iterable of Call
            Taken as tasks are submitted.
        at_once : int or None, default=None
            So many are under way at a time, and results come as soon as they are there. None: all
            of them are, and their results come together, in one answer of the cluster; it forgets
            them when the next tasks are submitted, as a client that has just sent a message holds
            the next one back for 10 ms (`distributed.batched.BatchedSend`).

        Yields
        ------
        (int, object)
            Place of a call and its result, as they come.

        Raises
        ------
        LostResultsError, ClusterError
        BaseException
            What a task raises.
        """
        waiting = enumerate(calls)
        pending: dict[Future, tuple[int, Call]] = {}

        def submit(place: int, call: Call) -> None:
            future = self.submit(call)
            pending[future] = place, call
            future.add_done_callback(self._ended.put)

        try:
            more = True
            good: dict[Future, None] = {}
            while more or pending:
                while more and (at_once is None or len(pending) < at_once):
                    taken = next(waiting, None)
                    more = taken is not None
                    if taken is not None:
                        submit(*taken)
                self._fetched = []
                if not pending:
                    return
                for future in self._await(pending):
                    if future.status == "error":
                        place, call = pending.pop(future)
                        submit(place, self._again(call, future))
                    elif future.status == "finished":
                        good[future] = None
                if at_once is None and len(good) < len(pending):
                    continue
                results = self._fetch(list(good))
                if results is None:
                    self._listen(good)
                    good = {}
                    continue
                if at_once is None:
                    self._fetched = list(good)
                for future, result in zip(good, results, strict=True):
                    place, _ = pending.pop(future)
                    yield place, result
                good = {}
        finally:
            release(self.client, pending)

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until futures of graphs are finished; raises as `results`."""
        pending = dict.fromkeys(futures)
        self._listen(futures)
        while pending:
            for future in self._await(pending):
                if future.status == "error":
                    raise self._reason(future)
                del pending[future]

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Results of futures that are finished, in their order."""
        while True:
            found = self._fetch(futures)
            if found is not None:
                return found

    def _listen(self, futures: Iterable[Future]) -> None:
        for future in futures:
            future.add_done_callback(self._ended.put)

    def _reason(self, future: Future) -> BaseException:
        """Why a part of a graph has failed."""
        reason: BaseException = patiently(self.client, future.exception)
        if not isinstance(reason, sys.modules["distributed"].KilledWorker):
            return reason
        lost = LostResultsError(
            "Workers have died while they coded a part of the table. They may have too little "
            "memory: see their logs, or make the chunks of X smaller."
        )
        lost.__cause__ = reason
        return lost

    def _again(self, call: Call, future: Future) -> Call:
        """A task whose workers have died, to be submitted again; raises what it raised."""
        reason = patiently(self.client, future.exception)
        if not isinstance(reason, sys.modules["distributed"].KilledWorker):
            raise reason
        if reason.task != future.key:  # it is of no use without what it needs
            raise LostResultsError(f"Workers have died in a task {reason.task}.") from reason
        if call.deaths + 1 == ATTEMPTS:
            raise WorkerLostError(
                f"Workers have died {ATTEMPTS} times over in a task '{call.name}'. They may have "
                "too little memory: see their logs."
            ) from reason
        logger.info("a task %r is submitted again: %s", call.name, reason)
        self.ledger.counts["retries"] += 1
        return replace(call, workers=(), deaths=call.deaths + 1)

    def _await(self, pending: dict[Future, Any]) -> list[Future]:
        """Some futures that have ended, of those that are waited for."""
        began = looked = time.monotonic()
        patience = _patience()
        while True:
            let_through()
            try:
                ended = [self._ended.get(timeout=SLICE)]
            except queue.Empty:
                check_open(self.client)
                now = time.monotonic()
                if now > looked + WATCH:
                    await_workers(self.client)
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

    def _fetch(self, futures: Sequence[Future]) -> list[Any] | None:
        """Results of tasks that are done; None: a worker has not given them in time."""
        if not futures:
            return []
        try:
            gather = partial(self.client.gather, list(futures))
            found: list[Any] = patiently(self.client, gather, self._slowness * _patience())
            self._slowness = 1
        except NoAnswerError:
            self._slowness *= 2
            self._remove_hanging()
            return None
        except (
            CancelledError,
            OSError,
            KeyError,
            sys.modules["distributed"].KilledWorker,
        ) as error:
            raise LostResultsError("Results were lost on their way to the client.") from error
        return found

    def _remove_hanging(self) -> None:
        """Take workers out of the cluster that have been silent for long, though they have work.

        What the scheduler would do after "distributed.scheduler.worker-ttl", five minutes as a
        rule. Those do not answer, and have not told the scheduler either that they are alive: a
        task that holds a worker's interpreter for a while is none.
        """
        try:
            answering = set(check_versions(self.client))
        except NoAnswerError as error:
            self._silences += 1
            if self._silences == SILENCES:
                raise WorkerLostError(
                    f"No worker of the Dask cluster has answered for {SILENCES} times "
                    f"{_patience():g} seconds. See their logs."
                ) from error
            return
        self._silences = 0
        hanging = sorted(set(await_workers(self.client)) - answering)
        if not hanging:
            return
        patience = _patience()

        async def remove(dask_scheduler: Any) -> list[str]:  # by value: dtrees need not be there
            now = time.time()
            silent = [
                address
                for address in hanging
                if address in dask_scheduler.workers
                and now - dask_scheduler.workers[address].last_seen > patience
            ]
            for address in silent:
                await dask_scheduler.remove_worker(address, stimulus_id="dtrees-hanging")
            return silent

        with suppress(Exception):
            ask = partial(self.client.run_on_scheduler, remove)
            removed = patiently(self.client, ask, GOODBYE)
            if removed:
                logger.warning(
                    "workers do not answer, and are taken out of the cluster: %s", removed
                )


def itself(value: Any) -> Any:
    """A value as the result of a task, which can be computed again."""
    return value


def _patience() -> float:
    """Seconds without a result until workers are asked whether they are there."""
    return seconds_of("dtrees.worker-patience", PATIENCE)
