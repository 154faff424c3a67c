"""Pickles that are few pieces.

Protocol 5 hands every array over as a buffer of its own, and Dask sends each buffer as a frame,
which costs it about 50 µs on either side whatever its size. Codes and targets of a few rows are a
dozen arrays, most of them as long as the table has columns: these go inside the pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

LARGE = 4096  # bytes, from which on an array is a buffer of its own
KINDS = "biufSU"  # of arrays without objects


class SmallArraysInside:
    """Pickles small arrays among its attributes as bytes; they come back as read-only arrays."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, and of attributes that have some."""
        return sum(int(getattr(value, "nbytes", 0)) for value in vars(self).values())

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        for name, array in state.items():
            if isinstance(array, np.ndarray) and array.nbytes < LARGE and array.dtype.kind in KINDS:
                order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
                state[name] = Packed(array.tobytes(order), array.dtype.str, array.shape, order)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, Packed):
                value = np.frombuffer(value.data, value.dtype).reshape(
                    value.shape, order=value.order
                )
            vars(self)[name] = value


class Packed(NamedTuple):
    """An array as it is pickled."""

    data: bytes
    dtype: str
    shape: tuple[int, ...]
    order: Literal["C", "F"]
