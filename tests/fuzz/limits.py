"""Work that may hang, crash or eat memory, in a forked child that can do none of it to others.

The child has so much time of the processor, so much memory beyond what it begins with, and writes
what it found into a pipe. What ends it otherwise (a signal, a limit) is told by how it ended, so
nothing here waits by the clock. Only a child that says nothing and takes no time of the processor
at all for `ASLEEP` seconds is given up.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import resource
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ASLEEP = 30  # seconds; a machine that has other work gives everybody some time in less


@dataclass(frozen=True)
class Ending:
    """How a child has ended.

    Attributes
    ----------
    found : list
        What it has told, in order.
    why : str
        Empty where it came to its end; otherwise how it did not.
    """

    found: list[Any]
    why: str


def run_apart(work: Callable[[Callable], None], seconds: float, megabytes: float) -> Ending:
    """Do work in a forked child.

    Parameters
    ----------
    work : callable (tell)
        ``tell(value)`` sends a value to the parent, at once.
    seconds : float
        Of the processor; the whole child.
    megabytes : float
        Beyond the address space of this process.
    """
    readable, writable = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child has not
        child = os.fork()
    if child == 0:
        os.close(readable)
        _be_the_child(work, writable, seconds, megabytes)
    os.close(writable)
    data, asleep = _all_of(readable, child)
    os.close(readable)
    if asleep:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    why = _why(status, asleep)
    return Ending(list(_values_of(data)), why)


def run_limited(work: Callable[[], None], seconds: float, megabytes: float) -> None:
    """Do work in a forked child; AssertionError where it does not come to its end."""
    ending = run_apart(lambda tell: work(), seconds, megabytes)
    assert not ending.why, ending.why


def _be_the_child(work: Callable, pipe: int, seconds: float, megabytes: float) -> None:
    def tell(value: Any) -> None:
        text = pickle.dumps(value)
        os.write(pipe, len(text).to_bytes(4, "little") + text)

    code = 1
    try:
        faulthandler.disable()  # how it ends is told by the parent
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = round(_seconds_so_far() + seconds + 1)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        if megabytes:
            limit = _address_space() + int(megabytes * 2**20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work(tell)
        code = 0
    except MemoryError:
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _seconds_so_far() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _ticks_of(child: int) -> int:
    """Time of the processor that a child has taken, in ticks."""
    with open(f"/proc/{child}/stat") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def _all_of(pipe: int, child: int) -> tuple[bytes, bool]:
    """What comes out of a pipe until it is closed; and whether the child has fallen asleep."""
    data, ticks = bytearray(), -1
    while True:
        ready, _, _ = select.select([pipe], [], [], ASLEEP)
        if not ready:
            before, ticks = ticks, _ticks_of(child)
            if ticks == before:
                return bytes(data), True
            continue
        more = os.read(pipe, 2**16)
        if not more:
            return bytes(data), False
        data += more


def _values_of(data: bytes) -> Any:
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "little")
        with contextlib.suppress(pickle.UnpicklingError, EOFError):
            yield pickle.loads(data[4 : 4 + length])
        data = data[4 + length :]


def _why(status: int, asleep: bool) -> str:
    if asleep:
        return "it slept"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGXCPU, signal.SIGKILL):
            return "it took more time than it may"
        return f"it was ended by {signal.Signals(number).name}"
    code = os.WEXITSTATUS(status)
    return {0: "", 2: "it took more memory than it may"}.get(code, f"it ended with {code}")
