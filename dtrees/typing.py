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


def add(own: np.ndarray, others: np.ndarray) -> None:
    """Join numbers to their sums."""
    np.add(own, others, out=own)


def maximize(own: np.ndarray, others: np.ndarray) -> None:
    """Join numbers to the larger ones."""
    np.maximum(own, others, out=own)


class Members(Protocol):
    """Those who grow one model together, each from some of the rows; what they tell each other.

    All of them call the same methods in the same order, with arrays of the same length.

    Attributes
    ----------
    rank : int
        Number of the member.
    n_parts : int
        Members that have a part each of what is scattered: the first ones.
    """

    rank: int
    n_parts: int

    def sum(self, numbers: np.ndarray) -> None:
        """Make of numbers the sums over all members, in place; int64 (n,), which wrap around."""
        self.join(numbers, add)

    def largest(self, numbers: np.ndarray) -> None:
        """Make of numbers the largest of all members, in place; float64 (n,)."""
        self.join(numbers, maximize)

    def join(self, numbers: np.ndarray, join: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Make of numbers those of all members, in place.

        ``join(own, others)`` joins some of the numbers with those of other members, along their
        first axis; in any order.
        """

    def scatter(self, numbers: np.ndarray, ends: Sequence[int]) -> np.ndarray:
        """The sums over all members of a part of some numbers, int64 (n,); each has one of them.

        `ends` are those of the parts; members without one get an empty array. The numbers hold
        anything then, and are not to be changed before the next call of `sum` or `join` returns.
        """
