"""Tasks on the workers of a cluster, seen from the client: the one loop, and the one set of rules.

Tasks are pure: where one runs, and how often, makes no difference to its result. So whatever
happens to one, it can be done again. (Those of members, which wait for each other, are bound to
their workers: `dtrees.parallel.epochs`.) ::

    submitted ──▶ on the workers ──ended──▶ fetched ──▶ a result

    it is blamed for the death of     it is submitted under a new key
    several workers (`KilledWorker`)
    its result cannot be fetched      it is fetched again, then it is submitted under a new key
    its result, or what it needs,     what it needs is made again, and the tasks that are left are
    is lost                           submitted again
    one of these, again and again     `WorkerLostError`, see `Faults`
    nothing comes for a while         workers are asked, see `dtrees.parallel.liveness`: those that
                                      hang leave the cluster, and copies of what they have, or of
                                      what is slow, go to others; of several copies the first counts
    a worker is paused                what it has not begun goes to others
    a task is bound to its worker     nobody else gets it, and its faults are those of what it needs
    no worker is left                 the client waits for one, then raises `WorkerLostError`
    the scheduler is lost             `SchedulerLostError`
    Ctrl-C, or an error in a task     the client releases what is left; a task that runs ends
                                      between two slices of its work, after a tenth of a second

Three threads take part. The event loop tells which tasks have ended. Threads of ours fetch their
results, so that a lost result or a worker that hangs does not stop the others. The caller reads
what has come, and looks at the connection meanwhile. Whoever has work gives its tasks (`Call`), and
says how what they need is made again.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

import dask

import dtrees
from dtrees.exceptions import ClusterError, NoAnswerError, WorkerLostError
from dtrees.parallel.client import (
    POLL_SECONDS,
    address_of,
    await_workers,
    call_with_timeout,
    check_open,
    has_places,
    look,
    machines,
    other_version,
    release,
    results_of,
    seconds_of,
    sending_data,
)
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import raise_deferred_interrupt
from dtrees.parallel.lazy_collections import check_persisted, one_kind_at_a_time
from dtrees.parallel.liveness import NO_ROOM, Liveness, copies_of
from dtrees.typing import Task, serial

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

ATTEMPTS = 4  # of a task whose workers die, and to fetch a result
RESTARTS = 4  # of what tasks need: because of one of them, and without a result between
FAILED = ("error", "cancelled")  # statuses of a future that has no result
AGAIN = ("pending", "lost")  # of one whose result a worker took with it: it is computed again
ON_THE_WAY = (OSError, KeyError, CancelledError, NoAnswerError)  # of what may come another time
WATCH_SECONDS = 2.0  # seconds without a result until the workers are counted
ENDED: Any = object()  # what has come is that a task has ended
LOST = "Results were lost with their workers."

logger = logging.getLogger(__name__)


class LostResultsError(ClusterError):
    """Results that went with their workers; the work can be done again."""


@dataclass(frozen=True, eq=False)
class Call:
    """A task that is to be done, as often as it takes."""

    name: str  # of its kind
    function: Callable[..., Any]
    arguments: tuple[Any, ...]  # at least one
    workers: tuple[str, ...] = ()  # that have what it needs, or should do it, if they can
    about: str = ""  # what it does, for messages
    held: frozenset[str] = frozenset()  # workers that had it when nothing came any more
    is_bound: bool = False  # to the one worker that it is for

    def __str__(self) -> str:
        return f"a task '{self.name}'" + (f" ({self.about})" if self.about else "")


def run_call(version: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function, as long as somebody waits for it; ClusterError: this dtrees is another one.

    `version` is that of the client: a worker may have joined after all others were asked.
    """
    from distributed import Reschedule, get_worker

    if version != dtrees.__version__:
        raise other_version(get_worker().address, dtrees.__version__, version)
    try:
        return function(*arguments)
    except CancelledError:  # nobody waits for the rest
        raise Reschedule from None


def identity(value: Any) -> Any:
    """A value as the result of a task, which can be computed again."""
    return value


class TaskRunner:
    """Runs the work of this task of Dask in its thread, as long as somebody waits for it."""

    def __init__(self) -> None:
        from distributed import get_worker

        worker = get_worker()
        self.cancelled = TaskCancelled(worker.state, worker.get_current_task())

    def __call__(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """Run them one after the other."""
        return serial(tasks)


@dataclass(frozen=True)
class TaskCancelled:
    """An event that is set when nobody waits for a task of Dask any more."""

    state: Any  # of `distributed.worker_state_machine`
    key: Any  # str or tuple

    def is_set(self) -> bool:
        """Whether the task is cancelled; a look at a dictionary."""
        task = self.state.tasks.get(self.key)
        return task is None or task.state == "cancelled"


class Missed(NamedTuple):
    """A result that could not be fetched, and why."""

    error: Exception | None


@dataclass(eq=False)
class Faults:
    """Faults of the tasks of a work: what has happened to one, and how often it may happen.

    They are told in several ways, and a task that kills its workers may be told of in each::

        `KilledWorker` of the task           it has killed so many workers that the scheduler gives
                                             it up ("distributed.scheduler.allowed-failures")
        `KilledWorker` of what it needs      another task has, whose result it waits for
        a result that cannot be fetched      it was asked for `ATTEMPTS` times
        a result that is lost                somebody has cancelled it, or restarted the cluster

    So the first three are counted together, by task, from the beginning of the work to its end.
    What comes of other tasks in between does not matter, and nor does what is made again for all of
    them. The `ATTEMPTS`-th fault of a task ends the work. A result that is lost is nobody's fault:
    what the tasks need is made again `RESTARTS` times because of one of them, and `RESTARTS` times
    without a result of any between. Parts of graphs have no count: their faults are such restarts.

    Where the scheduler gives up a task for want of workers, the work ends at once: the user has
    told it to, by "distributed.scheduler.no-workers-timeout".

    A result that this process cannot read (it has too little memory, say) would be as bad the next
    time. The error that says so is raised as it is, once it has been fetched `ATTEMPTS` times.
    """

    client: Client
    stats: FitStatistics  # told of them
    n_restarts: int = 0  # since the last result that was not thrown away with others
    _n_faults: Counter[tuple[str, int, str]] = field(default_factory=Counter)  # by task and kind

    def restart(self, error: LostResultsError) -> None:
        """What is lost is to be made again; raises WorkerLostError where that was too often."""
        check_open(self.client)
        self.n_restarts += 1
        if self.n_restarts > RESTARTS:
            raise WorkerLostError(
                f"The Dask cluster has lost its data {self.n_restarts} times, without a result "
                "in between. Its workers may have too little memory, or are restarted: see their "
                f"logs. {error}"
            ) from error
        logger.info("what is lost is made again: %s", error)
        self.stats.counts["restarts"] += 1

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
        self.stats.counts["retries"] += 1
        return replace(call, workers=())

    def _reason(self, future: Future, missed: Missed | None) -> Any:
        """What workers have died of, or a fetch has failed of; None: the result was lost.

        Raises what the task has raised, and errors of this process.
        """
        check_open(self.client)
        if missed is not None:
            if missed.error is not None and not isinstance(missed.error, ON_THE_WAY):
                raise_copy(missed.error)
            return missed.error or NoAnswerError("no worker has sent it")
        if future.status != "error":
            return None
        reason = call_with_timeout(self.client, future.exception)
        scheduler = sys.modules["distributed.scheduler"]
        if isinstance(reason, scheduler.KilledWorker):
            return reason
        if isinstance(reason, scheduler.NoWorkerError | scheduler.NoValidWorkerError):
            raise WorkerLostError(
                f"{reason} That is what dask.config says under "
                "'distributed.scheduler.no-workers-timeout'."
            ) from reason
        raise_copy(reason)


def raise_copy(error: BaseException) -> NoReturn:
    """Raise an error that a future keeps, too.

    The error itself would get a traceback, whose frames have the future: results would stay on the
    workers until Python collects garbage.
    """
    try:
        raised = copy(error).with_traceback(error.__traceback__)
    except Exception:  # of another constructor
        raised = error
    try:
        raise raised from error.__cause__
    finally:
        del raised  # which this frame, in its traceback, has


Submit = Callable[[Sequence[tuple[int, Call]]], None]


@dataclass(eq=False)
class Tasks:
    """Submits tasks to a cluster, looks at its workers, and yields what comes."""

    client: Client  # synchronous
    stats: FitStatistics = field(default_factory=FitStatistics)  # told of what is lost
    collections: Sequence[Any] = ()  # of the user, that tasks are made from
    left_out: Callable[[], Collection[str]] = frozenset  # workers that must not get any of them

    def __post_init__(self) -> None:
        self.name = uuid4().hex  # in the keys
        self._n_calls = 0
        self._able: set[str] = set()  # which were not left out, where some were
        self._liveness = Liveness(self.client, self.stats)
        self._answering: list[str] | None = None  # where others do not
        self._made: WeakSet[Future] = WeakSet()  # whoever holds them, a traceback for instance
        self._away: WeakSet[Future] = WeakSet()  # lost, and not yet computed again
        self._values: WeakKeyDictionary[Future, tuple[str, Any]] = WeakKeyDictionary()  # sent
        self._faults = Faults(self.client, self.stats)
        self._events: queue.SimpleQueue[tuple[Future, Any]] = queue.SimpleQueue()
        self._fetches: WeakKeyDictionary[Future, tuple[float, float]] = WeakKeyDictionary()
        self._misses: WeakKeyDictionary[Future, int] = WeakKeyDictionary()
        self._done: list[Future] = []  # their results are here, and not forgotten by the cluster

    def begin(self) -> None:
        """Wait for workers that answer, and look at their versions.

        Raises ClusterError where a worker has another dtrees, and WorkerLostError where there is
        none, or none answers.
        """
        self.stats.counts.update(retries=0, restarts=0)
        found = await_workers(self.client)
        look(self.client, self.stats, found)
        answering = self._liveness.await_answer()
        some_hang = set(found).difference(answering)
        self._answering = answering if answering and some_hang else None

    def end(self) -> None:
        """Leave nothing on the cluster."""
        self._done = []
        release(self.client, self._made)
        look(self.client, self.stats)

    # ---------------------------------------------------------------------------------------------
    # workers

    def workers(self) -> dict[str, int]:
        """Threads of every worker by address; waits for the first worker when there is none."""
        found = await_workers(self.client)
        self.stats.see_workers(found)
        return found

    def answering(self) -> dict[str, int]:
        """Threads of the workers that have answered at the beginning, if some have not.

        Of all, where those have gone since.
        """
        there, own = self.workers(), self._answering
        return {each: n for each, n in there.items() if own is None or each in own} or there

    def hanging(self) -> frozenset[str]:
        """Workers that have not answered at the beginning."""
        return self._liveness.hanging

    def able(self, left_out: Collection[str] | None = None) -> dict[str, int]:
        """Threads of the workers that are not left out; None: who is left out is asked again."""
        left_out = self.left_out() if left_out is None else left_out
        return {each: n for each, n in self.workers().items() if each not in left_out}

    def room(self) -> int | None:
        """Memory of the smallest worker that has a limit."""
        return min((limit for limit, _ in self.machines().values() if limit), default=None)

    def machines(self) -> dict[str, tuple[int | None, int]]:
        """Bytes and threads of all workers, as `dtrees.parallel.client.machines`."""
        self.workers()
        return machines(self.client)

    def _places(self, workers: Sequence[str] | None) -> dict[str, Any]:
        """What says that tasks go to these workers, if they can, and to none that is left out.

        Nothing where the user says where. Tasks that may go anywhere else go there without the
        resources that they need, at which the scheduler breaks.
        """
        if has_places():
            return {}
        left_out = self.left_out()
        if not left_out:
            return {"workers": list(workers), "allow_other_workers": True} if workers else {}
        able = self.able(left_out).keys()
        if not able:
            raise WorkerLostError(NO_ROOM.format(address_of(self.client)))
        self._able = able & set(workers or ()) or set(able)
        return {"workers": sorted(self._able), "allow_other_workers": False}

    def holders(self, futures: Sequence[Future]) -> list[Sequence[str]]:
        """Addresses of the workers that have the result of each future."""
        try:
            who_has = call_with_timeout(self.client, partial(self.client.who_has, list(futures)))
        except CancelledError as error:
            raise self._lost() from error
        return [who_has.get(future.key, ()) for future in futures]

    # ---------------------------------------------------------------------------------------------
    # what is submitted

    def send(self, name: str, value: Any) -> Future:
        """A value as a task of this name that holds it, so that it can be computed again."""
        self._n_calls += 1
        with sending_data(), self._submitting():
            future = self.client.submit(
                identity,
                value,
                key=f"{name}-{self.name}-{self._n_calls}",
                pure=False,
                # those that answer, if they can: if it were always said, and they had all gone by
                # then, it would wait for them for ever
                **self._places(self._answering),
            )
        self._made.add(future)
        self._values[future] = name, value
        return future

    def submit(self, calls: Sequence[Call]) -> list[Future]:
        """Submit tasks; those of a kind that go to the same workers together."""
        futures: dict[int, Future] = {}
        kinds: dict[Any, list[int]] = {}
        for place, call in enumerate(calls):
            kind = call.name, call.function, call.workers, call.is_bound
            kinds.setdefault(kind, []).append(place)
        for (name, function, workers, is_bound), places in kinds.items():
            where = self._places(workers)
            if is_bound:
                where = {"workers": list(workers), "allow_other_workers": False}
            with self._submitting():
                made = self.client.map(
                    partial(run_call, dtrees.__version__, function),
                    *zip(*(calls[place].arguments for place in places), strict=True),
                    key=[self.key(name) for _ in places],
                    pure=False,
                    **where,
                )
            self._made.update(made)
            futures.update(zip(places, made, strict=True))
        return [futures[place] for place in range(len(calls))]

    def key(self, name: str) -> tuple[str, int]:
        """A new key; the scheduler remembers the groups of keys of all fits, which are few so."""
        self._n_calls += 1
        return f"{name}-{self.name}", self._n_calls

    @contextmanager
    def _submitting(self) -> Iterator[None]:
        """LostResultsError where what tasks need is lost; SchedulerLostError for other reasons."""
        try:
            yield
        except CancelledError as error:
            raise self._lost() from error
        except Exception:
            check_open(self.client)
            raise

    def hand_over(self, futures: Iterable[Future]) -> None:
        """Leave futures to whoever keeps them beyond the end."""
        self._made.difference_update(futures)

    def take_over(self, future: Future, name: str, value: Any) -> None:
        """Use a value that somebody has sent, and keeps."""
        self._values[future] = name, value

    def with_values_anew(
        self,
        calls: Sequence[tuple[int, Call]],
        doing: Mapping[Any, frozenset[str]],
        hanging: frozenset[str],
    ) -> list[tuple[int, Call]]:
        """Tasks whose arguments are sent once more, where they were sent from here.

        Those that no worker has or gets (`doing`, by key), or one of `hanging`, from which others
        may be fetching them.
        """
        future_type = sys.modules["distributed"].Future
        values = dict.fromkeys(
            value
            for _, call in calls
            for value in call.arguments
            if isinstance(value, future_type) and value in self._values
        )
        anew: dict[Any, Future] = {}
        for value, have_it in zip(values, self.holders(list(values)), strict=True):
            at = doing.get(value.key, frozenset()).union(have_it)
            if not at or at & hanging:
                anew[value] = self.send(*self._values[value])

        def renewed(call: Call) -> Call:
            arguments = (
                anew.get(each, each) if isinstance(each, future_type) else each
                for each in call.arguments
            )
            return replace(call, arguments=tuple(arguments))

        return [(place, renewed(call)) for place, call in calls]

    # ---------------------------------------------------------------------------------------------
    # results

    def results(
        self,
        calls: Iterable[Call],
        *,
        numbers: Iterable[int] | None = None,
        together: bool = False,
        heed: Callable[[Mapping[str, int]], object] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Do tasks; yields the number of a call and its result, as they come.

        `calls` have `numbers`, or are counted. Raises LostResultsError, ClusterError, or what a
        task raises.

        `together`: results are fetched when all tasks have ended. The cluster forgets them when the
        next tasks are submitted: a client that has just sent a message holds the next one back for
        10 ms (`distributed.batched.BatchedSend`). `heed` is told of the workers that there are,
        where nothing has come for a while; it may raise.
        """
        pending: dict[Future, tuple[int, Call]] = {}
        ended: dict[Future, None] = {}
        n_copies: Counter[int] = Counter()

        def submit(some: Sequence[tuple[int, Call]]) -> None:
            futures = self.submit([call for _, call in some])
            for future, (number, call) in zip(futures, some, strict=True):
                pending[future] = number, call
                n_copies[number] += 1
                future.add_done_callback(self._see_end)

        try:
            submit(list(zip(count() if numbers is None else numbers, calls, strict=False)))
            self._done = []
            while pending:
                for future, result in self._await(pending, submit, heed):
                    if future not in pending:  # another copy was faster
                        continue
                    number, call = pending[future]
                    if result is ENDED and future.status not in FAILED:
                        ended[future] = None
                    elif result is ENDED or isinstance(result, Missed):
                        ended.pop(future, None)
                        again = self._again(number, call, future, result)
                        del pending[future]  # until now it is released where that raises
                        submit([(number, again)])
                    else:
                        same = [future]
                        if n_copies.pop(number) > 1:
                            same = [each for each in pending if pending[each][0] == number]
                        for each in same:
                            del pending[each]
                            ended.pop(each, None)
                        self._done += [future] if together else []
                        release(self.client, [each for each in same if each is not future])
                        yield number, result
                left = {number for number, _ in pending.values()}
                if not together or {pending[future][0] for future in ended} == left:
                    self._fetch(ended, self._liveness.patience)
                    ended = {}
        finally:
            release(self.client, pending)

    def all_results(
        self,
        calls: Sequence[Call],
        heed: Callable[[Mapping[str, int]], object] | None = None,
    ) -> list[Any]:
        """Results of tasks in their order, fetched together; see `results`."""
        found = dict(self.results(calls, together=True, heed=heed))
        return [found[number] for number in range(len(calls))]

    def each(
        self,
        n: int,
        calls: Callable[[Sequence[int]], Iterable[Call]],
        again: Callable[[], object] = lambda: None,
    ) -> Iterator[tuple[int, Any]]:
        """Results of tasks by number, as they come; where some are lost, those left are done again.

        `calls` makes the tasks of some numbers, and `again` makes again what they take for granted.
        """
        left = dict.fromkeys(range(n))
        is_lost = False
        self._faults = Faults(self.client, self.stats)
        while left:
            numbers = list(left)
            try:
                if is_lost:
                    again()
                for number, result in self.results(calls(numbers), numbers=numbers):
                    del left[number]
                    self._faults.n_restarts = 0
                    yield number, result
            except LostResultsError as error:
                self._restart(error)
                is_lost = True

    def run(self, work: Callable[[], T], again: Callable[[], object] = lambda: None) -> T:
        """Do work; where results are lost, do it again, once `again` has made what it needs."""
        is_lost = False
        self._faults = Faults(self.client, self.stats)
        while True:
            try:
                if is_lost:
                    again()
                found = work()
            except LostResultsError as error:
                self._restart(error)
                is_lost = True
            else:
                self._faults.n_restarts = 0
                return found

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute collections of any kinds; returns their futures, all of which are finished."""

        def submit(same: list[Any]) -> list[Future]:
            futures: list[Future] = self.client.compute(same)
            self._made.update(futures)
            return futures

        self.workers()
        with self.span():  # not while collections are made: data frames warn of annotations
            futures = one_kind_at_a_time(tasks, submit)
        self.wait(futures)
        return futures

    def asked(self, name: str, held: Sequence[Any], function: Callable[[Any], T]) -> list[T]:
        """What a function says of each result, where it is; small."""
        return self.all_results([Call(name, function, (each,)) for each in held])

    @contextmanager
    def span(self) -> Iterator[None]:
        """What is held together: the scheduler remembers each span, but not one inside another."""
        if "span" in dask.get_annotations():
            yield
            return
        with sys.modules["distributed"].span("dtrees.fit"):
            yield

    def as_argument(self, held: Any) -> Any:
        """A future as an argument of other tasks: it is one."""
        return held

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until futures of graphs are finished; raises as `results`."""
        pending = dict.fromkeys(futures)
        for future in pending:
            future.add_done_callback(self._see_end)
        while pending:
            for future, _ in self._await(pending):
                if future.status in FAILED:
                    raise self._faults.of_part(future)
                pending.pop(future, None)

    def fetch(self, futures: Sequence[Future]) -> list[Any]:
        """Results of futures that are finished, in their order."""
        pending = dict.fromkeys(futures)
        found: dict[Future, Any] = {}
        self._fetch(pending)
        while pending:
            for future, result in self._await(pending):
                if result is ENDED and future.status not in FAILED:
                    self._fetch([future])  # it was lost, and is computed again
                elif result is ENDED or isinstance(result, Missed):
                    raise self._faults.of_part(future, None if result is ENDED else result)
                else:
                    found[future] = result
                    pending.pop(future, None)
        return [found[future] for future in futures]

    # ---------------------------------------------------------------------------------------------
    # the loop

    def _await(
        self,
        pending: Any,
        submit: Submit | None = None,
        heed: Callable[[Mapping[str, int]], object] | None = None,
    ) -> list[tuple[Future, Any]]:
        """What has come of some futures: they have ended (`ENDED`), or their results are here.

        Or these cannot be fetched (`Missed`). With `submit`, `pending` is a dict of their numbers
        and calls, of which it submits copies.
        """
        looked = time.monotonic()
        self._liveness.begin()
        while True:
            raise_deferred_interrupt()
            try:
                events = [self._events.get(timeout=POLL_SECONDS)]
                while not self._events.empty():
                    events.append(self._events.get_nowait())
            except queue.Empty:
                check_open(self.client)
                for future in [each for each in self._away if each.status != "lost"]:
                    self._away.discard(future)
                    self._see_end(future)
                now = time.monotonic()
                if now > looked + WATCH_SECONDS:
                    there = self.workers()
                    if heed is not None:
                        heed(there)
                    looked = time.monotonic()
                if self._liveness.is_over:
                    self._look_after(pending, submit)
                continue
            found = [event for event in events if event[0] in pending]
            if any(isinstance(it, Missed) or each.status in AGAIN for each, it in found):
                found = self._without_missed(found)
            if found:
                self._liveness.hear()
                return found

    def _without_missed(self, events: Sequence[tuple[Future, Any]]) -> list[tuple[Future, Any]]:
        """Events of futures that have ended, or are here; what is missed is waited for again."""
        found, missed = [], []
        for future, result in events:
            is_missed = isinstance(result, Missed)
            if future.status in AGAIN and (result is ENDED or is_missed):
                if future.status == "pending":
                    future.add_done_callback(self._see_end)
                else:  # its callbacks would be called at once
                    self._away.add(future)
                continue
            if is_missed and future.status == "finished":
                self._misses[future] = self._misses.get(future, 0) + 1
                if self._misses[future] < ATTEMPTS:
                    missed.append(future)
                else:
                    found.append((future, result))
            else:
                found.append((future, ENDED if is_missed else result))
        self._fetch(missed)
        return found

    def _see_end(self, future: Future) -> None:
        self._events.put((future, ENDED))

    def _fetch(self, futures: Iterable[Future], seconds: float | None = None) -> None:
        """Fetch results in a thread of their own, which may wait for a worker that hangs.

        After so many seconds, or "dtrees.worker-patience", they are fetched once more.
        """
        if some := list(futures):
            seconds = seconds or seconds_of("dtrees.worker-patience")
            for future in some:  # when that began, and how long it may take
                _, before = self._fetches.get(future, (0.0, seconds / 2))
                self._fetches[future] = time.monotonic(), 2 * before
            threading.Thread(
                target=self._gather, args=(some,), name="dtrees-fetch", daemon=True
            ).start()

    def _gather(self, futures: list[Future]) -> None:
        found: dict[int, Any] = {}
        missed = Missed(None)
        try:
            found = results_of(self.client, futures)
        except Exception as error:
            missed = Missed(error)
        for number, future in enumerate(futures):
            result = found.get(number, missed)
            if result is None and future.status in FAILED:  # what it has for those that fail
                result = ENDED
            self._events.put((future, result))

    def _look_after(self, pending: Any, submit: Submit | None) -> None:
        """Nothing comes: find out why, and give what hangs or is slow to others."""
        answers = self._liveness.ask([future.key for future in pending])
        if answers is None:
            return
        if self._able and self._able.isdisjoint(self.workers()) and self.able():
            raise self._lost()  # no worker is left that may do the tasks, but others have come
        answers = answers._replace(answering=answers.answering.difference(self.left_out()))
        try:
            doing, done = self._liveness.holders(pending)
        except CancelledError:  # all workers have died; the event loop tells of each task
            return
        self._fetch(
            [
                future
                for future in pending
                if future.status == "finished"
                and future in self._fetches
                and answers.sending & done.get(future.key, frozenset())
                and (answers.hanging or time.monotonic() > sum(self._fetches[future]))
            ]
        )
        if submit is None:
            return
        is_stuck = bool(answers.hanging) or not doing
        free = {future: own for future, own in pending.items() if not own[1].is_bound}
        copies = copies_of(free, doing, done, answers, is_stuck=is_stuck)
        if copies and is_stuck:  # what they need may be where it does not come from
            self._answering = sorted(answers.answering)
            copies = self.with_values_anew(copies, doing, answers.hanging)
        for _, call in copies:
            logger.info("%s does not come from %s", call, sorted(call.held))
        self.stats.counts["retries"] += len(copies)
        submit(copies)

    # ---------------------------------------------------------------------------------------------
    # what is lost

    def _lost(self) -> LostResultsError:
        """An error to be raised, where it is not that the client has lost its scheduler."""
        check_open(self.client)
        return LostResultsError(LOST)

    def _restart(self, error: LostResultsError) -> None:
        """Get ready to make again what is lost."""
        check_open(self.client)
        check_persisted(self.collections, self.client)
        self._faults.restart(error)
        self.end()
        self.begin()

    def _again(self, number: int, call: Call, future: Future, result: Any) -> Call:
        """A task that has failed, to be submitted again; raises as `Faults.of_call`."""
        missed = result if isinstance(result, Missed) else None
        if call.is_bound:
            raise self._faults.of_part(future, missed)
        again = self._faults.of_call(number, call, future, missed)
        if missed is None:
            return again
        others = set(self.workers()).difference(*self.holders([future]))
        return replace(again, workers=tuple(sorted(others)))
