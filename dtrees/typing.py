"""Types that several floors share.

A `Runner` is how work is handed out: it gets zero-argument tasks, runs them (here one after the
other; in `dtrees.parallel` on threads) and returns their results in the order of the tasks. Tasks
do not depend on each other, so a runner never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Task = Callable[[], T]
Runner = Callable[[Sequence[Callable[[], Any]]], list[Any]]


def serial(tasks: Sequence[Task[T]]) -> list[T]:
    """Run the tasks one after the other in the calling thread."""
    return [task() for task in tasks]
