"""The Dask cluster: whether there is one to work on, and whether it can do the work.

A client is only ever found, never made. `distributed` is not imported to look for one: who has a
client has imported it.

Calls that a cluster may never answer are made in a thread of their own (`call_with_timeout`), while
the caller waits in slices: Ctrl-C comes through, and a connection that is lost ends the wait.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

import dask
from dask.base import get_scheduler
from dask.utils import format_time, parse_timedelta

import dtrees
from dtrees._forks import lock_of_process
from dtrees.exceptions import ClusterError, NoAnswerError, SchedulerLostError, WorkerLostError
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import raise_deferred_interrupt

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

RELEASE_SECONDS = 5.0  # seconds that cancelling may take
POLL_SECONDS = 0.1  # seconds between two looks at the client
ANSWER_SECONDS = 5.0  # seconds that a worker has to say which dtrees it has
TIMES = {  # unless dask.config says otherwise
    "dtrees.workers-timeout": "30s",  # until a first worker comes, or the scheduler comes back
    "dtrees.worker-patience": "30s",  # that a worker may be silent
    "dtrees.checkpoint-every": "10s",  # at least, between two files
}
CLUSTER_SCHEDULERS = ("dask.distributed", "distributed")  # names of it in dask.config

logger = logging.getLogger(__name__)

_sending = lock_of_process()
# since when clients look for their scheduler
_lost_since: WeakKeyDictionary[Client, float] = WeakKeyDictionary()
_n_sending = 0  # contexts of `sending_data`
_before_sending: Any = None


def current_client(forced: bool = False) -> Client | None:
    """The client that Dask would compute with here, or None; makes none and imports nothing.

    `forced`: a scheduler that is set in ``dask.config`` and has no client is disregarded.
    """
    client_class = getattr(sys.modules.get("distributed"), "Client", None)
    if client_class is None:  # not loaded, or another thread imports it
        return None
    scheduler = dask.config.get("scheduler", None)
    if isinstance(scheduler, client_class):
        return scheduler
    by_name = isinstance(scheduler, str) and scheduler.lower() in CLUSTER_SCHEDULERS
    if scheduler is not None and not by_name and not forced:
        return None
    try:
        return client_class.current()
    except ValueError:
        return None


def has_seceded() -> bool:
    """Whether this task's thread has left its worker's pool, as within ``worker_client()``."""
    pool = sys.modules.get("distributed.threadpoolexecutor")
    return pool is not None and not getattr(pool.thread_state, "proceed", True)


def this_worker() -> Any:
    """The worker that runs this task; None outside tasks."""
    get_worker = getattr(sys.modules.get("distributed"), "get_worker", None)
    if get_worker is None:  # not loaded, or another thread imports it
        return None
    try:
        worker = get_worker()
    except ValueError:
        return None
    return worker if worker.monitor.proc.pid == os.getpid() else None  # none of a forked process


@contextmanager
def cluster_client() -> Iterator[Client]:
    """The client that gets the work, in the replicated regime.

    In a task, its thread leaves the worker's pool as long as the context lasts, so that tasks can
    run there which it waits for.
    """
    if this_worker() is not None:
        with sys.modules["distributed"].worker_client() as client:
            yield client
    else:
        client = current_client(forced=True)
        assert client is not None
        yield client


def is_inherited(client: Client) -> bool:
    """Whether another process has made the client, from which this one was forked.

    Nothing answers it here, as threads are not forked. Its id tells its process.
    """
    try:
        made_in = UUID(client.id[-36:]).clock_seq
    except (AttributeError, ValueError):  # another release of Dask may name clients otherwise
        return False
    return made_in != os.getpid() % 2**14  # as many bits has it


def check_open(client: Client) -> None:
    """Raise a `SchedulerLostError` when the client is of no use.

    It is closed, another process has made it, or it has no scheduler for long. A client tries to
    connect again for as long as its ``timeout``, which may be hours. It is not waited for where its
    cluster is closed, nor for longer than for a worker.
    """
    if is_inherited(client):
        raise SchedulerLostError(
            "This process was forked from the one that has made the Dask client, and cannot use "
            "it. Connect a dask.distributed.Client of this process, or give data in memory with "
            "regime='local'."
        )
    if client.status not in ("connecting", "closing", "closed"):
        _lost_since.pop(client, None)
        return
    if client.status == "connecting":
        since = _lost_since.setdefault(client, time.monotonic())
        status = getattr(getattr(client, "cluster", None), "status", None)
        is_over = time.monotonic() > since + seconds_of("dtrees.workers-timeout")
        if getattr(status, "name", "") not in ("closing", "closed", "failed") and not is_over:
            return
    raise SchedulerLostError(
        "The Dask client is closed, or has lost its scheduler. Connect a new "
        "dask.distributed.Client, or fit with regime='local'. (A fit waits for a scheduler to come "
        "back for as long as Client(timeout=...) says, 30 seconds as a rule, and not longer than "
        "dask.config says under 'dtrees.workers-timeout'.)"
    )


def scheduler_of(collections: Iterable[Any]) -> tuple[Callable[..., Any], Client | None]:
    """The ``get`` with which Dask would compute collections, and its client, if it has one.

    Raises ClusterError where the client is asynchronous, closed, or another process has made it.
    """
    try:
        get = get_scheduler(collections=list(collections))
    except RuntimeError as error:
        raise ClusterError(
            f"A fit of a Dask collection waits for its results, and Dask cannot compute them here: "
            f"{error} If the current client was made with asynchronous=True, fit in a thread with "
            "a synchronous Client of the same scheduler, or under "
            "dask.config.set(scheduler='threads')."
        ) from error
    client_class = getattr(sys.modules.get("distributed"), "Client", None)
    client = getattr(get, "__self__", None)
    if client_class is None or not isinstance(client, client_class):
        return get, None
    check_open(client)
    return get, client


def call_with_timeout(client: Client, call: Callable[[], T], seconds: float | None = None) -> T:
    """Result of a call that waits for the cluster: for so long, or while the client is open.

    The call runs in a thread of its own, which is left behind when nobody waits for it any more.
    Raises SchedulerLostError if the client was closed meanwhile, NoAnswerError if there was no
    answer in time, or what the call raises.
    """
    outcome: ThreadFuture[T] = ThreadFuture()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    began = time.monotonic()
    threading.Thread(target=work, name="dtrees-call", daemon=True).start()
    while not wait([outcome], POLL_SECONDS).done:
        raise_deferred_interrupt()
        check_open(client)
        if seconds is not None and time.monotonic() > began + seconds:
            raise NoAnswerError(f"The Dask cluster has not answered for {seconds:g} seconds.")
    try:
        return outcome.result()
    except Exception:
        check_open(client)  # calls of a closed client fail in many ways
        raise


def seconds_of(key: str) -> float:
    """A time of `TIMES` or ``dask.config``, in words or not; ValueError names a key without one."""
    given = dask.config.get(key, TIMES[key])
    try:
        found: float = parse_timedelta(given)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"dask.config has {key!r} = {given!r}; it must be a time, such as {TIMES[key]!r}."
        ) from error
    return found


@contextmanager
def sending_data() -> Iterator[None]:
    """In the context Dask does not warn of large graphs: they hold data that is meant to go.

    Its configuration is that of all threads. The first of them in such a context changes it, and
    the last one changes it back.
    """
    global _n_sending, _before_sending
    key = "distributed.admin.large-graph-warning-threshold"
    with _sending:
        if _n_sending == 0:
            _before_sending = dask.config.get(key, None)
            dask.config.set({key: "1000 PB"})
        _n_sending += 1
    try:
        yield
    finally:
        with _sending:
            _n_sending -= 1
            if _n_sending == 0:
                dask.config.set({key: _before_sending})


def release(client: Client, futures: Iterable[Any]) -> None:
    """Let a cluster forget results that nobody else wants, if it can still be asked; never raises.

    `distributed.Client.cancel` asks for more than that: the scheduler forgets what other clients
    want, too. It was seen to fail (``assert ts.who_wants``) when a worker died meanwhile. It is
    left for futures that the client has given up, for instance after ``client.restart()``. What was
    submitted before the client heard of that is still on the scheduler.
    """
    some = list(futures)
    given_up = [future for future in some if future.status == "cancelled"]
    with suppress(RuntimeError):  # the loop of a client that is closed
        for future in some:
            future.release()
    if given_up and client.status == "running":
        with suppress(Exception):  # what is raised already says more
            call_with_timeout(client, partial(client.cancel, given_up), RELEASE_SECONDS)


def results_of(client: Client, futures: Sequence[Future]) -> dict[int, Any]:
    """Results of futures that have ended by their places, of those that there are.

    `distributed.Client.gather` makes five requests at a time. Five that wait for a worker that
    hangs would hold up the results of all others, so the scheduler is asked directly. What it does
    not find is left to `gather`, which waits until it is computed again.
    """
    scheduler: Any = client.scheduler
    keys = {future.key for future in futures if future.status == "finished"}
    found: dict[Any, Any] = {}
    while keys and not found:
        answer = client.sync(scheduler.gather, keys=list(keys))
        found = answer.get("data", {})
        keys.difference_update(answer.get("keys", ()))  # that are not there
    here = {place: found[each.key] for place, each in enumerate(futures) if each.key in found}
    lost = {place: each for place, each in enumerate(futures) if place not in here}
    return here | (client.gather(lost, errors="skip") if lost else {})


def look(client: Client, stats: FitStatistics, found: Mapping[str, int] | None = None) -> None:
    """Count the workers that have gone, if a cluster can still be asked; never raises.

    The scheduler knows of all, also of those that were started again between two looks. `found` are
    the workers that there are now; None: they are asked for.
    """

    def n_gone(dask_scheduler: Any) -> int:  # by value: dtrees need not be there
        events = dask_scheduler.get_events("all")
        return sum(event.get("action") == "remove-worker" for _, event in events)

    if client.status == "running":
        with suppress(Exception):
            if found is None:
                found = call_with_timeout(client, client.nthreads, RELEASE_SECONDS)
            ask = partial(client.run_on_scheduler, n_gone)
            stats.see_workers(found, call_with_timeout(client, ask, RELEASE_SECONDS))


def await_workers(client: Client) -> dict[str, int]:
    """Threads of every worker by address; waits for the first worker when there is none.

    Raises WorkerLostError when none comes for 30 seconds, or what ``dask.config`` says under
    "dtrees.workers-timeout".
    """
    probes: list[Future] = []
    began = time.monotonic()
    try:
        while True:
            with suppress(OSError):  # the client tries to connect again, for a while
                workers: dict[str, int] = call_with_timeout(client, client.nthreads)
                if workers:
                    return workers
            limit = seconds_of("dtrees.workers-timeout")
            if not probes:  # a cluster that adapts to its load starts workers for tasks only
                logger.info("waiting up to %s for a worker", format_time(limit))
                probes = [client.submit(bool, key=f"await-workers-{uuid4().hex}")]
            if time.monotonic() > began + limit:
                raise WorkerLostError(
                    f"The Dask cluster at {address_of(client)} has had no worker for "
                    f"{limit:g} seconds. Start workers, wait longer with "
                    "dask.config.set({'dtrees.workers-timeout': '5 minutes'}), or fit with "
                    "regime='local'."
                )
            raise_deferred_interrupt()
            time.sleep(POLL_SECONDS)
    finally:
        if probes and client.status == "running":
            release(client, probes)


def address_of(client: Client) -> str:
    """Address of the scheduler, for messages."""
    return str(getattr(client.scheduler, "address", "an unknown address"))


def machines(client: Client) -> dict[str, tuple[int | None, int]]:
    """Bytes of each worker by address, None where it has no limit, and its threads.

    The scheduler is asked: `Client.scheduler_info` has no workers where the client, which looks
    every two seconds, has overwritten the answer.
    """

    def ask() -> Any:
        scheduler: Any = client.scheduler
        return client.sync(scheduler.identity, n_workers=-1)["workers"]

    return {
        address: (worker.get("memory_limit") or None, worker["nthreads"])
        for address, worker in call_with_timeout(client, ask).items()
    }


def limits_of(client: Client) -> dict[str, int | None]:
    """Bytes of each worker by address, None where it has no limit."""
    return {address: limit for address, (limit, _) in machines(client).items()}


def has_places() -> bool:
    """Whether the user says on which workers tasks run (`dask.annotate`)."""
    return not {"workers", "resources"}.isdisjoint(dask.get_annotations())


class Paused(NamedTuple):
    """A worker that begins no task, as its memory is nearly full; it sends results all the same."""

    why: str
    doing: frozenset[Any]  # keys of tasks that it had begun before


def ask_workers(client: Client) -> dict[str, Paused | None]:
    """Workers that answer by address, all of which have the client's dtrees; None: one can work.

    A worker that hangs keeps the answer of all others waiting: then everyone is asked alone.
    Raises ClusterError, which names a worker with another dtrees or none; and NoAnswerError, if
    there are workers, and none has answered for 10 seconds, or all have failed to.
    """

    def state(dask_worker: Any) -> tuple[str | None, str | None, set[Any]]:
        version: str | None = None
        with suppress(ImportError):  # sent by value: it has to run without dtrees, too
            from dtrees import __version__

            version = str(__version__)
        if dask_worker.status.name != "paused":
            return version, None, set()
        limit = dask_worker.memory_manager.memory_limit
        why = "paused"
        if limit:
            why += f" at {dask_worker.monitor.get_process_memory() / limit:.0%} of its memory"
        begun = dask_worker.state.executing | dask_worker.state.long_running
        return version, why, {task.key for task in begun}

    ask = partial(client.run, state, on_error="return")
    found: dict[str, Any] = {}

    def ask_alone(address: str) -> None:
        try:
            found.update(call_with_timeout(client, partial(ask, workers=[address]), ANSWER_SECONDS))
        except NoAnswerError:
            logger.info("worker %s does not answer", address)

    try:
        found |= call_with_timeout(client, ask, ANSWER_SECONDS)
    except NoAnswerError:
        workers = list(await_workers(client))
        with ThreadPoolExecutor(len(workers)) as pool:
            list(pool.map(ask_alone, workers))
        if not found:
            raise
    here: dict[str, Paused | None] = {}
    for address, answer in sorted(found.items()):
        if not isinstance(answer, Exception):  # a worker that leaves cannot answer
            theirs, why, begun = answer
            if theirs != dtrees.__version__:
                raise other_version(address, theirs, dtrees.__version__)
            here[address] = None if why is None else Paused(why, frozenset(begun))
    if found and not here:
        raise NoAnswerError(f"no worker tells its version, but {next(iter(found.values()))!r}")
    return here


def other_version(address: str, theirs: str | None, mine: str) -> ClusterError:
    """What is raised where a worker has another dtrees than the client; `theirs` None: none."""
    has = "cannot import dtrees" if theirs is None else f"has dtrees {theirs}"
    return ClusterError(
        f"Worker {address} {has}, the client has {mine}. Install the same version on all "
        "workers, or fit with regime='local'."
    )
