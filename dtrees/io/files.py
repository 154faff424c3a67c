"""Tables in files: CSV and Parquet to a DataFrame.

Files are read by pandas, which is imported when a file is read. A CSV file does not say which of
its columns hold dates, so that is found out here (`dtrees.coding.times`).

Types are found out anew in every file, and a few rows can look like something else than many did:
a column of words holds only digits, or only dates. Columns that are named as text (``as_text``)
stay as they are written.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from dtrees._extras import extra
from dtrees.coding.times import DateForm, dates_of
from dtrees.constraints import Boolean, Having, InstanceOf, ListLike, Nothing, checked

RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # pandas
FORMATS = (".csv", ".csv.gz", ".parquet")


@checked(
    source=(InstanceOf(Path, "pathlib.Path"), Having("read")),
    separator=(InstanceOf(str, "str"), Nothing()),
    encoding=(InstanceOf(str, "str"), Nothing()),
    decimal=(InstanceOf(str, "str"), Nothing()),
    thousands=(InstanceOf(str, "str"), Nothing()),
    dayfirst=(Boolean(),),
    as_text=(ListLike(),),
)
def read_table(
    source: Path | IO[bytes],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    dayfirst: bool = False,
    as_text: Collection[str] = (),
) -> Any:
    """Read a CSV or Parquet file into a DataFrame.

    Parameters
    ----------
    source : Path or stream of bytes
        A path ends with one of `FORMATS`; a stream is CSV, and can be read again from its start. In
        a CSV file, what pandas takes for missing is missing (empty fields, ``NA``, ``NaN``,
        ``null``, ``None`` and the like), and columns of dates are told, as
        `dtrees.coding.times` says.
    separator : str, default=","
        What stands between two fields of a CSV file: one ASCII character.
    encoding : str, default="utf-8"
        Of a CSV file; a name that Python knows.
    decimal : str, default="."
        What stands in front of the decimals of a number in a CSV file: one ASCII character.
    thousands : str, default=None
        What stands between the thousands of a number in a CSV file: one ASCII character.
    dayfirst : bool, default=False
        Whether 01/02/2024 in a CSV file is a day of February, and not of January.
    as_text : collection of str, default=()
        Columns of a CSV file that are text whatever they look like; they need not be there.

    Raises
    ------
    ImportError
        pandas (or, for Parquet, pyarrow) is not installed.
    ValueError
        There is no such file, its extension is unknown, it is empty, or it cannot be read; the
        rows of a CSV file have more fields than its header has names;
        `separator`, `encoding`, `decimal` or `thousands` is not valid, or is given for a file that
        is not CSV.
    """
    return read_dated(source, separator, encoding, decimal, dayfirst, as_text, thousands)[0]


def read_dated(
    source: Path | IO[bytes],
    separator: str | None,
    encoding: str | None,
    decimal: str | None,
    dayfirst: bool,
    as_text: Collection[str],
    thousands: str | None = None,
) -> tuple[Any, dict[str, DateForm]]:
    """A table as `read_table` has it, and the forms of dates of the columns of a CSV file."""
    name, label = ".csv", "standard input"
    if isinstance(source, Path):
        name, label = source.name.lower(), str(source)
    if not name.endswith(FORMATS):
        raise ValueError(f"{label}: unknown extension, expected one of {', '.join(FORMATS)}")
    given = {"separator": separator, "encoding": encoding, "decimal mark": decimal}
    given["thousands separator"] = thousands
    if name.endswith(".parquet"):
        for word, value in given.items():
            if value is not None:
                raise ValueError(f"{label}: a Parquet file has no {word}, got {value!r}")
    separator = "," if separator is None else separator
    encoding = "utf-8" if encoding is None else encoding
    decimal = "." if decimal is None else decimal
    _check_form(separator, encoding, decimal, thousands)
    _check_there(source, label)
    pandas = extra("pandas")
    try:
        if name.endswith(".parquet"):
            extra("pyarrow")
            return pandas.read_parquet(source), {}
        form = {"sep": separator, "encoding": encoding, "decimal": decimal}
        if thousands is not None:
            form["thousands"] = thousands
        table = read_csv(source, dict.fromkeys(as_text, str), **form)
    except UnicodeError as error:
        raise ValueError(f"{label}: cannot be read as {encoding}: {error}") from error
    except (OSError, EOFError, LookupError, ValueError) as error:  # pandas' and Arrow's errors too
        reason = _reason(error)
        raise ValueError(f"{label}: cannot be read: {reason}") from error
    forms = {}
    for name in table.columns:
        found = None if name in as_text else dates_of(table[name], dayfirst=dayfirst)
        if found is not None:
            table[name], forms[name] = found
    return table, forms


def _reason(error: Exception) -> str:
    """Why a file cannot be read, in words."""
    ragged = RAGGED.search(str(error))
    if ragged is not None:
        return f"line {ragged[2]} has {ragged[3]} fields, and the lines above have {ragged[1]}"
    return str(error) or type(error).__name__


def _check_form(separator: str, encoding: str, decimal: str, thousands: str | None) -> None:
    """Refuse (ValueError) what no CSV file is written with."""
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise ValueError(
            f"the separator must be one ASCII character, no quote and no line end: {separator!r}"
        )
    if not _is_mark(decimal) or decimal == " ":
        raise ValueError(f"the decimal mark must be one ASCII character such as ',': {decimal!r}")
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ValueError(f"unknown encoding: {encoding!r}") from error
    if thousands is not None and not _is_mark(thousands):
        raise ValueError(
            f"the thousands separator must be one ASCII character such as ',': {thousands!r}"
        )
    if thousands == decimal:
        raise ValueError(
            f"the thousands separator and the decimal mark are both {decimal!r}: give the "
            "decimal mark, too"
        )


def _is_mark(mark: str) -> bool:
    """Tell whether a number can hold it."""
    return len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in '"\r\n+-'


def _check_there(source: Path | IO[bytes], label: str) -> None:
    """Refuse (ValueError) a file that is not there, or empty."""
    if isinstance(source, Path):
        if not source.is_file():
            raise ValueError(f"{label}: {'not a file' if source.exists() else 'no such file'}")
        is_empty = source.stat().st_size == 0
    else:
        is_empty = not source.read(1)
    if is_empty:
        raise ValueError(f"{label}: the file is empty")


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
        fields = names + first.index.nlevels
        raise ValueError(
            f"the header has {names} name{'' if names == 1 else 's'}, but the first row {fields} "
            "fields. Name every column, and end no row with a separator"
        )
    # Whole columns at once: a column of numbers and words must not change its type midway.
    return read(dtype=types, low_memory=False)
