"""Epochs of a growth: who the members are, what they are told to do, and what ends an epoch.

The client sends the members a task each, and hears of all of them when these end, after about a
second of work. What is so far is the checkpoint, and it is here. Where a member dies, hangs, leaves
or joins, the epoch ends; the next one begins on the workers that are there.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.client import RELEASE_SECONDS, call_with_timeout
from dtrees.parallel.exchange import Epoch, EpochEndedError, end_epoch, is_alive, open_epoch
from dtrees.parallel.tasks import RESTARTS, Call, LostResultsError, Tasks

if TYPE_CHECKING:
    from distributed import Client

SLICE_SECONDS = 1.0  # of work that members do in one go, about; and, where these are many,
MEMBER_SECONDS = 0.02  # for each of them: a task takes the scheduler some two milliseconds
TURN_SECONDS = 1.0  # until it is looked at the client, while others have their turn

Begin = Callable[[], tuple[dict[str, list[Any]], Any]]
Threads = Callable[[], dict[str, int]]  # of workers

logger = logging.getLogger(__name__)


def slice_seconds(n_members: int) -> float:
    """Seconds of work that members do in one go, about."""
    return max(SLICE_SECONDS, MEMBER_SECONDS * n_members)


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


class Epochs:
    """The epochs of a growth, one after the other.

    With `is_alone` there is only one member.
    """

    def __init__(self, tasks: Tasks, is_alone: bool = False) -> None:
        self._tasks = tasks
        self._turns = None if is_alone else Turns(tasks.client)  # it waits for nobody
        self._epoch: Epoch | None = None
        self._workers: dict[str, int] = {}  # that there were when it began

    def results(self, begin: Begin, call: Call, members: Threads | None = None) -> list[Any]:
        """What members return, by number, in this epoch or one of the next.

        The function of `call` is called on each, with the epoch, the number of the member, and the
        arguments. The first call of an epoch has two more: the member's blocks, and what all of
        them begin with. `begin` places the blocks, and returns those of each member by the address
        of its worker, and the other. `members` are workers whose coming and going ends the epoch;
        None: all of them.

        Raises LostResultsError where what they begin with has to be made again, and WorkerLostError
        where epochs have ended again and again.
        """
        n_ended, members = 0, members or self._tasks.workers
        while True:
            try:
                with nullcontext() if self._turns is None else self._turns.turn():
                    return self._in_epoch(begin, call, members)
            except EpochEndedError as error:
                n_ended += 1
                self.end_epoch()
                logger.info("an epoch has ended: %s", error)
                if n_ended > RESTARTS:
                    raise WorkerLostError(
                        f"Workers of the Dask cluster were lost {n_ended} times, without a "
                        f"result in between. See their logs. {error}"
                    ) from error
                self._tasks.begin()
            except BaseException:
                self.end_epoch()
                raise

    def _in_epoch(self, begin: Begin, call: Call, members: Threads) -> list[Any]:
        if self._epoch is not None and members() != self._workers:
            logger.info("workers have come or gone: an epoch ends")
            self.end_epoch()
        blocks: dict[str, list[Any]] = {}
        sent: Any = None
        if self._epoch is None:
            blocks, sent = self._begun(begin, members)
        epoch = self._epoch
        assert epoch is not None
        calls = []
        for rank, each in enumerate(epoch.addresses):
            own = (epoch, rank, *call.arguments, *((blocks[each], sent) if blocks else ()))
            calls.append(replace(call, arguments=own, workers=(each,), is_bound=True))
        try:
            return self._tasks.all_results(calls, self._check_members)
        except LostResultsError as error:  # what is lost is made again as the next one begins
            raise EpochEndedError(f"a task of a member is lost: {error}") from error

    def _check_members(self, workers: Mapping[str, int]) -> None:
        """Raise EpochEndedError where a member is gone, or paused for long: nobody does its task.

        Those that do not answer are not this one's concern.
        """
        assert self._epoch is not None
        gone = set(self._epoch.addresses) - workers.keys()
        if gone:
            raise EpochEndedError(f"{min(gone)} has left the cluster.")
        try:
            alive = self._run_on(self._epoch.addresses, is_alive)
        except (NoAnswerError, OSError):
            return
        idle = [address for address, each in alive.items() if each is False]
        if idle:
            raise EpochEndedError(f"{min(idle)} begins no task.")

    def _begun(self, begin: Begin, members: Threads) -> tuple[dict[str, list[Any]], Any]:
        """Begin an epoch, and let workers know who the members are."""
        workers = members()  # those that join meanwhile are in the next one
        blocks, sent = begin()
        self._workers = workers
        self._epoch = Epoch(uuid4().hex, tuple(sorted(blocks)))
        try:
            self._run_on(self._epoch.addresses, open_epoch)
        except (OSError, NoAnswerError) as error:
            raise EpochEndedError(f"a member does not answer: {error!r}") from error
        self._tasks.stats.counts["epochs"] += 1
        self._tasks.stats.counts["members"] = len(blocks)
        logger.info("epoch %s: %d members", self._epoch.name, len(blocks))
        return blocks, sent

    def end_epoch(self) -> None:
        """End the epoch, if there is one; the next results are those of another."""
        if self._epoch is not None and self._tasks.client.status == "running":
            with suppress(Exception):  # who does not hear of it finds out
                self._run_on(self._epoch.addresses, end_epoch)
        self._epoch = None

    def _run_on(self, addresses: Sequence[str], function: Callable[..., Any]) -> dict[str, Any]:
        """What a function of the epoch returns on workers that are there, by address."""
        assert self._epoch is not None
        client = self._tasks.client
        run = partial(client.run, function, self._epoch.name, on_error="ignore")
        there = sorted(set(addresses) & self._tasks.workers().keys())
        found: dict[str, Any] = call_with_timeout(
            client, partial(run, workers=there), RELEASE_SECONDS
        )
        return found

    def end(self) -> None:
        """Leave nothing on the cluster."""
        try:
            if self._turns is not None:
                self._turns.end()
        finally:
            self.end_epoch()
