"""Keys of the labels of groups: a number for each label that tells nothing of the other labels.

Equal labels have equal keys, in whatever table, partition or type they are stored::

    True, 1, 1.0, numpy.int8(1)     1               whole numbers: modulo 2**64
    0.5                             its 64 bits     other floats
    "a"                             blake2b         of UTF-8, whether numpy's, pandas' or Arrow's
    2026-01-01                      nanoseconds     since 1970 in UTC, modulo 2**64

So keys can be drawn by (`dtrees._random`) wherever the labels lie, and stay when labels are added.
Two labels of one key, one pair in 2**64 but for numbers beyond 64 bits, are one group.
"""

from __future__ import annotations

import datetime
import hashlib
import numbers
from typing import Any

import numpy as np

from dtrees.coding.labels import is_hashable, is_missing

NS_PER_DAY = 86_400_000_000_000


def group_keys(labels: Any) -> np.ndarray:
    """The key of every label, uint64, of the shape of `labels`.

    Labels are numbers, strings, bytes or dates, also mixed; a missing one is a ValueError, one of
    another kind a TypeError. O(n) for numbers and dates; for strings and objects a dictionary
    look-up each, and a hash for each distinct label.
    """
    if isinstance(labels, list | tuple):  # numpy would make strings of all, if one of them is
        values = np.fromiter(labels, dtype=object, count=len(labels))
    else:
        values = np.asarray(labels)
    kind = values.dtype.kind
    if kind in "bi":
        return values.astype(np.int64).view(np.uint64)
    if kind == "u":
        return values.astype(np.uint64)
    if kind == "f":
        return _of_floats(values.astype(np.float64))
    if kind == "M":
        return _of_dates(values)
    return _of_objects(values)


def _of_floats(values: np.ndarray) -> np.ndarray:
    if np.isnan(values).any():
        raise _missing()
    keys = values.copy().view(np.uint64)
    whole = values == np.floor(values)
    signed = whole & (values >= -(2.0**63)) & (values < 2.0**63)
    keys[signed] = values[signed].astype(np.int64).view(np.uint64)
    high = whole & (values >= 2.0**63) & (values < 2.0**64)
    keys[high] = values[high].astype(np.uint64)
    return keys


def _of_dates(values: np.ndarray) -> np.ndarray:
    if np.isnat(values).any():
        raise _missing()
    days = values.astype("M8[D]")
    rest = (values - days).astype("m8[ns]")
    return (days.astype(np.int64) * NS_PER_DAY + rest.astype(np.int64)).view(np.uint64)


def _of_objects(values: np.ndarray) -> np.ndarray:
    labels = values.ravel().tolist()
    try:
        distinct = dict.fromkeys(labels)
    except TypeError as error:
        bad = next(label for label in labels if not is_hashable(label))
        raise _no_label(bad) from error
    key_of = {label: _key(label) for label in distinct}
    keys = np.fromiter(map(key_of.__getitem__, labels), np.uint64, len(labels))
    return keys.reshape(values.shape)


def _key(label: Any) -> int:
    if isinstance(label, str):
        return _hash(label.encode("utf-8", "surrogatepass"))
    if isinstance(label, bytes):
        return _hash(label)
    if is_missing(label):
        raise _missing()
    if isinstance(label, numbers.Integral | np.bool_):
        return _of_integer(int(label))
    if isinstance(label, numbers.Real):
        return int(_of_floats(np.array([float(label)]))[0])
    if isinstance(label, datetime.date | np.datetime64):
        return int(_of_dates(_as_dates(label))[0])
    raise _no_label(label)


def _of_integer(value: int) -> int:
    if -(2**63) <= value < 2**64:
        return value % 2**64
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if number == value:  # as a column of floats has it
        return int(np.float64(number).view(np.uint64))
    return _hash(str(value).encode())


def _as_dates(label: Any) -> np.ndarray:
    """A date, with or without a time and a zone, as ``datetime64`` (1,)."""
    if getattr(label, "tzinfo", None) is not None:
        label = label.astimezone(datetime.UTC).replace(tzinfo=None)
    if hasattr(label, "to_datetime64"):  # of pandas: to the nanosecond
        label = label.to_datetime64()
    return np.array([label], dtype="M8")


def _hash(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _missing() -> ValueError:
    return ValueError(
        "groups holds missing values. Give every row the label of its group, or a label of its own."
    )


def _no_label(label: Any) -> TypeError:
    return TypeError(
        f"groups holds {str(label)[:60]!r} of type {type(label).__name__}: labels of groups are "
        "numbers, strings or dates. Give strings of them."
    )
