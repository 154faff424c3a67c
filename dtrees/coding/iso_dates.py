"""Columns of text that hold dates, as CSV files do.

A column is one of dates when every value in it is written as ISO 8601 has it, year, month and day
with hyphens, and time of day if need be::

    2024-05-01    2024-05-01 13:30    2024-05-01T13:30:00.25    2024-05-01T13:30:00+02:00

Nothing else is taken for a date: numbers (20240501) stay numbers, and a single value of another
form leaves the column as it is. A table in parts is asked part by part, and the answers are put
together (`combined`): a column is one of dates in all parts or in none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


def offsets_of(column: Any) -> set[bool] | None:
    """Whether the dates of a column name their distance from UTC.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    set of bool, or None
        Empty for a column without values. None when a value is no date, or when one does not fit
        into nanoseconds (1677 to 2262).

    Notes
    -----
    O(n_rows) for a column of dates; others end at their first value that is none.
    """
    found = _offsets_as_written(column)
    return None if found and _parsed_if_valid(column, utc=True) is None else found


def _offsets_as_written(column: Any) -> set[bool] | None:
    """The same of how values are written, whether there is such a day or not."""
    if column.isna().all():
        return set()
    if column.dtype.kind != "O":
        return None
    found = set()
    for value in column.dropna():
        match = ISO_DATE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return None
        found.add(match["offset"] is not None)
    return found


def combined(offsets: Iterable[set[bool] | None]) -> bool | None:
    """Whether the dates in the parts of a column name their distance from UTC; None: no dates.

    Parameters
    ----------
    offsets : iterable of set of bool or None
        As `offsets_of` tells them of each part.
    """
    found: set[bool] = set()
    for part in offsets:
        if part is None:
            return None
        found |= part
    return found.pop() if len(found) == 1 else None


def parsed(column: Any, *, utc: bool) -> Any:
    """A column of dates in text as datetime64[ns], in UTC or of no zone."""
    from pandas import to_datetime

    return to_datetime(column, format="ISO8601", utc=utc).dt.as_unit("ns")


def _parsed_if_valid(column: Any, *, utc: bool) -> Any:
    """The same; None for values such as February 30 or the year 9999."""
    try:
        return parsed(column, utc=utc)
    except ValueError:
        return None


def dates_of(column: Any) -> Any:
    """The dates of a column of a CSV file.

    Parameters
    ----------
    column : pandas.Series

    Returns
    -------
    Series or None
        datetime64[ns], in UTC where the values name their distance from it. None when the column
        holds no dates, or when only some name that distance.
    """
    utc = combined([_offsets_as_written(column)])
    return None if utc is None else _parsed_if_valid(column, utc=utc)
