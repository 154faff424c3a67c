"""Locks that a forked child finds free, and an attribute that needs none."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import nullcontext
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


def lock_of_process(kind: Callable[[], Any] = Lock) -> Any:
    """A lock, of a kind of `threading`, that no other thread holds while the process is forked.

    A child has the locks of its parent, but of its threads only the one that has forked. A lock
    that another one held would never be free there. So a fork waits until this one is.
    """
    lock = kind()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


class LockOfObject:
    """A lock that an object keeps, in a forked child a new one.

    No fork waits for it, and a child need not: no other thread of its own holds it.
    """

    def __init__(self, kind: Callable[[], Any] = Lock) -> None:
        self._kind, self._made = kind, (os.getpid(), kind())

    def of_process(self) -> Any:
        """The lock, for a ``with`` statement."""
        with _RENEWING:
            if self._made[0] != os.getpid():
                self._made = os.getpid(), self._kind()
            return self._made[1]


_RENEWING = lock_of_process()


class cached_property(functools.cached_property[T]):
    """`functools.cached_property`, without the lock that Python 3.11 holds while it computes."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
