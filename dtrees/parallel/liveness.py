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
    some are paused                                         what they have not begun goes to others
    no worker has the resources that tasks ask for,         `WorkerLostError`
    twice in a row: one may be started again
    nobody answers, or all are paused, `SILENT_ROUNDS`      `WorkerLostError`
    times and so many times "dtrees.worker-patience"

The last one holds at the start, too: nothing is sent before somebody has answered. A wait is
measured from the last answer that told of a worker that hangs: how long that took to find out says
nothing about how long tasks take, and the next one that hangs is found as soon as the first.

A task that holds the interpreter of its worker keeps it from answering. That costs copies; if it
lasts as long as the patience, it costs the worker.

Dask pauses a worker whose memory is nearly full (80 %). It answers, sends results and ends what it
has begun, but it begins nothing. Dask leaves it what it has to do, of which others may wait for
some. So the scheduler is asked to give all of that to others. It is waited for only if it has begun
a task of the fit: one of somebody else, which may even wait for the fit, does not help.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.client import (
    POLL_SECONDS,
    RELEASE_SECONDS,
    Paused,
    address_of,
    ask_workers,
    await_workers,
    call_with_timeout,
    check_open,
    has_places,
    seconds_of,
)
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import raise_deferred_interrupt

if TYPE_CHECKING:
    from distributed import Client, Future

    from dtrees.parallel.tasks import Call

PATIENCE = 5.0  # seconds without a result until workers are asked, at least
SLOWER = 4  # or so many times the longest wait so far
COPIES = 4  # of a task that are under way, at most
SILENT_ROUNDS = 4  # of all workers, each as long as the patience, until they are given up
ASK_SECONDS = 1.0  # at least, between two questions before anything is sent
HANG = (
    "has answered for {}. They hang, or tasks hold their interpreters: see their logs, or wait "
    "longer with dask.config.set({{'dtrees.worker-patience': '5 minutes'}})."
)
ALL_PAUSED = (
    "has begun a task for {}: {}. Dask pauses a worker whose memory is nearly full "
    "('distributed.worker.memory.pause'). Release what is persisted or scattered there, or start "
    "workers with a larger memory_limit, or more of them."
)
NO_ROOM = (
    "The Dask cluster at {} has lost all workers that have room for the table: start workers with "
    "a larger memory_limit."
)

logger = logging.getLogger(__name__)

Holders = Mapping[Any, frozenset[str]]


class Answers(NamedTuple):
    """Addresses of workers that can work, that do not answer, and that answer and are paused."""

    answering: frozenset[str]
    hanging: frozenset[str]  # and are left in the cluster
    paused: frozenset[str] = frozenset()

    @property
    def sending(self) -> frozenset[str]:
        """Those that send results."""
        return self.answering | self.paused


class AllPausedError(NoAnswerError):
    """Of all workers that could do a task, none begins one."""


@dataclass(eq=False)
class Liveness:
    """How long nothing has come from a cluster, and what its workers say to that.

    `patience` are the seconds to wait until workers are asked, once a wait has begun. `hanging` are
    the workers that did not answer when work began.
    """

    client: Client
    stats: FitStatistics
    patience: float = field(default=0.0, init=False)
    hanging: frozenset[str] = field(default=frozenset(), init=False)
    _most: float = field(default=0.0, init=False)  # seconds that a worker may be silent
    _longest: float | None = field(default=None, init=False)  # wait so far
    _began: float = field(default=0.0, init=False)
    _asked: float = field(default=0.0, init=False)
    _n_silences: int = field(default=0, init=False)
    _silent_since: float = field(default=0.0, init=False)  # where nobody has answered
    _unmet: frozenset[str] = field(default=frozenset(), init=False)  # what no worker had last time

    def begin(self) -> None:
        """Begin to wait."""
        self._began = self._asked = time.monotonic()
        self._n_silences, self._unmet = 0, frozenset()
        self._most = self.patience = seconds_of("dtrees.worker-patience")
        if self._longest is not None:
            self.patience = min(self._most, max(PATIENCE, SLOWER * self._longest))

    def hear(self) -> None:
        """Something has come."""
        self._longest = max(self._longest or 0.0, time.monotonic() - self._began)

    @property
    def is_over(self) -> bool:
        """Whether it is time to ask, perhaps for the last time."""
        now = time.monotonic()
        is_last = self._n_silences > 0 and now > self._silent_since + SILENT_ROUNDS * self._most
        return is_last or now > self._asked + self.patience

    def await_answer(self) -> list[str]:
        """Addresses of the workers that can work, once there is one.

        Raises ClusterError where a worker has another dtrees, and WorkerLostError where nobody has
        answered, or could work, for long.
        """
        self.begin()
        while True:
            began = time.monotonic()
            if (found := self._answering()) is not None:
                self.hanging = frozenset(await_workers(self.client)).difference(found)
                return [address for address, paused in found.items() if paused is None]
            await_workers(self.client)
            while time.monotonic() < began + min(ASK_SECONDS, self._most):
                raise_deferred_interrupt()
                time.sleep(POLL_SECONDS)

    def ask(self, keys: Collection[Any] = ()) -> Answers | None:
        """Ask workers whether they are there, and take out those that hang; None: nobody can work.

        What tasks of these keys wait for on a worker that is paused goes to others. Raises
        WorkerLostError where nobody has answered, or could work, for long; or will ever do a task.
        """
        found = self._answering(keys)
        self._asked = time.monotonic()
        self.patience = min(self._most, 2 * self.patience)
        if found is None:
            self._began = self._asked
            return None
        hanging = frozenset(await_workers(self.client)).difference(found)
        paused = frozenset(address for address, why in found.items() if why is not None)
        if hanging or paused:
            self._began = self._asked
        hanging -= self._remove(hanging)
        return Answers(frozenset(found) - paused, hanging, paused)

    def _answering(self, keys: Collection[Any] = ()) -> dict[str, Paused | None] | None:
        """Workers that answer, as `ask_workers`; None: nobody can work, and not for long."""
        began = time.monotonic()
        try:
            found = ask_workers(self.client)
            if keys or None not in found.values():  # at the start, one that can work is enough
                self._check_able(found, *self._relieve(found, keys))
        except NoAnswerError as error:
            if self._n_silences == 0:
                self._silent_since = began
            self._n_silences += 1
            is_over = time.monotonic() > self._silent_since + SILENT_ROUNDS * self._most
            if is_over and self._n_silences >= SILENT_ROUNDS:
                times = f"{SILENT_ROUNDS} times {self._most:g} seconds"
                what = ALL_PAUSED if isinstance(error, AllPausedError) else HANG
                raise WorkerLostError(
                    f"No worker of the Dask cluster at {address_of(self.client)} "
                    f"{what.format(times, error)}"
                ) from error
            logger.info("no worker can work: %s", error)
            return None
        self._n_silences = 0
        return found

    def _check_able(
        self,
        found: Mapping[str, Paused | None],
        asked: Mapping[str, Collection[str]],
        at_work: Collection[str],
    ) -> None:
        """Raise where nobody can do a task; `asked` and `at_work` are as from `_relieve`.

        A worker that a nanny starts again is not there for a while. So what nobody has is an error
        when it is missed for the second time in a row.
        """
        able = {address for address, paused in found.items() if paused is None}.union(at_work)
        before = self._unmet
        self._unmet = frozenset(words for words, there in asked.items() if not there)
        for words in sorted(self._unmet & before):
            if not has_places():  # only workers with room for the table are asked for then
                raise WorkerLostError(NO_ROOM.format(address_of(self.client)))
            raise WorkerLostError(
                f"No worker of the Dask cluster at {address_of(self.client)} has what tasks "
                f"ask for: {words}. Start one that has it, or fit outside of dask.annotate."
            )
        for there in [*filter(None, asked.values()), found]:
            if found and able.isdisjoint(there):
                states = {each: found.get(each) for each in sorted(there)}
                paused = [f"{each} is {state.why}" for each, state in states.items() if state]
                raise AllPausedError("; ".join(paused[:3]) or "they hang")

    def _relieve(
        self, found: Mapping[str, Paused | None], keys: Collection[Any]
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Let the scheduler give to others what paused workers have not begun of some tasks.

        Returns what other tasks ask for that can run nowhere, and who has it; and the paused
        workers that have begun one of these tasks.
        """
        begun = {address: paused.doing for address, paused in found.items() if paused is not None}

        def relieve(dask_scheduler: Any) -> Any:  # by value: dtrees need not be there
            tasks, workers = dask_scheduler.tasks, dask_scheduler.workers
            needed, to_see = set(), [tasks[key] for key in keys if key in tasks]
            while to_see:
                task = to_see.pop()
                if task not in needed:
                    needed.add(task)
                    to_see.extend(task.waiting_on or ())
            at = {task.key: task.processing_on.address for task in needed if task.processing_on}
            at_work = {address for key, address in at.items() if key in begun.get(address, ())}
            moved = {}
            if dask_scheduler.running:  # what is released goes to who is there
                begins = {key: begun.get(address, (key,)) for key, address in at.items()}
                moved = {key: "released" for key, keys in begins.items() if key not in keys}
                dask_scheduler.transitions(moved, stimulus_id="dtrees-paused")
            # queued tasks wait for one to end: there may be none once a worker is taken out
            dask_scheduler.stimulus_queue_slots_maybe_opened(stimulus_id="dtrees-queued")
            asked = {}
            for task in needed:
                if task.state != "no-worker" or task.loose_restrictions:
                    continue
                there = set(workers)
                places = {*(task.worker_restrictions or ()), *(task.host_restrictions or ())}
                if places:
                    there = {each for each in workers if {each, workers[each].host} & places}
                resources = dict(task.resource_restrictions or {})
                for name, amount in resources.items():
                    there = {
                        each for each in there if workers[each].resources.get(name, 0) >= amount
                    }
                words = [f"resources {resources}"] if resources else []
                words += [f"workers {sorted(places)}"] if places else []
                if words:
                    asked[" and ".join(words)] = sorted(there)
            return len(moved), asked, list(at_work)

        if not keys:
            return {}, []
        try:
            ask = partial(self.client.run_on_scheduler, relieve)
            n_moved, asked, at_work = call_with_timeout(self.client, ask, RELEASE_SECONDS)
        except Exception as error:  # it is asked again
            check_open(self.client)
            logger.warning("the scheduler does not look after tasks that wait: %r", error)
            return {}, list(begun)
        if n_moved:
            logger.info("%d tasks go from paused workers to others: %s", n_moved, sorted(begun))
            self.stats.counts["retries"] += n_moved
        return asked, at_work

    def _remove(self, hanging: Collection[str]) -> frozenset[str]:
        """Take workers out of the cluster that the scheduler has not heard of for long."""
        patience = self._most

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
                ask = partial(self.client.run_on_scheduler, remove)
                removed = call_with_timeout(self.client, ask, RELEASE_SECONDS)
        if removed:
            logger.warning("workers do not answer, and are taken out of the cluster: %s", removed)
            self.stats.see_workers(await_workers(self.client))
        return frozenset(removed)

    def holders(self, futures: Collection[Future]) -> tuple[Holders, Holders]:
        """Workers that have a task to do, and workers that have its result, by key."""
        processing = call_with_timeout(self.client, self.client.processing)
        doing = {key: frozenset({address}) for address, keys in processing.items() for key in keys}
        who_has = call_with_timeout(self.client, partial(self.client.who_has, list(futures)))
        return doing, {key: frozenset(addresses) for key, addresses in who_has.items()}


def copies_of(
    pending: Mapping[Future, tuple[int, Call]],
    doing: Holders,
    done: Holders,
    answers: Answers,
    *,
    is_stuck: bool,
) -> list[tuple[int, Call]]:
    """Tasks that other workers should do as well, one for each number at most.

    `doing` and `done` are as `Liveness.holders`. `is_stuck`: tasks are held up by workers that
    hang. Otherwise workers are just slow, and only one without work can do better. Nobody gets a
    task that is under way `COPIES` times.
    """
    several = Counter(number for number, _ in pending.values())
    copies: dict[int, Call] = {}
    for future, (number, call) in pending.items():
        here = done.get(future.key, frozenset())
        held = doing.get(future.key, frozenset()) | here
        if here & answers.sending or not (held or is_stuck) or several[number] >= COPIES:
            continue
        before = copies[number].held if number in copies else call.held
        copies[number] = replace(call, held=held | before)
    first, second = answers.answering.difference(*doing.values()), frozenset[str]()
    if is_stuck:
        first = second = answers.answering
    return [
        (number, replace(call, workers=tuple(sorted(others))))
        for number, call in copies.items()
        if (others := first - call.held or second)
    ]
