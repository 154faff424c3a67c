"""Admission: what every table has to meet before it is coded.

Column names and infinities, in the words that scikit-learn uses for the same faults, so that its
checks and its users' habits hold.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from dtrees.coding import _encode
from dtrees.coding.tables import Table
from dtrees.typing import Runner, serial

TASK_CELLS = 4 * 2**20  # cells of a task that looks for infinities


def check_names(fitted: np.ndarray | None, names: np.ndarray | None, estimator: str) -> None:
    """Compare the names of a table's columns with those that were fitted."""
    if fitted is None and names is None:
        return
    if fitted is None:
        warnings.warn(
            f"X has feature names, but {estimator} was fitted without feature names",
            stacklevel=4,
        )
        return
    if names is None:
        warnings.warn(
            f"X does not have valid feature names, but {estimator} was fitted with feature names",
            stacklevel=4,
        )
        return
    if len(names) == len(fitted) and np.all(names == fitted):
        return
    message = "The feature names should match those that were passed during fit.\n"
    unexpected = sorted(set(names) - set(fitted))
    gone = sorted(set(fitted) - set(names))
    for title, listed in (
        ("Feature names unseen at fit time:\n", unexpected),
        ("Feature names seen at fit time, yet now missing:\n", gone),
    ):
        if listed:
            message += title + "".join(f"- {name}\n" for name in listed[:5])
            message += "- ...\n" if len(listed) > 5 else ""
    if not unexpected and not gone:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def refuse_infinities(table: Table, run: Runner = serial) -> None:
    """Raise when a cell is infinite. O(cells), in the order of memory; tasks of rows for `run`."""
    for block in table.numbers:
        values = block.values
        if values.dtype.kind == "f" and _holds_infinity(values, run):
            infinite = np.zeros(table.n_columns, dtype=bool)
            infinite[block.columns] = np.isinf(values).any(axis=0)
            refuse_columns(table, infinite)
    if table.sparse is not None and table.sparse.dtype.kind == "f":
        places = np.flatnonzero(np.isinf(table.sparse.data))
        infinite = np.zeros(table.n_columns, dtype=bool)
        infinite[np.searchsorted(table.sparse.indptr, places, "right") - 1] = True
        refuse_columns(table, infinite)


def refuse_columns(table: Table, infinite: np.ndarray) -> None:
    """Raise when some columns, bool (n_columns,), hold an infinity."""
    if infinite.any():
        raise ValueError(
            "Input X contains infinity or a value too large for dtype('float64'). "
            f"(column {table.name(int(np.argmax(infinite)))}) Replace infinities by a large "
            "number, or by NaN, which counts as missing."
        )


def _holds_infinity(values: np.ndarray, run: Runner) -> bool:
    """Whether a block of floats holds an infinity."""
    if values.dtype in (np.float32, np.float64):
        native = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
        native = np.require(native, requirements="A")
        if native.size <= TASK_CELLS:
            return _encode.any_infinite(native)
        parts = np.array_split(native, -(-native.size // TASK_CELLS))
        return any(run([partial(_encode.any_infinite, part) for part in parts]))
    return bool(np.isinf(values).any())
