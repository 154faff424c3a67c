"""Types that several floors share.

A `Runner` is how work is handed out: it gets zero-argument tasks, runs them (here one after the
other; in `dtrees.parallel` on threads) and returns their results in the order of the tasks. Tasks
do not depend on each other, so a runner never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

T = TypeVar("T")
Task = Callable[[], T]
Runner = Callable[[Sequence[Callable[[], Any]]], list[Any]]


def serial(tasks: Sequence[Task[T]]) -> list[T]:
    """Run the tasks one after the other in the calling thread."""
    return [task() for task in tasks]


class Members(Protocol):
    """Those who grow one model together, each from some of the rows; what they tell each other.

    All of them call the same methods in the same order, with arrays of the same length.
    """

    def sum(self, numbers: np.ndarray) -> None:
        """Make of numbers the sums over all members, in place; int64 (n,), which wrap around."""

    def largest(self, numbers: np.ndarray) -> None:
        """Make of numbers the largest of all members, in place; float64 (n,)."""

    def of_tree(self, k: int) -> Members:
        """The members as they grow one of several trees at a time: their calls may interleave."""
