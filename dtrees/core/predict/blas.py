"""One thread for NumPy's products of matrices, where threads are handed out elsewhere.

NumPy hands a product to BLAS, which takes all cores whatever ``n_jobs`` says. Products here are of
blocks of rows, and blocks are tasks of a `Runner`. So each product gets one thread::

    n_jobs=2     thread 1   block 0: product   block 2: product
                 thread 2   block 1: product   block 3: product

The limit is one of the process, and is set by the thread that hands out the blocks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """The BLAS of this process; libraries are searched once, which takes 0.3 ms."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Within it, a product is computed on the thread that asks for it; costs 0.1 ms."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
