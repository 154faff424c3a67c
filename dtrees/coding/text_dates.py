"""Columns of text that hold dates, as CSV files do.

A column is one of dates when every value in it is written in one of these ways, with a time of day
if need be. Values of ISO 8601 may be with and without it; of the others all are, or none is::

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

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

ISO = "ISO8601"  # a format of pandas
DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?"
    r"|(?P<first>\d\d?)(?P<mark>[./-])(?P<second>\d\d?)(?P=mark)\d{4}"
    r"(?P<time> \d\d?:\d\d(?P<seconds>:\d\d)?)?",
    re.ASCII,
)

NO_ORDER, MONTH_FIRST, DAY_FIRST = range(3)  # of dates that are written in one of two orders
MONTHS = 12


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
    """Forms of the dates of a column.

    Parameters
    ----------
    column : pandas.Series
    dayfirst : bool, default=False
        Whether 01/02/2024 is a day of February.

    Returns
    -------
    set of DateForm, or None
        Empty for a column without values. None when a value is no date, or when one does not fit
        into nanoseconds (1677 to 2262).

    Notes
    -----
    O(n_rows) for a column of dates; others end at their first value that is none.
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
    """The dates of a column of a CSV file, and how they are written.

    Parameters
    ----------
    column : pandas.Series
    dayfirst : bool, default=False
        Whether 01/02/2024 is a day of February.

    Returns
    -------
    (Series, DateForm) or None
        datetime64[ns], in UTC where the values name their distance from it. None when the column
        holds no dates, or dates that are not written alike.
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
