"""One thread for NumPy's products of matrices, where threads are handed out elsewhere.

NumPy hands a product to BLAS, which takes all cores whatever ``n_jobs`` says. Products here are of
blocks of rows, and blocks are tasks of a `Runner`. So each product gets one thread::

    n_jobs=2     thread 1   block 0: product   block 2: product
                 thread 2   block 1: product   block 3: product

The limit is one of the process. Several threads may want it at a time: the first one sets it, and
the last one takes it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list[Any] = []  # the limit that is in force, once for each who is within


@cache
def _controller() -> ThreadpoolController:
    """The BLAS of this process; libraries are searched once, which takes 0.3 ms."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, a product is computed on the thread that asks for it; costs 0.1 ms."""
    with _lock:
        limit = _limits[0] if _limits else _controller().limit(limits=1, user_api="blas")
        _limits.append(limit)
    try:
        yield
    finally:
        with _lock:
            _limits.pop()
            if not _limits:
                limit.restore_original_limits()
