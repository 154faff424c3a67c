"""Pickles that are few pieces.

Protocol 5 hands every array over as a buffer of its own, and Dask sends each buffer as a frame,
which costs it about 50 µs on either side whatever its size. Codes and targets of a few rows are a
dozen arrays, most of them as long as the table has columns: these go inside the pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

LARGE = 4096  # bytes, from which on an array is a buffer of its own


class SmallArraysInside:
    """Pickles small arrays among its attributes as bytes; they come back as arrays."""

    def _lock_arrays(self) -> None:
        """Make all arrays read only."""
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
                vars(self)[name] = array

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: _Inside(value) if _is_small(value) else value
            for name, value in vars(self).items()
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():  # of a copy that was not pickled on the way
            vars(self)[name] = value.array if isinstance(value, _Inside) else value


class _Inside:
    """An array that is pickled as its bytes, and comes back as itself, read only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        order: Literal["C", "F"] = "C" if self.array.flags.c_contiguous else "F"
        data = self.array.tobytes(order)
        return _restored, (data, self.array.dtype.str, self.array.shape, order)


def _restored(
    data: bytes, dtype: str, shape: tuple[int, ...], order: Literal["C", "F"]
) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape, order=order)


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes < LARGE and value.dtype.kind in "biufSU"
