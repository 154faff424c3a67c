"""What the process does that has `no_memory.h` before its C library.

``python -m tests.no_memory.models SEED N_MODELS N_FAULTS``, with the library in LD_PRELOAD.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import time

from tests.golden.models import CASES, WAYS, Way, digests_of

FOREVER = 1 << 62


def made(library: ctypes.CDLL, name: str, way: Way, first: int, last: int) -> tuple[object, int]:
    """Digests of a model while the calls first .. last fail, or None; and the number of calls."""
    library.no_memory_begin(ctypes.c_int64(first), ctypes.c_int64(last))
    try:
        found = digests_of(name, way)
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
    assert blocks == 0, f"{name}, {way}: {blocks} blocks are left when calls {first}.. fail"
    return found, n_calls


def main() -> None:
    """Print how many models were made, and how many of those ended in a MemoryError."""
    seed, n_models, n_faults = map(int, sys.argv[1:])
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.no_memory_end.restype = library.no_memory_blocks.restype = ctypes.c_int64
    gc.collect()
    gc.freeze()  # what is imported stays: each look at it would take a sixth of a second
    draw = random.Random(seed)
    n_made = n_lost = 0
    for name in draw.sample(sorted(CASES), n_models):
        way = draw.choice(WAYS)
        expected = digests_of(name, way)  # what is kept for the next time is made now
        found, n_calls = made(library, name, way, -1, -1)
        assert found == expected, (name, way)
        for fault in range(n_faults if n_calls > 0 else 0):
            first = draw.randrange(n_calls)
            last = first if fault % 2 == 0 else FOREVER
            print(name, way, first, last, "of", n_calls, file=sys.stderr, flush=True)
            found, _ = made(library, name, way, first, last)
            assert found in (None, expected), (name, way, first, last)
            n_made += 1
            n_lost += found is None
    print(n_made, n_lost)


if __name__ == "__main__":
    main()
