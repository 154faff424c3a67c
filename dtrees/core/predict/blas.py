"""One thread for NumPy's products of matrices, where threads are handed out elsewhere.

NumPy hands a product to BLAS, which takes all cores whatever ``n_jobs`` says. Products here are of
blocks of rows, and blocks are tasks of a `Runner`. So each product gets one thread::

    n_jobs=2     thread 1   block 0: product   block 2: product
                 thread 2   block 1: product   block 3: product

The limit is one of the process, and is set by the thread that hands out the blocks. Only one
thread at a time is within, so that each finds the limit that was there before, and leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock

from threadpoolctl import ThreadpoolController

from dtrees._forks import lock_of_process

_turn = lock_of_process(RLock)


@cache
def _controller() -> ThreadpoolController:
    """The BLAS of this process; libraries are searched once, which takes 0.3 ms."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, a product is computed on the thread that asks for it; costs 0.1 ms."""
    with _turn, _controller().limit(limits=1, user_api="blas"):
        yield
