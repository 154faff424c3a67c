"""Workers that hang or are slow: when they are asked, and who gets what they have.

A worker that hangs (it is stopped, its machine is gone) neither answers nor breaks its connection.
The scheduler waits for it for "distributed.scheduler.worker-ttl", five minutes as a rule. So

    nothing comes for `SLOWER` times the longest wait       all workers are asked; then, while
    so far, `PATIENCE` seconds at least, and                nothing comes, after twice as long,
    "dtrees.worker-patience" at most, and at first          and so on
    some do not answer                                      tasks go to others, too, and what was
                                                            sent for them is sent once more
    and the scheduler has not heard of them for             they are taken out of the cluster, and
    "dtrees.worker-patience"                                the scheduler gives what they had to
                                                            others
    all answer                                              tasks that are under way go, too, to
                                                            workers that have nothing to do
    nobody answers, `SILENT_ROUNDS` times and               `WorkerLostError`
    so many times "dtrees.worker-patience"

The last one holds at the start, too: nothing is sent before somebody has answered. A wait is
measured from the last answer that told of a worker that hangs: how long that took to find out says
nothing about how long tasks take, and the next one that hangs is found as soon as the first.

A task that holds the interpreter of its worker keeps it from answering. That costs copies; if it
lasts as long as the patience, it costs the worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.client import (
    RELEASE_SECONDS,
    address_of,
    await_workers,
    call_with_timeout,
    check_versions,
    seconds_of,
)
from dtrees.parallel.fit_statistics import FitStatistics

if TYPE_CHECKING:
    from distributed import Client, Future

    from dtrees.parallel.submission import Call

WORKER_PATIENCE = "30s"  # unless dask.config says otherwise, under "dtrees.worker-patience"
PATIENCE = 5.0  # seconds without a result until workers are asked, at least
SLOWER = 4  # or so many times the longest wait so far
SILENT_ROUNDS = 4  # of all workers, each as long as the patience, until they are given up

logger = logging.getLogger(__name__)

Holders = Mapping[Any, frozenset[str]]


class Answers(NamedTuple):
    """Addresses of workers that answer, and of those that do not and are left in the cluster."""

    answering: frozenset[str]
    hanging: frozenset[str]


class Liveness:
    """How long nothing has come from a cluster, and what its workers say to that.

    `patience` are the seconds to wait until workers are asked.
    """

    def __init__(self, client: Client, stats: FitStatistics) -> None:
        self._client = client
        self._stats = stats
        self._longest: float | None = None  # wait so far
        self.begin()

    def begin(self) -> None:
        """Begin to wait."""
        self._began = self._asked = time.monotonic()
        self._n_silences = 0
        self._silent_since = 0.0  # where nobody has answered
        most = worker_patience()
        self.patience = most
        if self._longest is not None:
            self.patience = min(most, max(PATIENCE, SLOWER * self._longest))

    def hear(self) -> None:
        """Something has come."""
        self._longest = max(self._longest or 0.0, time.monotonic() - self._began)

    @property
    def is_over(self) -> bool:
        """Whether it is time to ask, perhaps for the last time."""
        now = time.monotonic()
        is_last = self._n_silences > 0 and now > self._silent_since + _longest_silence()
        return is_last or now > self._asked + self.patience

    def await_answer(self) -> list[str]:
        """Addresses of the workers that answer, once there is one.

        Raises ClusterError where a worker has another dtrees, and WorkerLostError where nobody has
        answered for long.
        """
        self.begin()
        while (answering := self._answering()) is None:
            await_workers(self._client)
        return answering

    def ask(self) -> Answers | None:
        """Ask workers whether they are there, and take out those that hang; None: nobody answers.

        Raises WorkerLostError where nobody has answered for long.
        """
        answering = self._answering()
        self._asked = time.monotonic()
        self.patience = min(worker_patience(), 2 * self.patience)
        if answering is None:
            self._began = self._asked
            return None
        hanging = frozenset(await_workers(self._client)).difference(answering)
        if hanging:
            self._began = self._asked
        hanging -= self._remove(hanging)
        return Answers(frozenset(answering), hanging)

    def _answering(self) -> list[str] | None:
        """Addresses of the workers that answer; None: nobody does, and not for long."""
        began = time.monotonic()
        try:
            found = check_versions(self._client)
        except NoAnswerError as error:
            if self._n_silences == 0:
                self._silent_since = began
            self._n_silences += 1
            is_over = time.monotonic() > self._silent_since + _longest_silence()
            if is_over and self._n_silences >= SILENT_ROUNDS:
                raise WorkerLostError(
                    f"No worker of the Dask cluster at {address_of(self._client)} has answered for "
                    f"{SILENT_ROUNDS} times {worker_patience():g} seconds. They hang, or tasks "
                    "hold their interpreters: see their logs, or wait longer with "
                    "dask.config.set({'dtrees.worker-patience': '5 minutes'})."
                ) from error
            logger.info("no worker answers: %s", error)
            return None
        self._n_silences = 0
        return found

    def _remove(self, hanging: Collection[str]) -> frozenset[str]:
        """Take workers out of the cluster that the scheduler has not heard of for long."""
        patience = worker_patience()

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

        removed: list[str] = []
        if hanging:
            with suppress(Exception):
                ask = partial(self._client.run_on_scheduler, remove)
                removed = call_with_timeout(self._client, ask, RELEASE_SECONDS)
        if removed:
            logger.warning("workers do not answer, and are taken out of the cluster: %s", removed)
            self._stats.see_workers(await_workers(self._client))
        return frozenset(removed)

    def holders(self, futures: Collection[Future]) -> tuple[Holders, Holders]:
        """Workers that have a task to do, and workers that have its result, by key."""
        processing = call_with_timeout(self._client, self._client.processing)
        doing = {key: frozenset({address}) for address, keys in processing.items() for key in keys}
        who_has = call_with_timeout(self._client, partial(self._client.who_has, list(futures)))
        return doing, {key: frozenset(addresses) for key, addresses in who_has.items()}


def copies_of(
    pending: Mapping[Future, tuple[int, Call]],
    doing: Holders,
    done: Holders,
    answering: frozenset[str],
    *,
    is_stuck: bool,
) -> list[tuple[int, Call]]:
    """Tasks that other workers should do as well, one for each number at most.

    `doing` and `done` are as `Liveness.holders`. `is_stuck`: tasks are held up by workers that
    hang. Otherwise workers are just slow, and only one without work can do better.
    """
    copies: dict[int, Call] = {}
    for future, (number, call) in pending.items():
        here = done.get(future.key, frozenset())
        held = doing.get(future.key, frozenset()) | here
        if here & answering or not (held or is_stuck):
            continue
        before = copies[number].held if number in copies else call.held
        copies[number] = replace(call, held=held | before)
    first, second = answering.difference(*doing.values()), frozenset[str]()
    if is_stuck:
        first = second = answering
    return [
        (number, replace(call, workers=tuple(sorted(others))))
        for number, call in copies.items()
        if (others := first - call.held or second)
    ]


def worker_patience() -> float:
    """Seconds that a worker may be silent."""
    return seconds_of("dtrees.worker-patience", WORKER_PATIENCE)


def _longest_silence() -> float:
    """Seconds without an answer of anyone, until all workers are given up."""
    return SILENT_ROUNDS * worker_patience()
