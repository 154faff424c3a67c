"""What the process does that has `no_memory.h` before its C library.

Its lines are a seed, a number of models and a number of faults (`preload.answer_with`).
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial

from tests.golden.models import CASES, digests_of
from tests.golden.ways import WAYS
from tests.no_memory import FOREVER
from tests.no_memory.preload import answer_with


def library_of_process() -> ctypes.CDLL:
    """The library of `no_memory.h`, in a process that has it."""
    gc.collect()
    gc.freeze()  # what is imported stays: each look at it would take a sixth of a second
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.no_memory_end.restype = library.no_memory_blocks.restype = ctypes.c_int64
    return library


def made(
    library: ctypes.CDLL, make: Callable[[], object], what: object, first: int, last: int
) -> tuple[object, int]:
    """What is made while the calls first .. last fail, or None; and the number of calls."""
    library.no_memory_begin(ctypes.c_int64(first), ctypes.c_int64(last))
    try:
        found = make()
    except MemoryError:
        found = None
    finally:
        n_calls = library.no_memory_end()
    for _ in range(100):  # other threads may still be at work
        gc.collect()
        blocks = library.no_memory_blocks()
        if blocks == 0:
            break
        time.sleep(0.02)
    assert blocks == 0, f"{what}: {blocks} blocks are left when calls {first}.. fail"
    return found, n_calls


def work(*numbers: str) -> tuple[int, int]:
    """How many models were made, and how many of those ended in a MemoryError."""
    seed, n_models, n_faults = map(int, numbers)
    library = library_of_process()
    draw = random.Random(seed)
    n_made = n_lost = 0
    for name in draw.sample(sorted(CASES), n_models):
        way = draw.choice(WAYS)
        make = partial(digests_of, name, way)
        expected = make()  # what is kept for the next time is made now
        found, n_calls = made(library, make, (name, way), -1, -1)
        assert found == expected, (name, way)
        for fault in range(n_faults if n_calls > 0 else 0):
            first = draw.randrange(n_calls)
            last = first if fault % 2 == 0 else FOREVER
            print(name, way, first, last, "of", n_calls, file=sys.stderr, flush=True)
            found, _ = made(library, make, (name, way), first, last)
            assert found in (None, expected), (name, way, first, last)
            n_made += 1
            n_lost += found is None
    return n_made, n_lost


if __name__ == "__main__":
    answer_with(work)
