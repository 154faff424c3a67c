"""Tasks on the threads of one process.

The floors below give lists of zero-argument tasks: blocks of columns, blocks of rows, subtrees.
Their kernels release the GIL, so threads are all that is needed. This is the only module that
starts threads for work: a call starts as many as it needs, and they end with it. They are members
of a team (`dtrees.core.grow._team`), and the tasks are left to it in order (put long ones first). A
call costs about 0.1 ms however many tasks there are. With one thread, or one task, no thread is
started: the tasks run one after the other in the calling thread. The answer is the same, because
tasks share nothing but disjoint parts of arrays.

Work that is finer, or comes up as it goes, is shared by a team of its own, whose members are tasks
of a runner.

`LocalRunner.stream` yields results, in the order of the tasks, while other tasks run. A task is
left to the team when the caller comes back from a result. So at most `AHEAD` tasks per thread are
begun beyond those that the caller is done with. A slow task, or a slow caller, holds the others up,
and results that wait take bounded memory.

Ctrl-C reaches the main thread only. A runner therefore has an event, ``cancelled``: it is set
as soon as the calling thread is interrupted or a task fails. No task is begun after that, and
running kernels, which work in slices of a few milliseconds, look at it between two slices. Nobody
waits for them, as what they fill is garbage by then. A cancelled runner stays cancelled: it lives
as long as one fit or one prediction.

No thread outlives its call, so a process that is forked misses none.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend

from dtrees.core.grow._team import Team
from dtrees.parallel.client import this_worker

T = TypeVar("T")

AHEAD = 4  # tasks per thread that a stream begins ahead of its reader
WAKE = 0.1  # seconds after which a caller that waits can be interrupted, on any system


@dataclass(eq=False)
class LocalRunner:
    """Runs zero-argument tasks on at most `n_threads` threads; results come in order.

    With one thread the tasks run in the calling thread. The event ``cancelled`` is set when the
    work of the tasks is not wanted any more; long tasks look at it.
    """

    n_threads: int  # at least 1
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)
    is_alone: bool = field(default=False, repr=False)  # whether it is of a task of another one

    def __call__(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run tasks, in any order and at the same time; returns their results in order.

        Raises the first BaseException that a task or a signal raises, and ``cancelled`` is set
        then; or CancelledError where the runner was cancelled, before or meanwhile.
        """
        results: list = [None] * len(tasks)
        n_threads = min(self.n_threads, len(tasks))
        team = Team()

        def do(i: int) -> None:
            self._check()
            results[i] = tasks[i]()

        for i in range(len(tasks)):
            team.put(partial(do, i))
        team.close()
        with self._cancelling():
            if n_threads <= 1:
                team.help()
            else:
                _Members(self, [team.help] * n_threads).start().wait()
        self._check()
        return results

    def led(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """As a call, but the first task runs in the calling thread, the others on threads.

        Of at most `n_threads` tasks the others come to an end when the first one has. Where it
        fails, nobody waits for them. Returns what the first one returns, and None for each of the
        others.
        """
        first, *others = tasks
        with self._cancelling():
            members = _Members(self, others).start() if others else None
            found = first()
            if members is not None:
                members.wait()
        self._check()
        return [found, *[None] * len(others)]

    def alone(self) -> LocalRunner:
        """A runner for a task of this one: in its thread, and cancelled with this one.

        What fails in it fails the task, and it is the task that cancels.
        """
        return LocalRunner(1, self.cancelled, is_alone=True)

    def stream(self, tasks: Sequence[Callable[[], T]]) -> Generator[T]:
        """Run tasks, begun in their order, and yield results in order, while other tasks run.

        At most `AHEAD` tasks per thread are begun beyond those whose result the reader is done
        with. A result that is early waits for those before it. Raises as a call, at the reader's
        next look: results that wait do not come first. Closing the iterator before its end cancels
        the runner and waits for the tasks that run, so long ones should look at ``cancelled``.
        Close it (`contextlib.closing`).
        """
        n_threads = min(self.n_threads, len(tasks))
        if n_threads <= 1:
            with self._cancelling():
                for task in tasks:
                    self._check()
                    found = task()
                    self._check()
                    yield found
            return
        early: dict[int, T] = {}
        team = Team()

        def do(place: int) -> None:
            self._check()
            early[place] = tasks[place]()
            members.tell()

        to_begin = (partial(do, place) for place in range(len(tasks)))
        for begun in islice(to_begin, AHEAD * n_threads):
            team.put(begun)
        members = _Members(self, [team.help] * n_threads)
        try:
            with self._cancelling():
                members.start()
                for place in range(len(tasks)):
                    while place not in early or members.have_told():
                        members.hear()
                    yield early.pop(place)
                    for begun in islice(to_begin, 1):
                        team.put(begun)
                team.close()
                members.wait()
        except BaseException as reason:
            team.dismiss()
            if isinstance(reason, GeneratorExit):
                members.wait(heeds_errors=False)
            raise

    @contextmanager
    def _cancelling(self) -> Iterator[None]:
        """Cancel this runner where its caller fails; CancelledError where it is cancelled."""
        self._check()
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    def _check(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError("this runner has been cancelled")

    def cancel(self) -> None:
        """Say that the work is not wanted any more; where a task's own runner fails, it does."""
        # An event that is set already would make the failure of the task look like a later one.
        if not self.is_alone:
            self.cancelled.set()


@dataclass(eq=False)
class _Members:
    """Threads of a call, each of which does one thing to its end, and what they tell its caller.

    The runner is cancelled where one of them fails. Only the first failure counts: what fails after
    it may fail because of it.
    """

    _runner: LocalRunner
    _work: Sequence[Callable[[], Any]]  # of each
    _n_there: int = 0
    _told: queue.SimpleQueue[BaseException | bool] = field(default_factory=queue.SimpleQueue)

    def start(self) -> _Members:
        """Begin; returns these."""
        self._n_there = len(self._work)
        for i, work in enumerate(self._work):
            threading.Thread(
                target=self._run, args=(work,), name=f"dtrees-{i}", daemon=False
            ).start()
        return self

    def tell(self) -> None:
        """Wake the caller: there is a result; of a thread of these."""
        self._told.put(True)

    def have_told(self) -> bool:
        """Whether something is to be heard."""
        return not self._told.empty()

    def hear(self) -> None:
        """Wait for one word of one of them.

        Raises the BaseException by which that one has ended, and CancelledError if none is left.
        """
        if self._n_there == 0:
            raise CancelledError("this runner has been cancelled")
        word = self._next()
        if isinstance(word, BaseException):
            raise word

    def wait(self, heeds_errors: bool = True) -> None:
        """Wait until all have ended; raises by what one of them has, if that is asked."""
        while self._n_there > 0:
            word = self._next()
            if heeds_errors and isinstance(word, BaseException):
                raise word

    def _next(self) -> BaseException | bool:
        """The next word; the wait can be interrupted."""
        while True:
            try:
                word = self._told.get(timeout=WAKE)
            except queue.Empty:
                continue
            self._n_there -= word is not True
            return word

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            is_first = not self._runner.cancelled.is_set()
            self._runner.cancel()
            self._told.put(error if is_first else False)
        else:
            self._told.put(False)


def threaded(n_jobs: int | None = None) -> LocalRunner:
    """A new runner for one fit or prediction, of as many threads as `n_jobs` asks for.

    They are counted as scikit-learn does. -1 is every core that this process may use, -2 all but
    one, and so on. None asks for one, unless a ``joblib.parallel_config`` says otherwise. Work that
    already runs inside a joblib worker gets what joblib leaves to it, and work inside a Dask task
    its own thread, or with -1 all threads of its worker. Never more than the process has cores,
    unless a positive `n_jobs` says so: a joblib backend may count the workers of a whole cluster.
    Raises ValueError where `n_jobs` is 0.
    """
    worker = this_worker()
    share = None if worker is None else int(worker.state.nthreads)
    if share is not None and n_jobs is None and _joblib_uses_dask():
        return LocalRunner(1)
    n_threads = int(joblib.effective_n_jobs(n_jobs))
    if n_threads > 1 and (n_jobs is None or n_jobs < 0):
        n_threads = min(n_threads, share or joblib.cpu_count() or os.cpu_count() or 1)
    return LocalRunner(max(1, n_threads))


def _joblib_uses_dask() -> bool:
    """Whether joblib counts the threads of a whole cluster, as it does in the tasks of one."""
    backend, _ = get_active_backend()
    return type(backend).__name__ == "DaskDistributedBackend"
