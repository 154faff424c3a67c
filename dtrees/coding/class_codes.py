"""Labels of classes as codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtrees.coding._codes import distinct_rows
from dtrees.coding.labels import is_missing, object_array
from dtrees.coding.weights import check_finite

COUNTED_ROWS = 2**16  # at a time


def class_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the number of every row's label.

    Whole numbers of a small range are counted instead of sorted; of strings and objects, only the
    distinct ones are.

    Returns
    -------
    classes : (n_classes,), dtype of the labels
    codes : uint8, uint16 or uint32 (n_rows,)
    """
    kind = labels.dtype.kind
    if kind == "c":
        raise ValueError("y: Complex data not supported. Give y as real numbers or labels.")
    if kind == "f":
        check_finite(labels, "y")
    if kind in ("O", "T"):
        return _object_classes(labels)
    if kind in "Mm" and np.isnat(labels).any():
        raise _missing_label(labels[np.isnat(labels)][0])
    if kind == "b":
        labels = labels.view(np.uint8)
    if kind in "iub":
        low, high = int(labels.min()), int(labels.max())
        if high - low <= _most_counted(len(labels)):
            wide = np.dtype(np.int64 if kind == "i" else np.uint64)
            lowest = wide.type(low)

            def beyond_lowest(rows: slice) -> np.ndarray:
                return (labels[rows].astype(wide, copy=False) - lowest).astype(np.intp)

            values, codes = _count(beyond_lowest, len(labels), high - low + 1)
            classes = (values.astype(wide) + lowest).astype(labels.dtype)
            return classes.view(np.bool_) if kind == "b" else classes, codes
    if kind == "U" and labels.dtype.itemsize > 0:
        return _string_classes(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(_code_type(len(classes)))


def _most_counted(n_rows: int) -> int:
    """The range up to which numbers are counted; larger ones are sorted."""
    return max(1024, 4 * n_rows)


def _count(
    numbers: Callable[[slice], np.ndarray], n_rows: int, n_numbers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers below `n_numbers`, ascending, and the position of every row's among them.

    `numbers` says those of some rows, which are counted a few at a time: what is made on the way
    stays in the cache, and takes no memory in proportion to the rows.
    """
    stretches = [slice(start, start + COUNTED_ROWS) for start in range(0, n_rows, COUNTED_ROWS)]
    present = np.zeros(n_numbers, dtype=bool)
    for rows in stretches:
        present[numbers(rows)] = True
    values = np.flatnonzero(present)
    position: np.ndarray = (np.cumsum(present) - 1).astype(_code_type(len(values)))
    codes = np.empty(n_rows, dtype=position.dtype)
    for rows in stretches:
        codes[rows] = position[numbers(rows)]
    return values, codes


def _string_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of strings of a fixed width, of which only the distinct ones are sorted."""
    native = np.ascontiguousarray(labels, dtype=labels.dtype.newbyteorder("="))
    first, number = distinct_rows(native.view(np.uint32).reshape(len(labels), -1))
    classes, place = np.unique(labels[first], return_inverse=True)
    return classes, place.astype(_code_type(len(classes)))[number]


def _object_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of Python objects."""
    values = labels.tolist()
    try:
        distinct = set(values)
        missing = [v for v in distinct if is_missing(v)]
        if missing:
            raise _missing_label(missing[0])
        ordered = sorted(distinct)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in values})
        raise TypeError(
            f"y holds objects of the types {kinds}, which cannot be compared: labels must be all "
            "numbers or all strings. Convert y to one type."
        ) from error
    number = {value: i for i, value in enumerate(ordered)}
    kind = np.dtype(_code_type(len(ordered)))
    codes = np.fromiter(map(number.__getitem__, values), kind, len(values))
    return object_array(ordered), codes


def _missing_label(label: Any) -> ValueError:
    return ValueError(f"Input y contains NaN: a missing label ({label!r}). Drop these rows first.")


def _code_type(n_classes: int) -> type:
    """The narrowest unsigned integer for so many classes."""
    if n_classes <= 256:
        return np.uint8
    return np.uint16 if n_classes <= 65_536 else np.uint32
