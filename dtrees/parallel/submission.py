"""How tasks are submitted to a cluster, and what is known of its workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

import dtrees
from dtrees.exceptions import ClusterError, WorkerLostError
from dtrees.parallel.client import (
    address_of,
    await_workers,
    call_with_timeout,
    check_open,
    check_version,
    has_places,
    look,
    release,
    sending_data,
)
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.lazy_collections import one_kind_at_a_time
from dtrees.parallel.liveness import NO_ROOM, Liveness
from dtrees.typing import Task, serial

if TYPE_CHECKING:
    from distributed import Client, Future


LOST = "Results were lost with their workers."


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

    def __str__(self) -> str:
        return f"a task '{self.name}'" + (f" ({self.about})" if self.about else "")


def preferring(workers: Sequence[str] | None) -> dict[str, Any]:
    """What says that tasks go to these workers, if they can; nothing where the user says where.

    Tasks that may go anywhere else go there without the resources that they need, at which the
    scheduler breaks.
    """
    if not workers or has_places():
        return {}
    return {"workers": list(workers), "allow_other_workers": True}


@dataclass(eq=False)
class Submitter:
    """Submits tasks to a cluster, and looks at its workers."""

    client: Client  # synchronous
    stats: FitStatistics = field(default_factory=FitStatistics)  # told of what is lost
    name: str = field(default_factory=lambda: uuid4().hex)  # in the keys
    collections: Callable[[], Sequence[Any]] = tuple  # of the user, that tasks are made from
    left_out: Callable[[], Collection[str]] = frozenset  # workers that must not get any of them

    def __post_init__(self) -> None:
        self._n_calls = 0
        self._able: set[str] = set()  # which were not left out, where some were
        self._liveness = Liveness(self.client, self.stats)
        self._answering: list[str] | None = None  # where others do not
        self._made: WeakSet[Future] = WeakSet()  # whoever holds them, a traceback for instance
        self._values: WeakKeyDictionary[Future, tuple[str, Any]] = WeakKeyDictionary()  # sent

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
        release(self.client, self._made)
        look(self.client, self.stats)

    # ---------------------------------------------------------------------------------------------
    # workers

    def workers(self) -> dict[str, int]:
        """Threads of every worker by address; waits for the first worker when there is none."""
        found = await_workers(self.client)
        self.stats.see_workers(found)
        return found

    def able(self) -> dict[str, int]:
        """The same, but for those that are left out."""
        return self._but(self.left_out())

    def _but(self, left_out: Collection[str]) -> dict[str, int]:
        return {each: n for each, n in self.workers().items() if each not in left_out}

    def _places(self, workers: Sequence[str] | None) -> dict[str, Any]:
        """What says that tasks go to these workers, if they can, and to none that is left out."""
        if has_places() or not (left_out := self.left_out()):
            return preferring(workers)
        able = self._but(left_out).keys()
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

    def compute(self, collections: Sequence[Any]) -> list[Future]:
        """Submit graphs; returns their futures in this order."""
        return one_kind_at_a_time(collections, lambda same: self._keep(self.client.compute(same)))

    def send(self, name: str, value: Any) -> Future:
        """A value as a task of this name that holds it, so that it can be computed again."""
        self._n_calls += 1
        submit = partial(
            self.client.submit,
            identity,
            value,
            key=f"{name}-{self.name}-{self._n_calls}",
            pure=False,
            # those that answer, if they can: if it were always said, and they had all gone by then,
            # it would wait for them for ever
            **self._places(self._answering),
        )
        with sending_data():
            (future,) = self._guarded(lambda: [submit()])
        self._values[future] = name, value
        return future

    def submit(self, calls: Sequence[Call]) -> list[Future]:
        """Submit tasks; those of a kind that go to the same workers together."""
        futures: dict[int, Future] = {}
        kinds: dict[Any, list[int]] = {}
        for place, call in enumerate(calls):
            kinds.setdefault((call.name, call.function, call.workers), []).append(place)
        for (name, function, workers), places in kinds.items():
            submit = partial(
                self.client.map,
                partial(run_call, dtrees.__version__, function),
                *zip(*(calls[place].arguments for place in places), strict=True),
                key=[self.key(name) for _ in places],
                pure=False,
                **self._places(workers),
            )
            futures.update(zip(places, self._guarded(submit), strict=True))
        return [futures[place] for place in range(len(calls))]

    def key(self, name: str) -> tuple[str, int]:
        """A new key; the scheduler remembers the groups of keys of all fits, which are few so."""
        self._n_calls += 1
        return f"{name}-{self.name}", self._n_calls

    def _guarded(self, submit: Callable[[], Iterable[Future]]) -> list[Future]:
        """Futures that are submitted."""
        try:
            return self._keep(submit())
        except CancelledError as error:  # what they need
            raise self._lost() from error
        except Exception:
            check_open(self.client)
            raise

    def _keep(self, futures: Iterable[Future]) -> list[Future]:
        """Futures, all of which are released in the end."""
        found = list(futures)
        self._made.update(found)
        return found

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

    def _lost(self) -> LostResultsError:
        """An error to be raised, where it is not that the client has lost its scheduler."""
        check_open(self.client)
        return LostResultsError(LOST)


T = TypeVar("T")


def run_call(version: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function, as long as somebody waits for it; ClusterError: this dtrees is another one.

    `version` is that of the client: a worker may have joined after all others were asked.
    """
    from distributed import Reschedule, get_worker

    if version != dtrees.__version__:
        check_version(get_worker().address, dtrees.__version__, version)
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
