"""Tables in files: CSV and Parquet to a DataFrame.

Files are read by pandas, which is imported when a file is read. A CSV file does not say which of
its columns hold dates, so that is found out here: a column is one of dates when every value in it
is written as ISO 8601 has it, year, month and day with hyphens, and time of day if need be::

    2024-05-01    2024-05-01 13:30    2024-05-01T13:30:00.25    2024-05-01T13:30:00+02:00

Nothing else is taken for a date: numbers (20240501) stay numbers, and a single value of another
form leaves the column as it is.

Types are found out anew in every file, and a few rows can look like something else than many did:
a column of words holds only digits, or only dates. Who knows the columns that are text says so
(``as_text``), and gets them as they are written.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import IO, Any

FORMATS = (".csv", ".csv.gz", ".parquet")

ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


def read_table(
    source: Path | IO[bytes],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    as_text: Collection[str] = (),
) -> Any:
    """Read a CSV or Parquet file into a DataFrame.

    Parameters
    ----------
    source : Path or stream of bytes
        A path ends with one of `FORMATS`; a stream is CSV, and can be read again from its start. In
        a CSV file, what pandas takes for missing is missing (empty fields, ``NA``, ``NaN``,
        ``null``, ``None`` and the like), and columns of dates are told by the rule at the top of
        this module.
    separator : str, default=","
        What stands between two fields of a CSV file: one ASCII character.
    encoding : str, default="utf-8"
        Of a CSV file; a name that Python knows.
    decimal : str, default="."
        What stands in front of the decimals of a number in a CSV file: one ASCII character.
    as_text : collection of str, default=()
        Columns of a CSV file that are text whatever they look like; they need not be there.

    Raises
    ------
    ImportError
        pandas (or, for Parquet, pyarrow) is not installed.
    ValueError
        There is no such file, its extension is unknown, it is empty, or it cannot be read; the
        rows of a CSV file have more fields than its header has names;
        `separator`, `encoding` or `decimal` is not valid, or is given for a file that is not
        CSV.
    """
    name, label = ".csv", "standard input"
    if isinstance(source, Path):
        name, label = source.name.lower(), str(source)
    if not name.endswith(FORMATS):
        raise ValueError(f"{label}: unknown extension, expected one of {', '.join(FORMATS)}")
    if name.endswith(".parquet"):
        for word, value in (
            ("separator", separator),
            ("encoding", encoding),
            ("decimal mark", decimal),
        ):
            if value is not None:
                raise ValueError(f"{label}: a Parquet file has no {word}, got {value!r}")
    separator = "," if separator is None else separator
    encoding = "utf-8" if encoding is None else encoding
    decimal = "." if decimal is None else decimal
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise ValueError(
            f"the separator must be one ASCII character, no quote and no line end: {separator!r}"
        )
    if len(decimal) != 1 or not decimal.isascii() or decimal.isalnum() or decimal in '"\r\n+- ':
        raise ValueError(f"the decimal mark must be one ASCII character such as ',': {decimal!r}")
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ValueError(f"unknown encoding: {encoding!r}") from error
    if isinstance(source, Path):
        if not source.is_file():
            raise ValueError(f"{label}: {'not a file' if source.exists() else 'no such file'}")
        is_empty = source.stat().st_size == 0
    else:
        is_empty = not source.read(1)
    if is_empty:
        raise ValueError(f"{label}: the file is empty")
    pandas = extra("pandas")
    try:
        if name.endswith(".parquet"):
            extra("pyarrow")
            return pandas.read_parquet(source)
        form = {"sep": separator, "encoding": encoding, "decimal": decimal}
        table = read_csv(source, dict.fromkeys(as_text, str), **form)
    except UnicodeError as error:
        raise ValueError(f"{label}: cannot be read as {encoding}: {error}") from error
    except (OSError, EOFError, LookupError, ValueError) as error:  # pandas' and Arrow's errors too
        reason = str(error) or type(error).__name__
        raise ValueError(f"{label}: cannot be read: {reason}") from error
    for name in table.columns:
        dates = None if name in as_text else dates_of(table[name])
        if dates is not None:
            table[name] = dates
    return table


def read_csv(source: Path | IO[bytes], types: dict[str, type], **form: str) -> Any:
    """A CSV file as a DataFrame, by pandas' rules for types but for the given ones."""
    pandas = extra("pandas")

    def read(**how: Any) -> Any:
        if not isinstance(source, Path):
            source.seek(0)
        return pandas.read_csv(source, **form, **how)

    # pandas makes an index of the first fields when there are more of them than names. As text
    # it is told from the numbers of the rows, 0, 1, ..., whatever it holds.
    first = read(nrows=1, dtype=str)
    if not isinstance(first.index, pandas.RangeIndex):
        names = len(first.columns)
        raise ValueError(
            f"the header has {names} names, but the first row {names + first.index.nlevels} "
            "fields. Name every column, and end no row with a separator."
        )
    # Whole columns at once: a column of numbers and words must not change its type midway.
    return read(dtype=types, low_memory=False)


def dates_of(column: Any) -> Any:
    """The dates of a column of a CSV file, by the rule at the top of this module.

    Parameters
    ----------
    column : Series

    Returns
    -------
    Series or None
        datetime64[ns], in UTC where the values name their distance from it. None when a value is
        no date, when only some name that distance, and when a date does not fit into nanoseconds
        (1677 to 2262).

    Notes
    -----
    O(n_rows) for a column of dates; others end at their first value that is none.
    """
    given = column.dropna()
    if column.dtype.kind != "O" or not len(given):
        return None
    offsets = set()
    for value in given:
        found = ISO_DATE.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return None
        offsets.add(found["offset"] is not None)
    if len(offsets) > 1:
        return None
    try:
        dates = extra("pandas").to_datetime(column, format="ISO8601", utc=offsets == {True})
        return dates.dt.as_unit("ns")
    except ValueError:  # such as February 30, or the year 9999
        return None


def extra(module: str, *, of: str = "cli", for_: str = "the command line") -> Any:
    """Import a module of an extra, or say how to get it.

    Parameters
    ----------
    module : str
    of : str, default="cli"
        The extra, or several with commas between them.
    for_ : str, default="the command line"
        What needs it, for the message.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{for_} needs {module}, which is not installed: pip install 'dtrees[{of}]'"
        ) from error
