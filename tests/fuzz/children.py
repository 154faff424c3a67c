"""Work in a child process, so that a crash, a hang or too much memory is an answer like others.

Children are forked by a server that runs nothing else and has the package loaded: a child costs
milliseconds, and knows nothing of the threads and pools of the process that asks.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

LOADED = ["numpy", "pandas", "polars", "scipy.sparse", "sklearn.pipeline", "dask.array", "dtrees"]
SECONDS = 120.0
MEGABYTES = 2048


@dataclass(frozen=True)
class Died:
    """What there is in the place of an answer.

    Attributes
    ----------
    how : str
        "SIGSEGV", "no answer within 120 s", ...
    last : object
        What was last reported by `Report`, or None.
    """

    how: str
    last: Any


Report = Callable[[Any], None]


def in_child(
    work: Callable[..., Any],
    *arguments: Any,
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
    load: Sequence[str] = (),
) -> Any:
    """What ``work(report, *arguments)`` returns in a process of its own, or `Died`.

    Parameters
    ----------
    work : function of a module
        Its first argument notes what it is about to do; the rest are `arguments`.
    seconds : float, default=120
        Between two reports; a child that is silent for longer is killed.
    megabytes : int, default=2048
        Of address space above what a child begins with.
    load : sequence of str, default=()
        Modules that the server is to have loaded besides, if it does not run yet.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED, *load])
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(theirs, work, arguments, megabytes))
    child.start()
    theirs.close()
    last = None
    try:
        while mine.poll(seconds):
            try:
                kind, value = mine.recv()
            except EOFError:
                child.join()
                return Died(_how(child.exitcode), last)
            if kind == "answer":
                child.join()
                return value
            last = value
        return Died(f"no answer within {seconds:g} s", last)
    finally:
        if child.is_alive():
            child.kill()
        child.join()
        mine.close()


def _run(
    answers: Connection, work: Callable[..., Any], arguments: tuple[Any, ...], megabytes: int
) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    most = used + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.send(("answer", work(lambda note: answers.send(("note", note)), *arguments)))
    answers.close()


def _how(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
