"""Units of ordered columns, and dates and time spans as numbers.

Dates and time spans of any type are float64 nanoseconds, those of dates since 1970 in UTC, with NaN
for missing: numpy's, pandas', polars' and Arrow's columns, and columns of Python's objects::

    datetime.date, datetime.datetime, numpy.datetime64, pandas.Timestamp        dates
    datetime.timedelta, numpy.timedelta64, pandas.Timedelta                     time spans
    datetime.time                                                 time spans since midnight

A float64 tells times apart that are 256 ns from each other, in this century.

A column of text is one of dates when every value in it is written in one of these ways, with a time
of day if need be. Values of ISO 8601 may be with and without it; of the others all are, or none
is::

    2024-05-01    2024-05-01T13:30:00.25    2024-05-01T13:30:00+02:00    ISO 8601
    31.12.2024    31.12.2024 13:30                                       the day first
    12/31/2024    12-31-2024 13:30:05                                    the month first
    31/12/2024    31-12-2024                                             with `dayfirst`

Nothing else is taken for a date: numbers (20240501) stay numbers, and a single value of another
form leaves the column as it is. Whether the day comes first does not follow from the values: those
of another file may be written alike and leave it open. Values above 12 only tell whether the other
order could be meant, too. A table in parts is asked part by part, and the answers are put together
(`combined`): a column is one of dates in all parts or in none.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtrees.coding.labels import DATES, SPANS, is_missing

UNITS = ("number", "datetime64[ns]", "timedelta64[ns]", "bool")
NUMBER, DATETIME, TIMEDELTA, BOOL = range(4)
FINE_UNITS = ("ns", "ps", "fs", "as", "generic")  # of times that nanoseconds always hold
ISO = "ISO8601"  # a format of pandas
DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?"
    r"|(?P<first>\d\d?)(?P<mark>[./-])(?P<second>\d\d?)(?P=mark)\d{4}"
    r"(?P<time> \d\d?:\d\d(?P<seconds>:\d\d)?)?",
    re.ASCII,
)
NO_ORDER, MONTH_FIRST, DAY_FIRST = range(3)  # of dates that are written in one of two orders
MONTHS = 12


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


class DateForm(NamedTuple):
    """A way to write dates."""

    format: str  # of pandas
    has_offset: bool  # values name their distance from UTC
    is_open: bool  # they can be read by the other order of day and month as well

    @property
    def order(self) -> int:
        """Order by which they are read: `MONTH_FIRST`, `DAY_FIRST`, or there is one only."""
        if self.format.startswith("%m"):
            return MONTH_FIRST
        return DAY_FIRST if self.format.startswith(("%d/", "%d-")) else NO_ORDER


def form_of(value: Any, *, dayfirst: bool = False) -> DateForm | None:
    """The form of a value, if it is like a date."""
    match = DATE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match["mark"] is None:
        return match and DateForm(ISO, match["offset"] is not None, is_open=False)
    has_order = match["mark"] != "."
    places = "mdY" if has_order and not dayfirst else "dmY"
    date = match["mark"].join(f"%{place}" for place in places)
    time = match["time"] and (" %H:%M:%S" if match["seconds"] else " %H:%M")
    is_open = has_order and max(int(match["first"]), int(match["second"])) <= MONTHS
    return DateForm(date + (time or ""), has_offset=False, is_open=is_open)


def look_like_dates(values: np.ndarray) -> bool:
    """Tell whether most of some values are written like dates; a hundred of them are looked at."""
    some = values[:: max(1, -(-len(values) // 100))]
    return sum(form_of(value) is not None for value in some) > len(some) / 2


def forms_of(column: Any, *, dayfirst: bool = False) -> set[DateForm] | None:
    """Forms of the dates of a column; empty for a column without values.

    None when a value is no date, or when one does not fit into nanoseconds (1677 to 2262). With
    `dayfirst` 01/02/2024 is a day of February. O(n_rows) for a column of dates; others end at their
    first value that is none.
    """
    found = _as_written(column, dayfirst)
    form = combined([found])
    is_valid = form is None or _parsed_if_valid(column, form) is not None
    return found if is_valid else None


def _as_written(column: Any, dayfirst: bool) -> set[DateForm] | None:
    """Forms of the values of a column, whether there is such a day or not."""
    if column.isna().all():
        return set()
    if column.dtype.kind != "O":
        return None
    found = set()
    for value in column.dropna():
        form = form_of(value, dayfirst=dayfirst)
        if form is None:
            return None
        found.add(form)
    return found


def combined(forms: Iterable[set[DateForm] | None]) -> DateForm | None:
    """The form of the dates in the parts of a column; None: no dates, or not all alike.

    Parameters
    ----------
    forms : iterable of set of DateForm or None
        As `forms_of` tells them of each part.
    """
    found: set[DateForm] = set()
    for part in forms:
        if part is None:
            return None
        found |= part
    is_alike = len({(form.format, form.has_offset) for form in found}) == 1
    return min(found) if is_alike else None  # one that the other order cannot read, if there is any


def parsed(column: Any, form: DateForm) -> Any:
    """A column of dates in text as datetime64[ns], in UTC or of no zone."""
    from pandas import to_datetime

    return to_datetime(column, format=form.format, utc=form.has_offset).dt.as_unit("ns")


def _parsed_if_valid(column: Any, form: DateForm) -> Any:
    """Dates as `parsed` makes them; None for values such as February 30 or the year 9999."""
    try:
        return parsed(column, form)
    except ValueError:
        return None


def dates_of(column: Any, *, dayfirst: bool = False) -> tuple[Any, DateForm] | None:
    """The dates of a column of a CSV file, datetime64[ns], and how they are written.

    They are in UTC where the values name their distance from it. None when the column holds no
    dates, or dates that are not written alike. With `dayfirst` 01/02/2024 is a day of February.
    """
    form = combined([_as_written(column, dayfirst)])
    dates = None if form is None else _parsed_if_valid(column, form)
    return None if form is None or dates is None else (dates, form)


def are_dates(values: Any, *, dayfirst: bool = False) -> Any:
    """Tell which values of a column of text are dates by themselves; a Series of bool."""
    from pandas import to_datetime

    plain = values.reset_index(drop=True)  # labels may be there twice
    good = plain.isna() & False
    formats = plain.map(lambda value: getattr(form_of(value, dayfirst=dayfirst), "format", None))
    for written, alike in plain.groupby(formats):
        dates = to_datetime(alike, format=written, utc=True, errors="coerce")
        good[alike.index] = dates.notna()
    return good.set_axis(values.index)
