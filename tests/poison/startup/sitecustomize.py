"""Arrays that are full of one byte when they are made, from the start of Python on.

`poison.h` fills what the C library hands out. NumPy and the coding hand some memory out again
without asking it: small arrays, and the buffers of tiles.
"""

import ctypes
import os
from contextlib import contextmanager
from functools import wraps

import numpy as np


def poison_with(byte):
    """Fill memory with another byte from now on."""
    global pattern
    pattern = byte
    ctypes.CDLL(os.environ["LD_PRELOAD"]).poison_with(byte)


def filling(make):
    """A function that makes new arrays, which are then full of the byte."""

    @wraps(make)
    def made(*args, **options):
        array = make(*args, **options)
        if isinstance(array, np.ndarray) and not array.dtype.hasobject:
            ctypes.memset(array.__array_interface__["data"][0], pattern, array.nbytes)
        return array

    return made


if "DTREES_POISON" in os.environ:
    pattern = int(os.environ["DTREES_POISON"], 16)
    np.empty, np.empty_like = filling(np.empty), filling(np.empty_like)

    from dtrees.coding import dense_columns

    borrowed = dense_columns.borrowed

    @contextmanager
    def borrowed_and_filled(spare, n_bytes):
        with borrowed(spare, n_bytes) as buffer:
            buffer[:] = pattern
            yield buffer

    dense_columns.borrowed = borrowed_and_filled
