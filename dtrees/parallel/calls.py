"""Tasks of Dask: what one is, to whoever submits it, and what it does on a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

import dtrees
from dtrees.exceptions import ClusterError
from dtrees.parallel.client import check_version
from dtrees.typing import Task, serial

T = TypeVar("T")
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
