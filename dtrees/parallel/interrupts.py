"""Ctrl-C while a client works with its cluster: it comes where it does no harm, within a moment.

A ``KeyboardInterrupt`` may come between any two instructions of the main thread. If it comes after
a task is submitted and before its future has a name, only the traceback knows the future. The
cluster then keeps the task as long as that lives (`sys.last_traceback`). Within ``Future.__del__``
Python swallows it. So it is held back until the client waits, in slices of a tenth of a second, or
until the end::

    with interrupts_deferred():
        future = client.submit(...)     # Ctrl-C here comes ...
        while not future.done():
            raise_deferred_interrupt()               # ... here
            time.sleep(SLICE)

Ctrl-C once more comes at once, wherever that is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

END: Any = object()


@dataclass(eq=False)
class Holding:
    """Stands in the place of the handler of SIGINT meanwhile."""

    handler: Callable[..., Any]
    _came: list[tuple[Any, ...]] = field(default_factory=list, init=False)  # calls of it

    def __call__(self, *call: Any) -> None:
        """Take note of the first; the second one is let through."""
        self._came.append(call)
        if len(self._came) > 1:
            self.let_through()

    def let_through(self) -> None:
        """Do now what it would have done."""
        if self._came:
            call = self._came[-1]
            self._came.clear()
            self.handler(*call)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let SIGINT wait until `raise_deferred_interrupt`, or the end of the block.

    Other threads than the main one never see it; handlers that are not Python's are left alone. A
    block within another one changes nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not callable(handler) or isinstance(handler, Holding):
        yield
        return
    holding = Holding(handler)
    try:
        signal.signal(signal.SIGINT, holding)
    except ValueError:  # a thread that only its own interpreter takes for the main one
        yield
        return
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is holding:  # and nobody's whom the block has put there
            signal.signal(signal.SIGINT, handler)
        holding.let_through()


def raise_deferred_interrupt() -> None:
    """Let SIGINT do now what it would have done, if it has come."""
    if threading.current_thread() is threading.main_thread():
        holding = signal.getsignal(signal.SIGINT)
        if isinstance(holding, Holding):
            holding.let_through()


def interrupts_deferred_inside(generate: Callable[P, Generator[T]]) -> Callable[P, Generator[T]]:
    """A generator in which SIGINT is held back, but not where what it yields is worked with."""

    @wraps(generate)
    def held(*arguments: P.args, **options: P.kwargs) -> Generator[T]:
        inside = generate(*arguments, **options)
        try:
            while True:
                with interrupts_deferred():
                    found = next(inside, END)
                if found is END:
                    return
                yield found
        finally:
            with interrupts_deferred():
                inside.close()

    return held
