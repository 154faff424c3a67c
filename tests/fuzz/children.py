"""Work in a child process, so that a crash, a hang or too much memory is an answer like others.

Children are forked by a server that runs nothing else and has the package loaded, and the tests
that use most children: a child costs milliseconds, and knows nothing of the threads and pools of
the process that asks.

A hang is told by the time of the processor that a child takes between two of its answers, which
does not depend on what else the machine does. A child that waits takes none; it is given up after
`PATIENCE` seconds of silence, which are far more than any answer needs.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

LOADED = [
    *("numpy", "pandas", "polars", "scipy.sparse", "sklearn.pipeline", "dask.array", "pytest"),
    *("dtrees.export", "dtrees.inspection", "dtrees.model_selection"),
    *(
        "tests.export.test_hostile_files",
        "tests.contracts.test_damaged_sparse",
    ),  # measured: 0.16 s a child
]
BATCH = 25  # cases of a child
SECONDS = 120.0
MEGABYTES = 2048
PATIENCE = 300.0


@dataclass(frozen=True)
class Ending:
    """How a child has ended.

    Attributes
    ----------
    found : list
        What it has found, in order.
    why : str
        Empty where it came to its end; otherwise how it did not: "it was ended by SIGSEGV", an
        error with its traceback, ...
    """

    found: list[Any]
    why: str


def in_child(
    work: Callable[..., Iterable[Any]],
    *arguments: Any,
    seconds: float = SECONDS,
    megabytes: float = MEGABYTES,
    patience: float = PATIENCE,
) -> Ending:
    """What ``work(*arguments)`` yields in a process of its own.

    Parameters
    ----------
    work : function of a module
        Returns what it finds, or yields it as it comes.
    *arguments : object
        Can be pickled.
    seconds : float, default=120
        Of the processor, for each of the things that are found.
    megabytes : float, default=2048
        Of address space above what a child begins with.
    patience : float, default=300
        Seconds that a child may be silent, whether it takes time of the processor or not.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(theirs, work, arguments, seconds, megabytes))
    child.start()
    theirs.close()
    found: list[Any] = []
    try:
        mine.poll(None)  # it has begun, or ended: loading the package is nobody's fault
        while mine.poll(patience):
            try:
                kind, value = mine.recv()
            except EOFError:
                child.join()
                return Ending(found, _how(child.exitcode))
            if kind == "found":
                found.append(value)
            elif kind == "end":
                child.join()
                return Ending(found, value)
        return Ending(found, f"it was silent for {patience:g} s")
    finally:
        child.kill()
        child.join()
        mine.close()


def outcomes(
    judge: Callable[..., Iterable[str]], numbers: Sequence[int], *arguments: Any, **limits: float
) -> Iterator[tuple[int, str]]:
    """What becomes of cases, in children: what is told of each, or how its child has ended.

    Parameters
    ----------
    judge : function of a module
        ``judge(numbers, *arguments)`` yields a text for each number.
    numbers : sequence of int
    *arguments : object
        For `judge`.
    **limits : float
        As for `in_child`.
    """
    left = list(numbers)
    while left:
        batch = left[:BATCH]
        ending = in_child(judge, batch, *arguments, **limits)
        yield from zip(batch, ending.found, strict=False)
        n_done = len(ending.found)
        if ending.why:
            yield batch[min(n_done, len(batch) - 1)], ending.why
            n_done += 1
        left = left[n_done:]


def _run(
    answers: Connection,
    work: Callable[..., Iterable[Any]],
    arguments: tuple[Any, ...],
    seconds: float,
    megabytes: float,
) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    most = used + int(megabytes * 2**20)
    answers.send(("begun", None))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _limit_time(seconds)
    how = ""
    try:
        for value in work(*arguments):
            answers.send(("found", value))
            _limit_time(seconds)
    except MemoryError:
        how = "it took more memory than it may"
    except Exception:
        how = traceback.format_exc(limit=-3).strip()
    answers.send(("end", how))
    answers.close()


def _limit_time(seconds: float) -> None:
    """So many seconds of the processor from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(usage.ru_utime + usage.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"it ended with {code}"
    if -code == signal.SIGXCPU:
        return "it took more time of the processor than it may"
    return f"it was ended by {signal.Signals(-code).name}"
