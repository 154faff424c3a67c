"""Tasks on the threads of one process.

The floors below give lists of zero-argument tasks: blocks of columns, blocks of rows, subtrees.
Their kernels release the GIL, so threads are all that is needed, and Dask's threaded scheduler
runs them. The graph is one layer without edges, made by hand, so that nothing is tokenized,
optimized or copied. A Dask task per thread takes the next of our tasks until none is left::

    {"dtrees-0": (work,), "dtrees-1": (work,)}  ->  dask.threaded.get(..., num_workers=2)

so tasks are begun in the order in which they are given (put long ones first), and a round costs
about 0.2 ms however many there are. With one thread, or one task, nothing is scheduled: the tasks
run one after the other in the calling thread. The answer is the same, because tasks share nothing
but disjoint parts of arrays.

`LocalRunner.stream` yields results, in the order of the tasks, while other tasks run. A thread
of ours waits for Dask then, and two queues go between the caller and the threads::

    caller    ── places that may be begun ────▶  tasks on Dask's    ◀── a thread that
              ◀── word that a task has ended ──  threads                waits for them

Places are given out in order, and one more only when the caller comes back from a result. So at
most `AHEAD` tasks per thread are begun beyond those that the caller is done with. A slow task, or a
slow caller, holds the others up, and results that wait take bounded memory.

Ctrl-C reaches the main thread only. A runner therefore has an event, ``cancelled``: it is set
as soon as the calling thread is interrupted or a task fails. No task is begun after that, and
running kernels, which work in slices of a few milliseconds, look at it between two slices. Nobody
waits for them, as what they fill is garbage by then. A cancelled runner stays cancelled: it lives
as long as one fit or one prediction.

Dask keeps a pool for each calling thread and number of threads. If Ctrl-C comes while the pool
starts a thread, `ThreadPoolExecutor` counts a task that waits as an idle thread. It is then a
thread short for ever. So the pool is given up after an interrupt, and the next call gets a new one.

A process that is forked inherits Dask's pools, but not their threads. It begins with no pool.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from itertools import chain, islice, repeat
from typing import Any, TypeVar

import joblib
from dask import threaded as dask_threads
from joblib.parallel import get_active_backend

from dtrees.parallel.client import threads_of_worker

T = TypeVar("T")

AHEAD = 4  # tasks per thread that a stream begins ahead of its reader
WAKE = 0.1  # seconds after which a reader that waits can be interrupted, on any system


class LocalRunner:
    """Runs zero-argument tasks on at most `n_threads` threads; results come in order.

    Parameters
    ----------
    n_threads : int
        At least 1; with 1 the tasks run in the calling thread.

    Attributes
    ----------
    n_threads : int
        How many tasks run at the same time.
    cancelled : threading.Event
        Set when the tasks' work is not wanted any more; long tasks look at it.
    """

    def __init__(self, n_threads: int) -> None:
        assert n_threads >= 1, n_threads
        self.n_threads = n_threads
        self.cancelled = threading.Event()
        self._is_alone = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_threads={self.n_threads})"

    def __call__(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run the tasks and return their results in order.

        Parameters
        ----------
        tasks : sequence of callables without arguments
            They may run at the same time and in any order.

        Returns
        -------
        list, of the length of `tasks`

        Raises
        ------
        BaseException
            The first that a task or a signal raises; ``cancelled`` is set then.
        CancelledError
            The runner was cancelled, before or meanwhile.
        """
        if self.cancelled.is_set():
            raise CancelledError("this runner has been cancelled")
        todo = deque(enumerate(tasks))
        results: list = [None] * len(todo)
        n_threads = min(self.n_threads, len(todo))

        def work() -> None:
            while todo and not self.cancelled.is_set():
                try:
                    i, task = todo.popleft()
                except IndexError:  # another thread was faster
                    return
                try:
                    results[i] = task()
                except BaseException:
                    # Only the first failure counts: what fails after it may fail because of it.
                    if self.cancelled.is_set():
                        return
                    self._cancel()
                    raise

        try:
            if n_threads <= 1:
                work()
            else:
                names = [f"dtrees-{i}" for i in range(n_threads)]
                graph = dict.fromkeys(names, (work,))
                dask_threads.get(graph, names, num_workers=n_threads)
        except BaseException as error:
            self._cancel()
            if n_threads > 1 and not isinstance(error, Exception):
                _give_up_pool(n_threads)
            raise
        if self.cancelled.is_set():
            raise CancelledError("this runner has been cancelled")
        return results

    def led(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """As a call, but the first task runs in the calling thread, the others on threads.

        Parameters
        ----------
        tasks : sequence of callables without arguments
            At most `n_threads`; the others come to an end when the first one has. Where it fails,
            nobody waits for them.

        Returns
        -------
        list, of the length of `tasks`
            What the first returns, and None for each of the others.
        """
        first, *others = tasks
        helpers = LocalRunner(max(1, len(others)))
        thread = threading.Thread(target=helpers, args=(others,), name="dtrees-run", daemon=True)
        if others:
            thread.start()
        found = self([first])
        if others:
            thread.join()
        return [*found, *[None] * len(others)]

    def alone(self) -> LocalRunner:
        """A runner for a task of this one: in its thread, and cancelled with this one.

        What fails in it fails the task, and it is the task that cancels.
        """
        runner = LocalRunner(1)
        runner.cancelled = self.cancelled
        runner._is_alone = True
        return runner

    def _cancel(self) -> None:
        # An event that is set already would make the failure of the task look like a later one.
        if not self._is_alone:
            self.cancelled.set()

    def stream(self, tasks: Sequence[Callable[[], T]]) -> Generator[T]:
        """Run the tasks and yield their results in order, while other tasks run.

        Closing the iterator before its end cancels the runner and waits for the tasks that run, so
        long ones should look at ``cancelled``. Close it (`contextlib.closing`).

        Parameters
        ----------
        tasks : sequence of callables without arguments
            As for a call, and begun in this order. At most `AHEAD` per thread are begun beyond
            those whose result the reader is done with.

        Yields
        ------
        object
            Results, in the order of the tasks. One that is early waits for those before it.

        Raises
        ------
        BaseException, CancelledError
            As a call, and at the reader's next look: results that wait do not come first.
        """
        n_threads = min(self.n_threads, len(tasks))
        if n_threads <= 1:
            try:
                for task in tasks:
                    yield self([task])[0]
            except GeneratorExit:
                self.cancelled.set()
                raise
            return
        begin: queue.SimpleQueue[int | None] = queue.SimpleQueue()  # places; None: no more
        ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()  # None: a result more
        early: dict[int, T] = {}
        to_begin = chain(range(len(tasks)), repeat(None))
        for place in islice(to_begin, AHEAD * n_threads):
            begin.put(place)

        def work() -> None:
            try:
                while (place := begin.get()) is not None and not self.cancelled.is_set():
                    early[place] = tasks[place]()
                    ended.put(None)
            finally:
                begin.put(None)  # who leaves tells the next one, who may wait for a place

        def run_all() -> None:
            try:
                self([work] * n_threads)
            except BaseException as error:
                ended.put(error)

        executor = threading.Thread(target=run_all, name="dtrees-run", daemon=True)
        try:
            executor.start()
            for place in range(len(tasks)):
                while place not in early or not ended.empty():
                    error = _next(ended)
                    if error is not None:
                        raise error
                yield early.pop(place)
                begin.put(next(to_begin))
        except BaseException as reason:
            self.cancelled.set()
            begin.put(None)
            if isinstance(reason, GeneratorExit):
                executor.join()
            raise
        executor.join()


def _give_up_pool(n_threads: int) -> None:
    """Let the next call of this thread make a new pool of so many threads."""
    with dask_threads.pools_lock:
        pool = dask_threads.pools.get(threading.current_thread(), {}).pop(n_threads, None)
    if pool is not None:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin_without_pools() -> None:
    """Forget the pools of the process that this one was forked from, and who changes them there."""
    dask_threads.default_pool = None
    dask_threads.pools = defaultdict(dict)
    dask_threads.pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_without_pools)


def _next(ended: queue.SimpleQueue[T]) -> T:
    """What comes next; the wait can be interrupted."""
    while True:
        try:
            return ended.get(timeout=WAKE)
        except queue.Empty:
            continue


def threaded(n_jobs: int | None = None) -> LocalRunner:
    """A new runner for one fit or prediction, of `effective_n_jobs` threads.

    Serial, in the calling thread, where that is one. Raises ValueError where `n_jobs` is 0.
    """
    return LocalRunner(effective_n_jobs(n_jobs))


def effective_n_jobs(n_jobs: int | None = None) -> int:
    """The number of threads that `n_jobs` asks for, as scikit-learn counts them: at least 1.

    -1 is every core that this process may use, -2 all but one, and so on. None asks for one, unless
    a ``joblib.parallel_config`` says otherwise. Work that already runs inside a joblib worker gets
    what joblib leaves to it, and work inside a Dask task its own thread, or with -1 all threads of
    its worker. Never more than the process has cores, unless a positive `n_jobs` says so: a joblib
    backend may count the workers of a whole cluster. Raises ValueError where `n_jobs` is 0.
    """
    share = threads_of_worker()
    if share is not None and n_jobs is None and _joblib_uses_dask():
        return 1
    n_threads = int(joblib.effective_n_jobs(n_jobs))
    if n_threads > 1 and (n_jobs is None or n_jobs < 0):
        n_threads = min(n_threads, share or joblib.cpu_count() or os.cpu_count() or 1)
    return max(1, n_threads)


def _joblib_uses_dask() -> bool:
    """Whether joblib counts the threads of a whole cluster, as it does in the tasks of one."""
    backend, _ = get_active_backend()
    return type(backend).__name__ == "DaskDistributedBackend"
