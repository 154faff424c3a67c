"""Parameters, attributes and categories as JSON, with their types.

What JSON has stands for itself: None, True, strings, Python's integers and finite floats, lists.
Everything else is an object of one key, which says what it is::

    {"float": "nan"}                                    nan, inf, -inf
    {"scalar": ["<f4", "0000803f"]}                     a numpy scalar: dtype and bytes
    {"array": ["<i8", [3], "01..."]}                    a small array: dtype, shape and bytes
    {"member": "values/0"}                              a large one, in a member of the file
    {"objects": [[2], ["a", "b"]]}                      an array of objects: shape and items
    {"tuple": [...]}, {"dict": [[key, value], ...]}
    {"set": [...]}, {"frozenset": [...]}                items in the order of their JSON
    {"bytes": "6162"}, {"decimal": "1.10"}, {"fraction": [1, 3]}
    {"datetime": "2024-05-01T13:30:00"}, {"date": ...}, {"time": ...}
    {"timedelta": [days, seconds, microseconds]}
    {"Timestamp": [value, unit, time zone]}, {"Timedelta": [value, unit]}
    {"Interval": [left, right, closed]}, {"Period": [ordinal, frequency]}

The last two lines are pandas', which is imported when a file holds one of them. A value of any
other type is refused when it is written.

What is read may come from anywhere, so each kind is read from exactly what is written for it:
parts of the right number and type, shapes that are the size of the data, letters and booleans that
there are. Numbers are bounded (`MOST_BITS`, `MOST_DIGITS`, `MOST_EXPONENT`), as a few bytes of a
power or a fraction can otherwise stand for more than a computer holds; larger ones are refused when
they are written, too.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

INLINE_BYTES = 512
MOST_BITS = 4096  # of an integer
MOST_DIGITS = 1250  # of a decimal
MOST_EXPONENT = 6176  # of a decimal, up or down: that of IEEE 754's decimal128
LONGEST_NAME = 100  # of a time zone or a frequency
KINDS = "biufcSUMm"  # of dtypes that a file may hold
TYPE = re.compile(r"[<>|][biufcSUMm][0-9]{1,10}(\[[0-9]{0,10}[A-Za-z]{1,7}\])?")  # "<M8[25s]"
SETS: dict[str, type] = {"set": set, "frozenset": frozenset}
FLOAT_BYTES = {"f": (2, 4, 8), "c": (8, 16)}  # wider ones differ between machines


def is_storable(dtype: np.dtype) -> bool:
    """Whether arrays of the type are bytes that mean the same everywhere."""
    return (
        dtype.kind in KINDS
        and dtype.itemsize > 0
        and dtype.names is None
        and dtype.subdtype is None
        and (dtype.kind not in "fc" or dtype.itemsize in FLOAT_BYTES[dtype.kind])
    )


class Encoder:
    """Values to JSON; large arrays are collected.

    Attributes
    ----------
    arrays : dict of str to array
        By the name of their member.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, owner: str) -> Any:
        """The value as JSON.

        Parameters
        ----------
        value : object
        owner : str
            What the value belongs to, for the message.

        Raises
        ------
        TypeError
            The value is of a type that a model file does not hold.
        """
        kind = type(value)
        if not is_bounded(value):
            raise TypeError(
                f"{owner} holds a number that is too large for a model file: integers of at most "
                f"{MOST_BITS} bits, and decimals of at most {MOST_DIGITS} digits and exponents of "
                f"at most {MOST_EXPONENT} can be written. Convert it to a float or a string."
            )
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return [self.encode(item, owner) for item in value]
        if kind is tuple:
            return {"tuple": [self.encode(item, owner) for item in value]}
        if kind is dict:
            pairs = value.items()
            return {"dict": [[self.encode(k, owner), self.encode(v, owner)] for k, v in pairs]}
        if kind in SETS.values():  # sets have an order of their own in each process
            items = [self.encode(item, owner) for item in value]
            return {kind.__name__: sorted(items, key=json.dumps)}
        if isinstance(value, np.generic) and is_storable(value.dtype):
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if isinstance(value, np.generic) and value.dtype.kind in "US":
            return {"scalar": [value.dtype.kind, ""]}  # the empty string has no width
        if kind is np.ndarray or kind is np.memmap:
            return self._encode_array(value, owner)
        made = _PLAIN.get(kind)
        if made is None and kind.__module__.partition(".")[0] == "pandas":
            made = _PANDAS.get(kind.__name__)
        if made is None:
            raise TypeError(
                f"{owner} holds a {kind.__module__}.{kind.__qualname__} ({str(value)[:40]!r}), "
                "which a model file cannot hold. Convert it to numbers, strings, dates, or lists "
                "and arrays of these."
            )
        name, write, _ = made
        return {name: self.encode(write(value), owner)}

    def _encode_array(self, array: np.ndarray, owner: str) -> dict[str, Any]:
        if array.dtype == object:
            items = [self.encode(item, owner) for item in array.ravel().tolist()]
            return {"objects": [list(array.shape), items]}
        if not is_storable(array.dtype):
            raise TypeError(
                f"{owner} is an array of {array.dtype}, which a model file cannot hold. Convert it "
                "to numbers, strings or objects."
            )
        if array.nbytes <= INLINE_BYTES:
            return {"array": [array.dtype.str, list(array.shape), array.tobytes().hex()]}
        name = f"values/{len(self.arrays)}"
        self.arrays[name] = array
        return {"member": name}


def is_bounded(value: Any) -> bool:
    """Whether a value is no number, or one that takes little time and memory in any form."""
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    if isinstance(value, Fraction):
        return is_bounded(value.numerator) and is_bounded(value.denominator)
    if isinstance(value, Decimal) and value.is_finite():
        digits, exponent = value.as_tuple()[1:]
        return len(digits) <= MOST_DIGITS and abs(int(exponent)) <= MOST_EXPONENT
    return True


def decode(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value that `Encoder.encode` was given.

    Raises
    ------
    ValueError, TypeError, KeyError
        The JSON is not what the encoder writes.
    """
    if value is None or isinstance(value, bool | int | float | str):
        if not is_bounded(value) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError("a number is too large")
        return value
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    ((name, inside),) = value.items()
    if name == "member":
        return arrays[inside]
    if name == "objects":
        shape, items = _parts(inside, list, list)
        array = np.empty(len(items), dtype=object)
        array[:] = [decode(item, arrays) for item in items]
        return array.reshape(_shape(shape, len(items)))
    if not isinstance(inside, list | str):
        raise ValueError(f"{str(inside)[:20]!r} is part of no value")
    if name == "tuple":
        return tuple(decode(item, arrays) for item in inside)
    if name == "dict":
        pairs = [_parts(pair, object, object) for pair in inside]
        found = {decode(k, arrays): decode(v, arrays) for k, v in pairs}
        if len(found) != len(pairs):
            raise ValueError("keys are equal")
        return found
    if name in SETS:
        items = [decode(item, arrays) for item in inside]
        if len(set(items)) != len(items):
            raise ValueError("items of a set are equal")
        return SETS[name](items)
    return _READ[name](decode(inside, arrays))


def _parts(parts: Any, *kinds: Any) -> list:
    """Parts of a value, if they are of these types."""
    if type(parts) is not list or len(parts) != len(kinds):
        raise ValueError(f"a value has not {len(kinds)} parts")
    for part, kind in zip(parts, kinds, strict=True):
        if not isinstance(part, kind) or (kind is int and isinstance(part, bool)):
            raise ValueError(f"{str(part)[:20]!r} is a part of another value")
    return parts


def _shape(shape: list, n_items: int) -> tuple[int, ...]:
    """A shape of so many items; nothing is left to be found out from the data."""
    _parts(shape, *[int] * len(shape))
    if min(shape, default=0) < 0 or math.prod(shape) != n_items:
        raise ValueError(f"{n_items} items are not of shape {str(shape[:5])[:40]}")
    return tuple(shape)


def check_bytes(array: np.ndarray) -> None:
    """Whether the bytes of an array are values of its type, where not all bytes are.

    Raises
    ------
    ValueError
        A boolean is neither, or a letter is beyond all of Unicode.
    """
    if array.size == 0:
        return
    if array.dtype.kind == "b" and array.view(np.uint8).max() > 1:
        raise ValueError("a boolean is neither true nor false")
    if array.dtype.kind == "U":
        letters = array.reshape(-1).view(array.dtype.str[0] + "u4")
        if letters.max() > sys.maxunicode:
            raise ValueError("a letter is beyond all of Unicode")


def _read_scalar(parts: list) -> Any:
    dtype, data = _parts(parts, str, str)
    if dtype in ("U", "S"):
        return np.dtype(dtype).type()
    return _read_array([dtype, [], data])[()]


def _read_array(parts: list) -> np.ndarray:
    name, shape, data = _parts(parts, str, list, str)
    if TYPE.fullmatch(name) is None:  # NumPy reads whatever it is given, at length
        raise ValueError(f"arrays of {name[:20]!r} are not stored")
    dtype = np.dtype(name)
    if not is_storable(dtype) or dtype.str != name:
        raise ValueError(f"arrays of {dtype} are not stored")
    array = np.frombuffer(bytes.fromhex(data), dtype=dtype)
    check_bytes(array)
    return array.reshape(_shape(shape, len(array))).copy()


def _read_fraction(parts: list) -> Fraction:
    numerator, denominator = _parts(parts, int, int)
    found = Fraction(numerator, denominator)
    if found.denominator != denominator:
        raise ValueError("a fraction is not in lowest terms")
    return found


def _read_decimal(text: Any) -> Decimal:
    if not isinstance(text, str) or len(text) > MOST_DIGITS + 20:
        raise ValueError("a decimal is no text, or too long")
    found = Decimal(text)
    if not is_bounded(found):
        raise ValueError("a decimal is too large")
    return found


def _write_zone(zone: Any) -> Any:
    """Time zones by name where they have one, otherwise by their distance from UTC in seconds."""
    if zone is None or zone is UTC:
        return None if zone is None else "UTC"
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str):
        return name
    distance = zone.utcoffset(None)
    if distance is None:
        raise TypeError(f"A model file cannot hold times in the zone {zone!r}.")
    return distance.total_seconds()


def _read_zone(zone: Any) -> Any:
    if zone is None:
        return None
    if isinstance(zone, str):
        return UTC if zone == "UTC" else import_module("zoneinfo").ZoneInfo(_name(zone))
    return timezone(timedelta(seconds=zone))


def _name(name: str) -> str:
    """A name that others look up, if it is no longer than such names are."""
    if len(name) > LONGEST_NAME:
        raise ValueError(f"{name[:20]!r}... is no name")
    return name


def _write_datetime(value: datetime) -> list:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _write_zone(value.tzinfo)]


_ZONE = str | int | float | None


def _read_datetime(parts: list) -> datetime:
    text, fold, zone = _parts(parts, str, int, _ZONE)
    return datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _pandas(name: str) -> Any:
    return getattr(import_module("pandas"), name)


def _unit(unit: str) -> Any:
    """A unit of pandas."""
    if unit not in ("s", "ms", "us", "ns"):
        raise ValueError(f"times are not counted in {unit[:20]!r}")
    return unit


def _read_timestamp(parts: list) -> Any:
    value, unit, zone = _parts(parts, int, str, _ZONE)
    stamp = _pandas("Timestamp")(np.datetime64(value, _unit(unit)))
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_read_zone(zone))


def _read_span(parts: list) -> Any:
    value, unit = _parts(parts, int, str)
    return _pandas("Timedelta")(np.timedelta64(value, _unit(unit)))


def _read_interval(parts: list) -> Any:
    return _pandas("Interval")(*_parts(parts, object, object, str))


def _read_period(parts: list) -> Any:
    ordinal, frequency = _parts(parts, int, str)
    return _pandas("Period")(ordinal=ordinal, freq=_name(frequency))


_Read = Callable[[Any], Any]
_Way = tuple[str, Callable[[Any], Any], _Read]  # name, and how to write and read

_PLAIN: dict[type, _Way] = {
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    Decimal: ("decimal", str, _read_decimal),
    Fraction: ("fraction", lambda f: [f.numerator, f.denominator], _read_fraction),
    datetime: ("datetime", _write_datetime, _read_datetime),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: (
        "timedelta",
        lambda t: [t.days, t.seconds, t.microseconds],
        lambda parts: timedelta(*_parts(parts, int, int, int)),
    ),
}
_PANDAS: dict[str, _Way] = {
    name: (name, write, read)
    for name, write, read in (
        ("Timestamp", lambda t: [t._value, t.unit, _write_zone(t.tzinfo)], _read_timestamp),
        ("Timedelta", lambda t: [t._value, t.unit], _read_span),
        ("Interval", lambda i: [i.left, i.right, i.closed], _read_interval),
        ("Period", lambda p: [p.ordinal, p.freqstr], _read_period),
    )
}
_READ: dict[str, _Read] = {
    "float": {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.__getitem__,
    "scalar": _read_scalar,
    "array": _read_array,
    **{name: read for name, _, read in (*_PLAIN.values(), *_PANDAS.values())},
}
