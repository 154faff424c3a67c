"""Tasks that come up while others run, for the threads that a runner has.

A runner takes tasks that are all known. A shared growth finds its tasks as it goes: subtrees, while
it divides the upper nodes, and blocks of columns of a large node. So it is one task of the runner,
and the other tasks do what it leaves in a queue::

    thread 1   upper nodes ──▶ leaves subtrees ─────▶ closes the queue ──▶ helps
    thread 2   helps: waits, subtree, block of columns, subtree, ... ends with the queue

Where the runner has one thread, it runs these tasks in turn: the growth first, then all that was
left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Any


class WorkQueue:
    """A queue of tasks without arguments, and threads that help.

    Attributes
    ----------
    failed : bool
        Whether a task has raised; what waits is dropped then.
    """

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], Any]] = deque()
        self._changed = Condition()
        self._is_open = True
        self.failed = False

    def put(self, task: Callable[[], Any]) -> None:
        """Leave a task to whoever helps first."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def close(self) -> None:
        """Say that no more tasks will come."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()

    def help(self) -> None:
        """Run tasks until the queue is closed and empty.

        Raises
        ------
        BaseException
            That of a task; other threads end with the task that they are in.
        """
        while (task := self._next()) is not None:
            self._run(task)

    def help_while(self, least: int) -> None:
        """Run tasks as long as at least so many wait."""
        while not self.failed and len(self._tasks) >= least:
            with self._changed:
                task = self._tasks.popleft() if len(self._tasks) >= least else None
            if task is not None:
                self._run(task)

    def run(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run tasks before those that wait, with all who help; results in order.

        Raises
        ------
        BaseException
            That of a task which this thread has run.
        RuntimeError
            Another thread's task has failed, which raises that itself.
        """
        results: list[Any] = [None] * len(tasks)
        left = list(range(len(tasks)))
        unfinished = len(tasks)

        def one() -> None:
            nonlocal unfinished
            with self._changed:
                if not left:
                    return  # this thread or another one was faster
                number = left.pop(0)
            results[number] = tasks[number]()
            with self._changed:
                unfinished -= 1
                self._changed.notify_all()

        with self._changed:
            self._tasks.extendleft([one] * (len(tasks) - 1))
            self._changed.notify_all()
        while left:
            self._run(one)
        with self._changed:
            self._changed.wait_for(lambda: unfinished == 0 or self.failed)
        if self.failed:
            raise RuntimeError("a task of another thread has failed")
        return results

    def _next(self) -> Callable[[], Any] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or not self._is_open or self.failed)
            return self._tasks.popleft() if self._tasks and not self.failed else None

    def _run(self, task: Callable[[], Any]) -> None:
        try:
            task()
        except BaseException:
            with self._changed:
                self.failed = True
                self._changed.notify_all()
            raise
