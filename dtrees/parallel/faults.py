"""Faults of tasks: what has happened to one, and how often it may happen.

They are told in several ways, and a task that kills its workers may be told of in each of them::

    `KilledWorker` of the task            it has killed so many workers that the scheduler gives it
                                          up ("distributed.scheduler.allowed-failures")
    `KilledWorker` of what it needs       the same of another task, whose result it waits for
    a result that cannot be fetched       it was asked for `ATTEMPTS` times
    a result that is lost                 somebody has cancelled it, or restarted the cluster

So the first three are counted together, by task, from the beginning of the work to its end. What
comes of other tasks in between does not matter, and nor does what is made again for all of them.
The `ATTEMPTS`-th fault of a task ends the work. A result that is lost is nobody's fault: what the
tasks need is made again `RESTARTS` times because of one of them, and `RESTARTS` times without a
result of any between. Parts of graphs have no count of their own: their faults are such restarts.

Where the scheduler gives up a task for want of workers, the work ends at once: the user has told it
to, by "distributed.scheduler.no-workers-timeout".

A result that this process cannot read (it has too little memory, say) would be as bad the next
time. The error that says so is raised as it is, once it has been fetched `ATTEMPTS` times.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.calls import LOST, Call, LostResultsError
from dtrees.parallel.client import call_with_timeout, check_open
from dtrees.parallel.fit_statistics import FitStatistics

if TYPE_CHECKING:
    from distributed import Client, Future

ATTEMPTS = 4  # of a task whose workers die, and to fetch a result
RESTARTS = 4  # of what tasks need: because of one of them, and without a result between
FAILED = ("error", "cancelled", "lost")  # statuses of a future that has no result
ON_THE_WAY = (OSError, KeyError, CancelledError, NoAnswerError)  # of what may come another time

logger = logging.getLogger(__name__)


class Missed(NamedTuple):
    """A result that could not be fetched, and why."""

    error: Exception | None


class Faults:
    """Faults of the tasks of a client, told to `stats`."""

    def __init__(self, client: Client, stats: FitStatistics) -> None:
        self._client = client
        self._stats = stats
        self._n_restarts = 0  # since the last result
        # by name and number of a task, and by kind
        self._n_faults: Counter[tuple[str, int, str]] = Counter()

    def begin(self) -> None:
        """Work begins: its tasks have no faults."""
        self._n_restarts = 0
        self._n_faults.clear()

    def hear(self) -> None:
        """A result has come that is not thrown away with others."""
        self._n_restarts = 0

    def restart(self, error: LostResultsError) -> None:
        """What is lost is to be made again; raises WorkerLostError where that was too often."""
        check_open(self._client)
        self._n_restarts += 1
        if self._n_restarts > RESTARTS:
            raise WorkerLostError(
                f"The Dask cluster has lost its data {self._n_restarts} times, without a result "
                "in between. Its workers may have too little memory, or are restarted: see their "
                f"logs. {error}"
            ) from error
        logger.info("what is lost is made again: %s", error)
        self._stats.counts["restarts"] += 1

    def of_part(self, future: Future, missed: Missed | None = None) -> LostResultsError:
        """Why a part of a graph has no result; raises what it has raised."""
        reason = self._reason(future, missed)
        if missed is not None:
            lost = LostResultsError(f"Results cannot be fetched: {reason!r}.")
        elif reason is None:
            lost = LostResultsError(LOST)
        else:
            lost = LostResultsError(
                "Workers have died while they coded a part of the table. They may have too little "
                "memory: see their logs, or make the chunks of X smaller."
            )
        lost.__cause__ = reason
        return lost

    def of_call(self, number: int, call: Call, future: Future, missed: Missed | None) -> Call:
        """A task that has no result, to be submitted again; raises what it has raised.

        Raises LostResultsError where what it needs has to be made again, and WorkerLostError where
        it has failed too often.
        """
        reason = self._reason(future, missed)
        if missed is not None:
            kind, advice = "a fetch", "See the logs of the workers."
        else:
            kind = "a loss" if reason is None else "a death"
            advice = "Workers may have too little memory, or are restarted: see their logs."
        self._n_faults[call.name, number, kind] += 1
        n_of_kind = self._n_faults[call.name, number, kind]
        n_faults = sum(self._n_faults[call.name, number, each] for each in ("a fetch", "a death"))
        times = f" {n_of_kind} times over" if n_of_kind > 1 else ""
        if missed is not None:
            what = f"The result of {call} could not be fetched{times}: {reason!r}."
        elif reason is None:
            what = f"The result of {call}, or what it needs, was lost{times}."
        elif reason.task == future.key:
            what = f"Workers have died{times} in {call}."
        else:
            what = f"Workers have died{times} in a task {reason.task}, which {call} needs."
        if kind != "a loss" and n_of_kind < n_faults:
            what += f" It has failed {n_faults} times."
        if n_of_kind > RESTARTS if kind == "a loss" else n_faults >= ATTEMPTS:
            raise WorkerLostError(f"{what} {advice}") from reason
        if missed is None and getattr(reason, "task", None) != future.key:
            raise LostResultsError(what) from reason
        logger.info("%s is submitted again: %s", call, what)
        self._stats.counts["retries"] += 1
        return replace(call, workers=())

    def _reason(self, future: Future, missed: Missed | None) -> Any:
        """What workers have died of, or a fetch has failed of; None: the result was lost.

        Raises what the task has raised, and errors of this process.
        """
        check_open(self._client)
        if missed is not None:
            if missed.error is not None and not isinstance(missed.error, ON_THE_WAY):
                raise missed.error
            return missed.error or NoAnswerError("no worker has sent it")
        if future.status != "error":
            return None
        reason = call_with_timeout(self._client, future.exception)
        scheduler = sys.modules["distributed.scheduler"]
        if isinstance(reason, scheduler.KilledWorker):
            return reason
        if isinstance(reason, scheduler.NoWorkerError | scheduler.NoValidWorkerError):
            raise WorkerLostError(
                f"{reason} That is what dask.config says under "
                "'distributed.scheduler.no-workers-timeout'."
            ) from reason
        raise reason
