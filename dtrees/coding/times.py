"""Units of ordered columns, and dates and time spans as numbers.

Dates and time spans of any type are float64 nanoseconds, those of dates since 1970 in UTC, with NaN
for missing: numpy's, pandas', polars' and Arrow's columns, and columns of Python's objects::

    datetime.date, datetime.datetime, numpy.datetime64, pandas.Timestamp        dates
    datetime.timedelta, numpy.timedelta64, pandas.Timedelta                     time spans
    datetime.time                                                 time spans since midnight

A float64 tells times apart that are 256 ns from each other, in this century.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtrees.coding.labels import DATES, SPANS, is_missing

UNITS = ("number", "datetime64[ns]", "timedelta64[ns]", "bool")
NUMBER, DATETIME, TIMEDELTA, BOOL = range(4)
FINE_UNITS = ("ns", "ps", "fs", "as", "generic")  # of times that nanoseconds always hold


def time_column(values: np.ndarray, name: str) -> tuple[np.ndarray, int]:
    """Dates or time spans of any unit as float64 nanoseconds, NaT as NaN; and their unit."""
    kind = values.dtype.kind
    missing = np.isnat(values)
    try:
        times = values.astype(f"{kind}8[ns]")
        if np.datetime_data(values.dtype)[0] not in FINE_UNITS:
            # an overflow wraps, and then the way back leads elsewhere
            bad = (times.astype(values.dtype) != values) & ~missing
            if bad.any():
                raise OverflowError
    except OverflowError as error:
        span = "1677-09-22 .. 2262-04-11" if kind == "M" else "-292 .. 292 years"
        what = "dates" if kind == "M" else "time spans"
        raise ValueError(
            f"Column {name} of X holds {what} outside of {span}, which nanoseconds of 64 bits do "
            "not reach. Convert the column to numbers, or make such values missing."
        ) from error
    out = times.view(np.int64).astype(np.float64)
    out[missing] = np.nan
    return out, DATETIME if kind == "M" else TIMEDELTA


def time_objects(cells: Sequence[Any], name: str) -> tuple[np.ndarray, int] | None:
    """Cells that are all dates, or all time spans, or missing, as `time_column`; otherwise None.

    Raises
    ------
    ValueError
        Times of which some have a zone and others have none; dates that are out of range.
    """
    rows = [i for i, cell in enumerate(cells) if not is_missing(cell)]
    there = [cells[i] for i in rows]
    if there and all(isinstance(cell, DATES) for cell in there):
        kind = "M"
    elif there and all(isinstance(cell, SPANS) for cell in there):
        kind = "m"
    else:
        return None
    if kind == "M":
        has_zone = [getattr(cell, "tzinfo", None) is not None for cell in there]
        if any(has_zone) and not all(has_zone):
            bare = there[has_zone.index(False)]
            raise ValueError(
                f"Column {name} of X holds times with a time zone beside {bare!r}, which has none. "
                "Give all of them a zone, or none."
            )
        there = [_in_utc(cell, name) for cell in there] if any(has_zone) else there
    by_type: dict[np.dtype, list[int]] = {}
    plain = [_plain(cell, name) for cell in there]
    for i, cell in enumerate(plain):
        by_type.setdefault(_type_of(cell, kind), []).append(i)
    out, where = np.full(len(cells), np.nan), np.array(rows)
    for of_type, members in by_type.items():
        same = np.array([plain[i] for i in members], dtype=of_type)
        out[where[members]] = time_column(same, name)[0]
    return out, DATETIME if kind == "M" else TIMEDELTA


def _plain(cell: Any, name: str) -> Any:
    """A date or time span as numpy reads it."""
    if not isinstance(cell, datetime.time):
        return cell.to_numpy() if hasattr(cell, "to_numpy") else cell
    if cell.tzinfo is not None:
        raise ValueError(
            f"Column {name} of X holds {cell!r}, a time of day with a time zone, which is no time "
            "in UTC. Give times without a zone, or dates with times."
        )
    minutes = 60 * cell.hour + cell.minute
    return datetime.timedelta(0, cell.second, cell.microsecond, minutes=minutes)


def _in_utc(cell: Any, name: str) -> Any:
    """A time with a zone as one without, in UTC."""
    try:
        return cell.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise ValueError(f"Column {name} of X holds {cell!r}, which is no time in UTC.") from error


def _type_of(cell: Any, kind: str) -> np.dtype:
    """The type of numpy that holds a date or time span as it is."""
    if isinstance(cell, np.generic):
        return cell.dtype
    has_time = kind == "m" or isinstance(cell, datetime.datetime)
    return np.dtype(f"{kind}8[us]" if has_time else f"{kind}8[D]")
