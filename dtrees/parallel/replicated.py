"""Trees grown on the workers of a Dask cluster, each of which holds the whole coded table.

The table is the result of a task, which workers fetch from each other, so that every worker gets it
once. Another task grows a few trees from it, on one thread, and returns them as a few flat arrays::

    client   table ──submit──▶ scheduler
    tasks    "coded-table-<fit>" : () ──▶ table                      worker A ──▶ worker B ──▶ ...
             ("grow-trees-<fit>", batch, copy) : (table, units) ──▶ packed trees
    client   ◀── every batch as soon as it is there

A unit is a tree, or the trees of several training sets that share their growth; which rows each set
has goes with the table (`dtrees.core.forest.UnitsOfGrowth`). A batch is a few units.

There are several batches per thread, if there are so many units, each a fraction of a second of
work. They wait in the scheduler's queue: a worker that joins takes the next one and gets the table
from a worker that has it. Tasks are pure, and a unit is a function of the table and its number, so
it does not matter how often or where one is grown.

What can go wrong, and what it costs:

    a worker dies                        its unfinished batches; the scheduler gives them to others
    and it had the only copy of the      the scheduler gives the table to another one
    table
    the cluster is restarted, or the     the client sends the table again: `SENDINGS` times, unless
    table is blamed for several deaths   trees have come meanwhile
    a batch is blamed for the death of   it is submitted under a new key, `ATTEMPTS` times: a worker
    several workers (`KilledWorker`)     often dies of something else
    a worker hangs: it neither works     nothing as long as trees come; then (`PATIENCE`) copies of
    nor dies                             the batches that it holds go to other workers
    no worker is left                    the client waits for one, then raises
    the scheduler is lost                the client raises when it has given up to connect again
    Ctrl-C, or an error in a task        the client cancels what is left; a task that runs ends
                                         between two slices of its work, after a tenth of a second

Of several copies of a batch the first counts, and the others are released: they are the same
trees. The client never waits without looking at its connection, and leaves nothing on the cluster.

The table is not scattered: `distributed.Client.scatter` with ``broadcast`` asks a worker that dies
meanwhile for ever, and holds a lock of the scheduler that every later call waits for.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet

import distributed

import dtrees
from dtrees.core.forest import UnitsOfGrowth
from dtrees.core.model import Tree
from dtrees.exceptions import NoAnswerError, WorkerLostError
from dtrees.parallel.client import (
    SLICE,
    await_workers,
    check_open,
    check_version,
    check_versions,
    look,
    patiently,
    release,
    sending_data,
)
from dtrees.parallel.interrupts import held_back_inside, let_through
from dtrees.parallel.ledger import Ledger
from dtrees.parallel.tasks import itself
from dtrees.parallel.wire import SharedGrowth, pack, packed_bytes, unpack
from dtrees.typing import Task, serial

if TYPE_CHECKING:
    from distributed import Client, Future

BATCHES_PER_THREAD = 8  # at least: enough to even out
ROWS_PER_BATCH = 2**20  # at most, of all its trees: a fraction of a second
ATTEMPTS = 4  # of a batch, whose workers die
SENDINGS = 4  # of the table, without a tree between them
SPREAD_BY_DASK = 2  # batches for each thread: the scheduler spreads more of them than that
WATCH = 2.0  # seconds without a result until the workers are counted
PATIENCE = 5.0  # seconds without a result until batches are given to other workers as well
SLOWER = 4  # or so many times what the slowest batch took
PATIENCE_AT_FIRST = 30.0  # the same before there is any result

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """Units that one task grows.

    Attributes
    ----------
    place : int
        Among the batches.
    units : tuple of int
    deaths : int, default=0
        How often it was blamed for the death of workers.
    fetches : int, default=0
        How often its result could not be fetched.
    held : frozenset of str, default=empty
        Workers that had it when nothing came any more.
    sending : int, default=0
        Which sending of the table it is grown from.
    """

    place: int
    units: tuple[int, ...]
    deaths: int = 0
    fetches: int = 0
    held: frozenset[str] = frozenset()
    sending: int = 0


@held_back_inside
def grow_replicated(
    growth: UnitsOfGrowth,
    units: Sequence[int],
    client: Client,
    *,
    ledger: Ledger | None = None,
    units_per_task: int | None = None,
) -> Generator[tuple[int, list[Tree]]]:
    """Grow trees on the workers of a cluster.

    Closing the iterator ends the growth and leaves nothing on the cluster. Close it
    (`contextlib.closing`).

    Parameters
    ----------
    growth : UnitsOfGrowth
        Every worker gets a copy of its arrays, about a byte per cell of the table.
    units : sequence of int
        Which units.
    client : distributed.Client
        Synchronous. Within a task: of a `worker_client`, or a thread of the worker is blocked.
    ledger : Ledger or None, default=None
        Where it is written down what was done.
    units_per_task : int or None, default=None
        At most. None: as many as make eight tasks per thread of the cluster, and fewer where the
        trees of a unit have many rows.

    Yields
    ------
    (int, list of Tree)
        A unit and its trees, as soon as they have come, in any order; those that
        `UnitsOfGrowth.trees` grows.

    Raises
    ------
    ClusterError
        Workers with another version of dtrees.
    WorkerLostError
        No workers, or workers that die again and again.
    SchedulerLostError
        A connection that is lost.
    """
    units = list(units)
    if not units:
        return
    check_open(client)
    n_threads = sum(await_workers(client).values())
    if units_per_task is None:
        even = -(-len(units) // (BATCHES_PER_THREAD * max(1, n_threads)))
        n_trees = -(-len(growth.sets(0)) // 2)  # that cost as much as those that are shared
        n_rows = growth.growth.coded.n_rows * n_trees
        units_per_task = max(1, min(even, ROWS_PER_BATCH // n_rows))
    n_batches = -(-len(units) // units_per_task)
    ends = [len(units) * place // n_batches for place in range(n_batches + 1)]
    batches = [
        Batch(place, tuple(units[start:end])) for place, (start, end) in enumerate(pairwise(ends))
    ]
    span = getattr(distributed, "span", nullcontext)
    with span("dtrees.fit"):
        work = Work(growth, client, Ledger() if ledger is None else ledger)
        try:
            work.begin(batches)
            for batch, packed in work.results():
                trees = iter(unpack(packed))
                for unit in batch.units:
                    yield unit, list(islice(trees, len(growth.sets(unit))))
        finally:
            work.end()


def grow_batch(
    table: SharedGrowth, units: Sequence[int], version: str
) -> tuple[dict[str, Any], float]:
    """What a task does: grow a few units on one thread, as long as somebody wants them.

    Parameters
    ----------
    table : SharedGrowth
    units : sequence of int
    version : str
        Of the client's dtrees: a worker may have joined after all others were asked.

    Returns
    -------
    packed : dict
        As `wire.pack` makes it.
    seconds : float
        That it took.
    """
    began = time.monotonic()
    if version != dtrees.__version__:
        check_version(distributed.get_worker().address, dtrees.__version__, version)
    run = OfTask(distributed.get_worker())
    trees: list[Tree] = []
    try:
        for unit in units:
            if run.cancelled.is_set():
                raise CancelledError
            trees += table.growth.trees(unit, run)
    except CancelledError:  # nobody waits for the rest
        raise distributed.Reschedule from None
    return pack(trees), time.monotonic() - began


class OfTask:
    """Runs the work of a task of Dask in its thread, as long as somebody waits for it.

    Parameters
    ----------
    worker : distributed.Worker
        Which runs the task.
    """

    def __init__(self, worker: Any) -> None:
        self.cancelled = Forgotten(worker.state, worker.get_current_task())

    def __call__(self, tasks: Sequence[Task[Any]]) -> list[Any]:
        """Run them one after the other."""
        return serial(tasks)


@dataclass(frozen=True)
class Forgotten:
    """An event that is set when nobody waits for a task of Dask any more.

    Attributes
    ----------
    state : distributed.worker_state_machine.WorkerState
    key : str or tuple
    """

    state: Any
    key: Any

    def is_set(self) -> bool:
        """Whether the task is cancelled; a look at a dictionary."""
        task = self.state.tasks.get(self.key)
        return task is None or task.state == "cancelled"


class Work:
    """The tasks of one growth, seen from the client.

    Three threads take part. The event loop tells which tasks are done; a thread of ours fetches
    their results, so that one that is lost at this moment does not stop the others; the caller
    reads what has come, and in the meantime looks whether the cluster is still there. A fetch from
    a worker that hangs does not return: then another thread fetches the others.

    Parameters
    ----------
    growth : UnitsOfGrowth
    client : distributed.Client
    ledger : Ledger
    """

    def __init__(self, growth: UnitsOfGrowth, client: Client, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger
        self._name_of = growth.name
        self._table = SharedGrowth(growth)
        self._n_bytes = sys.getsizeof(self._table)
        self._name = uuid4().hex
        self._sent: Future | None = None
        self._sending = 0
        self._fruitless = 0  # sendings since the last tree
        self._copies: Counter[int] = Counter()  # of every batch, by place
        self._pending: dict[Any, tuple[Future, Batch]] = {}
        self._made: WeakSet[Future] = WeakSet()  # whoever holds them, a traceback for instance
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._fetched: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()

    def begin(self, batches: Sequence[Batch]) -> None:
        """Send the table and submit the batches."""
        self._ledger.counts["tasks"] += len(batches)
        self._start_fetching()
        look(self._client, self._ledger)
        self._send(len(batches))
        self._submit(batches)

    def results(self) -> Iterator[tuple[Batch, dict[str, Any]]]:
        """Batches and their packed trees, in the order in which they come."""
        slowest, patience = 0.0, PATIENCE_AT_FIRST
        quiet_since = looked = time.monotonic()
        while self._pending:
            let_through()
            try:
                key, result = self._fetched.get(timeout=SLICE)
            except queue.Empty:
                check_open(self._client)
                now = time.monotonic()
                if now > looked + WATCH:
                    self._workers()
                    looked = time.monotonic()
                if now > quiet_since + patience:
                    self._pass_on()
                    patience *= 2
                continue
            if key not in self._pending:  # another copy was faster
                continue
            quiet_since = looked = time.monotonic()
            future, batch = self._pending[key]
            if result is None or isinstance(result, Exception):
                self._try_again(future, batch, result)
                continue
            packed, seconds = result
            slowest = max(slowest, seconds)
            patience = max(PATIENCE, SLOWER * slowest)
            del self._pending[key], future  # the worker may forget it
            self._release_copies(batch)
            self._fruitless = 0
            self._ledger.counts["bytes_moved"] += packed_bytes(packed)
            yield batch, packed

    def end(self) -> None:
        """Leave nothing on the cluster."""
        self._done.put(None)
        self._pending.clear()
        self._sent = None
        release(self._client, self._made)
        look(self._client, self._ledger)

    def _workers(self) -> dict[str, int]:
        """Threads of every worker by address; waits for the first worker when there is none."""
        found = await_workers(self._client)
        self._ledger.see_workers(found)
        return found

    def _release_copies(self, batch: Batch) -> None:
        """Let the cluster forget what is left of a batch that has come."""
        if self._copies[batch.place] == 1:
            return
        keys = [key for key, (_, other) in self._pending.items() if other.place == batch.place]
        release(self._client, [self._pending.pop(key)[0] for key in keys])

    def _pass_on(self) -> None:
        """Find out why nothing comes, and give batches to workers that can do them.

        A worker that hangs does not answer. It may have results that have been asked for, and keep
        those of others waiting; and it may have the only copy of the table, or be about to have it.
        Results elsewhere are fetched anew, the table is sent anew, and copies of the other batches
        go to workers that have not had them. When
        everyone answers, only workers without work get copies: the others are just slow.
        """
        try:
            answering = frozenset(check_versions(self._client))
        except NoAnswerError as error:
            logger.info("no worker answers: %s", error)
            return
        try:
            growing, grown = self._holders()
        except CancelledError:  # all workers have died; the event loop tells of each batch
            return
        if answering.issuperset(self._workers()):
            first = answering.difference(*growing.values())
            second: frozenset[str] = frozenset()
            if not growing:  # nobody does anything: the table waits for workers that have gone
                second = answering
                self._send(len(self._pending))
        else:
            first = second = answering
            self._send(len(self._pending), list(answering))
        self._start_fetching()
        copies: dict[int, Batch] = {}
        for key, (future, batch) in self._pending.items():
            if answering & grown.get(key, frozenset()):
                self._done.put(future)
            elif held := growing.get(key, frozenset()) | grown.get(key, frozenset()):
                held |= copies.get(batch.place, batch).held | batch.held
                copies[batch.place] = replace(batch, held=held)
            elif batch.sending < self._sending:  # it waits for a table that does not come
                copies.setdefault(batch.place, batch)
        for batch in copies.values():
            others = first - batch.held or second
            if others:
                name = self._name_of(batch.units)
                logger.info("%s do not come from %s", name, sorted(batch.held))
                self._submit([batch], sorted(others))

    def _holders(self) -> tuple[dict[Any, frozenset[str]], dict[Any, frozenset[str]]]:
        """Workers that have a batch to grow, and workers that have its result, by key."""
        processing = patiently(self._client, self._client.processing)
        growing = {
            key: frozenset({address}) for address, keys in processing.items() for key in keys
        }
        futures = [future for future, _ in self._pending.values()]
        who_has = patiently(self._client, partial(self._client.who_has, futures))
        return growing, {key: frozenset(addresses) for key, addresses in who_has.items()}

    def _send(self, n_batches: int, answering: Sequence[str] | None = None) -> None:
        """Submit the table; `answering` are workers that should have it first, if they can."""
        if self._fruitless == SENDINGS:
            raise WorkerLostError(
                f"The Dask cluster has lost the coded table {SENDINGS} times and has not grown a "
                "tree in between. Its workers may have too little memory, or are restarted: see "
                "their logs."
            )
        self._fruitless += 1
        self._sending += 1
        self._ledger.counts["restarts"] += self._sending > 1
        answering = answering or self._answering()
        # A task that prefers workers which have all gone would wait for them for ever.
        preferred = answering if set(self._workers()).difference(answering) else None
        self._ledger.counts["bytes_moved"] += min(len(answering), n_batches) * self._n_bytes
        began = time.perf_counter()
        with sending_data():
            self._sent = self._client.submit(
                itself,
                self._table,
                key=self._key_of_table(self._sending),
                pure=False,
                workers=preferred,
                allow_other_workers=preferred is not None,
            )
        self._made.add(self._sent)
        self._ledger.seconds.setdefault("table", 0.0)
        self._sent.add_done_callback(lambda _: self._ledger.add("table", began))

    def _answering(self) -> list[str]:
        """Workers that answer, asked as often as a table is sent."""
        for _ in range(SENDINGS - 1):
            self._workers()
            with suppress(NoAnswerError):
                return check_versions(self._client)
        return check_versions(self._client)

    def _key_of_table(self, sending: int) -> str:
        return f"coded-table-{self._name}-{sending}"

    def _submit(self, batches: Sequence[Batch], workers: Sequence[str] | None = None) -> None:
        """Submit batches; `workers` are those that should have them, if they can.

        The scheduler spreads tasks that are many for its threads, wherever the table is, and gives
        few of them to the worker that has it. These are spread here.
        """
        threads = self._workers()
        if workers is not None or len(batches) > SPREAD_BY_DASK * sum(threads.values()):
            self._submit_to(batches, workers)
            return
        numbered = [(number, address) for address in threads for number in range(threads[address])]
        addresses = cycle(address for _, address in sorted(numbered))
        shares: dict[str, list[Batch]] = {}
        for batch, address in zip(batches, addresses, strict=False):
            shares.setdefault(address, []).append(batch)
        for address, share in shares.items():
            self._submit_to(share, [address])

    def _submit_to(self, batches: Sequence[Batch], workers: Sequence[str] | None) -> None:
        batches = [replace(batch, sending=self._sending) for batch in batches]
        places = [batch.place for batch in batches]
        keys = [(f"grow-trees-{self._name}", place, self._copies[place]) for place in places]
        self._ledger.counts["retries"] += sum(self._copies[place] > 0 for place in places)
        self._copies.update(places)
        try:
            futures = self._client.map(
                grow_batch,
                [self._sent] * len(batches),
                [list(batch.units) for batch in batches],
                [dtrees.__version__] * len(batches),
                key=keys,
                pure=False,
                workers=workers,
                allow_other_workers=workers is not None,
            )
        except Exception:
            check_open(self._client)
            raise
        self._made.update(futures)
        for future, batch in zip(futures, batches, strict=True):
            self._pending[future.key] = future, batch
            future.add_done_callback(self._done.put)

    def _try_again(self, future: Future, batch: Batch, error: Exception | None) -> None:
        """Submit a batch again that has ended without a result, or raise its error."""
        status, name = future.status, self._name_of(batch.units)
        if status in ("pending", "lost", "finished"):  # its result was lost, and comes again
            fetches = batch.fetches + (error is not None or status == "finished")
            if fetches == ATTEMPTS:
                raise WorkerLostError(
                    f"{name.capitalize()} are grown, but cannot be fetched from their worker, at "
                    f"{ATTEMPTS} attempts."
                ) from error
            self._pending[future.key] = future, replace(batch, fetches=fetches)
            future.add_done_callback(self._done.put)
            return
        again = batch
        if status == "error":
            reason = patiently(self._client, future.exception)
            if not isinstance(reason, distributed.KilledWorker):
                raise reason
            if reason.task != self._key_of_table(batch.sending):  # or that is sent again
                again = replace(batch, deaths=batch.deaths + 1)
            if again.deaths == ATTEMPTS:
                raise WorkerLostError(
                    f"Workers have died {ATTEMPTS} times over while they grew {name}. They may "
                    "have too little memory: see their logs."
                ) from reason
        is_lost = self._sent is None or self._sent.status in ("cancelled", "error", "lost")
        if is_lost and batch.sending == self._sending:
            self._send(len(self._pending))
        logger.info("%s are submitted again: %s", name, status)
        del self._pending[future.key]
        self._submit([again])

    def _start_fetching(self) -> None:
        """Fetch in another thread: those that there are may wait for a worker that hangs."""
        threading.Thread(target=self._fetch, name="dtrees-fetch", daemon=True).start()

    def _fetch(self) -> None:
        """Fetch results of tasks that are done, as many at a time as there are."""
        while True:
            done = [self._done.get()]
            with suppress(queue.Empty):
                while True:
                    done.append(self._done.get_nowait())
            if None in done:
                self._done.put(None)  # for the next thread
                return
            results: dict[int, Any]
            try:
                results = self._client.gather(dict(enumerate(done)), errors="skip")
            except Exception as error:
                results = dict.fromkeys(range(len(done)), error)
            for place, future in enumerate(done):
                self._fetched.put((future.key, results[place]))
            del done, future, results
