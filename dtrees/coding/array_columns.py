"""Columns of numpy arrays and lists: numbers or labels, and the unit of each."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from dtrees.coding.labels import DATES, SPANS, Labels
from dtrees.coding.times import BOOL, NUMBER, time_column, time_objects

LARGEST_WHOLE = 2.0**53  # up to which float64 holds every integer

Column = tuple[np.ndarray | Labels, int]  # with the position of its unit in `UNITS`


def as_array(X: Any) -> np.ndarray:
    """A list or array-like as an array; numbers beside strings in a list stay numbers."""
    if X is None or isinstance(X, (str, bytes, Mapping, Set)):
        raise ValueError(
            f"Expected 2D array, got a {type(X).__name__} instead: {reprlib.repr(X)}. "
            "Give an array, a data frame or a sparse matrix."
        )
    try:
        array = np.asarray(_unmasked(X) if isinstance(X, np.ma.MaskedArray) else X)
        if not isinstance(X, np.ndarray) and not hasattr(X, "__array__"):
            is_rounded = array.dtype.kind == "f" and _may_be_rounded(array)
            if array.dtype.kind in "US" or is_rounded:
                array = np.asarray(X, dtype=object)
    except ValueError as error:
        raise ValueError(
            f"X of type {type(X).__name__} does not form a 2D array: {error}. "
            "Give rows of equal length."
        ) from error
    if array.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: X has dtype "
            f"{array.dtype}. Give real and imaginary parts as separate columns."
        )
    if array.ndim < 2:
        what = "1D" if array.ndim == 1 else "scalar"
        raise ValueError(
            f"Expected 2D array, got {what} array instead:\narray={np.array2string(array)[:200]}.\n"
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X has shape "
            f"{array.shape}. Reshape it to (rows, columns)."
        )
    return array


def _unmasked(X: Any) -> np.ndarray:
    """A masked array with NaN, NaT or None in the cells that are masked."""
    kind = X.dtype.kind
    if not np.ma.is_masked(X) or kind == "c":
        return X.data
    if kind in "biu" and not is_beyond_floats(X.compressed()):
        return X.astype(np.float64).filled(np.nan)
    if kind == "f":
        return X.filled(np.nan)
    filled = X.data.copy() if kind in "Mm" else X.data.astype(object)
    filled[np.ma.getmaskarray(X)] = "NaT" if kind in "Mm" else None
    return filled


def array_column(values: np.ndarray, j: int, name: str) -> Column:
    """One column of a numpy type: numbers or labels, and its unit."""
    kind = values.dtype.kind
    if kind in "biuf":
        return values, BOOL if kind == "b" else NUMBER
    if kind in "Mm":
        return time_column(values, name)
    if kind in "UOT":
        return object_column(values, j, name)
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name} of X is {values.dtype}.")
    raise TypeError(
        f"Column {name} of X has dtype {values.dtype}, which is neither numbers nor labels. "
        "Convert it to numbers or strings."
    )


def object_column(values: np.ndarray, j: int, name: str) -> Column:
    """Strings or objects: numbers, dates or time spans where every cell is one; else labels."""
    if values.dtype.kind == "U":
        distinct, codes = np.unique(values, return_inverse=True)
        return Labels(j, codes, distinct.tolist()), NUMBER
    cells = values.tolist()
    if not any(isinstance(cell, str) for cell in cells):
        if any(isinstance(cell, DATES + SPANS) for cell in cells):
            times = time_objects(cells, name)
            if times is not None:
                return times
        try:
            parsed = values.astype(np.float64)
            if np.isfinite(parsed).all() and not _may_be_rounded(parsed):
                return parsed, NUMBER
        except (TypeError, ValueError, ArithmeticError):
            pass
    return Labels.of(j, cells, name), NUMBER


def _may_be_rounded(values: np.ndarray) -> bool:
    """Whether floats may be integers that have lost digits: 2**53 is what 2**53 + 1 becomes."""
    return bool((np.abs(values) >= LARGEST_WHOLE).any())


def is_beyond_floats(values: np.ndarray) -> bool:
    """Whether integers of 64 bits, as they are, may have too many digits for a float64."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return int(values.max()) > LARGEST_WHOLE or int(values.min()) < -LARGEST_WHOLE


def integer_column(values: np.ndarray, missing: np.ndarray, j: int) -> np.ndarray | Labels:
    """Integers, some of which are missing: float64 where that holds them all, otherwise labels."""
    if not missing.any():
        return values
    if not is_beyond_floats(values[~missing]):
        out = values.astype(np.float64)
        out[missing] = np.nan
        return out
    distinct, codes = np.unique(values, return_inverse=True)
    return Labels(j, np.where(missing, -1, codes), distinct.tolist())
