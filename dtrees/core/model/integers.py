"""Integers in the narrowest type in which few of them do not fit.

Those that do not are *escapes*: the largest value of an unsigned type, the least of a signed one,
stands in their place, and they follow in an array of their own (``name.escapes``). Integers are
divided by their greatest common divisor first, where that is said (``name.divisor``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

_UNSIGNED = (np.uint8, np.uint16, np.uint32)
_SIGNED = (np.int8, np.int16, np.int32)


def narrow(name: str, values: np.ndarray, divide: bool = False) -> Arrays:
    """Integers in the type that takes least, under their name.

    Parameters
    ----------
    name : str
    values : int64 (n,)
    divide : bool, default=False
        By their greatest common divisor, if that is above 1.

    Returns
    -------
    dict
        ``name``, and where they are needed ``name.escapes`` and ``name.divisor``, int64.
    """
    arrays: Arrays = {}
    values = np.ascontiguousarray(values, dtype=np.int64)
    if divide and len(values):
        divisor = int(np.gcd.reduce(values))
        if divisor > 1:
            values = values // divisor
            arrays[f"{name}.divisor"] = np.array([divisor], dtype=np.int64)
    signed = bool(values.min(initial=0) < 0)
    best, best_bytes = values, values.nbytes
    escapes = values[:0]
    for kind in _SIGNED if signed else _UNSIGNED:
        info = np.iinfo(kind)
        low, high = (info.min + 1, info.max) if signed else (0, info.max - 1)
        outside = (values < low) | (values > high)
        n_bytes = len(values) * info.bits // 8 + 8 * int(np.count_nonzero(outside))
        if n_bytes < best_bytes:
            marker = info.min if signed else info.max
            best, best_bytes = np.where(outside, marker, values).astype(kind), n_bytes
            escapes = values[outside]
    arrays[name] = best
    if len(escapes):
        arrays[f"{name}.escapes"] = escapes
    return arrays


def widen(arrays: Mapping[str, np.ndarray], name: str, length: int) -> np.ndarray:
    """The integers that `narrow` got, int64 (length,).

    Raises
    ------
    ValueError
        There are not so many, or escapes are missing.
    """
    packed = arrays[name]
    if packed.dtype.kind not in "iu" or packed.shape != (length,) or packed.dtype == np.uint64:
        raise ValueError(f"{name} is not {length} integers.")
    values = packed.astype(np.int64)
    if packed.dtype != np.int64:
        info = np.iinfo(packed.dtype)
        outside = np.flatnonzero(packed == (info.min if info.min < 0 else info.max))
        escapes = arrays.get(f"{name}.escapes", values[:0])
        if escapes.dtype != np.int64 or escapes.shape != outside.shape:
            raise ValueError(f"{name} has {len(outside)} escapes, but not so many values for them.")
        values[outside] = escapes
    if f"{name}.divisor" in arrays:
        divisor = typed(arrays, f"{name}.divisor", np.int64)
        if divisor.shape != (1,):
            raise ValueError(f"{name} has not one divisor.")
        values *= divisor[0]
    return values


def typed(arrays: Mapping[str, np.ndarray], name: str, dtype: Any) -> np.ndarray:
    """A one-dimensional array of a type."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not a row of {dtype}.")
    return array


def bits(arrays: Mapping[str, np.ndarray], name: str, length: int) -> np.ndarray:
    """Packed bits, bool (length,)."""
    packed = typed(arrays, name, np.uint8)
    if len(packed) != -(-length // 8):
        raise ValueError(f"{name} is not {length} bits.")
    return np.unpackbits(packed, count=length).astype(bool)
