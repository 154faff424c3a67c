"""From a file to a problem: columns, a target, and what the target asks for.

The rule for the task, in the order of its questions:

1. A target that is not made of numbers (strings, booleans, categories) holds classes.
2. Numbers that are all whole, with at most `MOST_CLASSES` distinct values, are classes.
3. All other numbers are a quantity: regression.

A rule cannot know what was meant (a quantity counted from 1 to 5 looks like five classes), so
whoever knows better says so.

Files are read by pandas, which is imported when a file is read. A CSV file does not say which of
its columns hold dates, so that is found out here: a column is one of dates when every value in it
is written as ISO 8601 has it, year, month and day with hyphens, and time of day if need be::

    2024-05-01    2024-05-01 13:30    2024-05-01T13:30:00.25    2024-05-01T13:30:00+02:00

Nothing else is taken for a date: numbers (20240501) stay numbers, and a single value of another
form leaves the column as it is. Rows without a target are left out; what kind a column is otherwise
is the business of the codebook and not touched here.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

Task = Literal["classification", "regression"]

MOST_CLASSES = 20
"""Whole numbers with more distinct values than this are a quantity."""

FORMATS = (".csv", ".csv.gz", ".parquet")

ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?P<offset>Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


@dataclass(frozen=True)
class Problem:
    """A table cut into columns and target.

    Attributes
    ----------
    X : DataFrame of shape (n_rows, n_columns)
        The columns, named by strings.
    y : array of shape (n_rows,)
        Numbers, or class labels as an object array of strings.
    task : 'classification' or 'regression'
        What the target asks for.
    rows_without_target : int
        Rows of the table that were left out.
    dropped : tuple of str
        Columns of the table that were left out.
    """

    X: Any
    y: np.ndarray
    task: Task
    rows_without_target: int
    dropped: tuple[str, ...] = ()


def task_of(y: np.ndarray) -> Task:
    """Return what the target asks for, by the rule at the top of this module.

    Parameters
    ----------
    y : array of shape (n_rows,)
        The target of the rows that have one (no missing values).

    Returns
    -------
    task : 'classification' or 'regression'

    Notes
    -----
    O(n_rows log n_rows), for the distinct values.
    """
    if not is_number(y):
        return "classification"
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return "regression"
    return "classification" if len(np.unique(y)) <= MOST_CLASSES else "regression"


def is_number(y: np.ndarray) -> bool:
    """Whether the array holds integers or floats (booleans are not numbers here)."""
    return y.dtype.kind in "iuf"


def read_table(path: Path, *, separator: str | None = None, encoding: str | None = None) -> Any:
    """Read a CSV or Parquet file into a DataFrame.

    Parameters
    ----------
    path : Path
        Ends with one of `FORMATS`. In a CSV file, what pandas takes for missing is missing (empty
        fields, ``NA``, ``NaN``, ``null``, ``None`` and the like), and columns of dates are told by
        the rule at the top of this module.
    separator : str, default=","
        What stands between two fields of a CSV file: one ASCII character.
    encoding : str, default="utf-8"
        Of a CSV file; a name that Python knows.

    Raises
    ------
    ImportError
        pandas (or, for Parquet, pyarrow) is not installed.
    ValueError
        There is no such file, its extension is unknown, it is empty, or it cannot be read; the
        rows of a CSV file have more fields than its header has names;
        `separator` or `encoding` is not valid, or is given for a file that is not CSV.
    """
    name = path.name.lower()
    if not name.endswith(FORMATS):
        raise ValueError(f"{path}: unknown extension, expected one of {', '.join(FORMATS)}")
    if name.endswith(".parquet"):
        for word, value in (("separator", separator), ("encoding", encoding)):
            if value is not None:
                raise ValueError(f"{path}: a Parquet file has no {word}, got {value!r}")
    separator = "," if separator is None else separator
    encoding = "utf-8" if encoding is None else encoding
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise ValueError(
            f"the separator must be one ASCII character, no quote and no line end: {separator!r}"
        )
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ValueError(f"unknown encoding: {encoding!r}") from error
    if not path.is_file():
        raise ValueError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    pandas = extra("pandas")
    try:
        if name.endswith(".parquet"):
            extra("pyarrow")
            return pandas.read_parquet(path)
        read_csv = partial(pandas.read_csv, path, sep=separator, encoding=encoding)
        # pandas makes an index of the first fields when there are more of them than names. As text
        # it is told from the numbers of the rows, 0, 1, ..., whatever it holds.
        first = read_csv(nrows=1, dtype=str)
        if not isinstance(first.index, pandas.RangeIndex):
            names = len(first.columns)
            raise ValueError(
                f"the header has {names} names, but the first row {names + first.index.nlevels} "
                "fields. Name every column, and end no row with a separator."
            )
        # Whole columns at once: a column of numbers and words must not change its type midway.
        table = read_csv(low_memory=False)
    except UnicodeError as error:
        raise ValueError(f"{path}: cannot be read as {encoding}: {error}") from error
    except (OSError, EOFError, LookupError, ValueError) as error:  # pandas' and Arrow's errors too
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read: {reason}") from error
    for name in table.columns:
        dates = dates_of(table[name])
        if dates is not None:
            table[name] = dates
    return table


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


def extra(module: str) -> Any:
    """Import a module of the extra ``cli``, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"the command line needs {module}, which is not installed: pip install 'dtrees[cli]'"
        ) from error


def problem_of(
    table: Any,
    target: str,
    task: Literal["auto"] | Task = "auto",
    *,
    drop: Collection[str] = (),
) -> Problem:
    """Cut a DataFrame into columns and target and find out the task.

    Parameters
    ----------
    table : DataFrame
        At least one row with a target and one column beside it.
    target : str
        Name of the target column.
    task : 'auto', 'classification' or 'regression'
        ``'auto'``: by the rule at the top of this module.
    drop : collection of str
        Columns that are left out.

    Raises
    ------
    ValueError
        There is no such column, nothing beside it, no row with a target, the target does not fit
        the task, or it is to be dropped.
    """
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    names = list(table.columns)
    for name in (target, *drop):
        if name not in names:
            raise ValueError(f"no column {name!r} in the table{_near(name, names)}")
    if target in drop:
        raise ValueError(f"the target column {target!r} cannot be dropped")
    dropped = tuple(name for name in names if name in drop)
    if len(names) == len(dropped) + 1:
        left = " that is not dropped" if dropped else ""
        raise ValueError(f"the table has no column beside the target {target!r}{left}")
    if dropped:
        table = table.drop(columns=list(dropped))
    given = table[target].notna().to_numpy(dtype=bool)
    if not given.any():
        raise ValueError(f"the table has no row with a value in the target column {target!r}")
    if not given.all():
        table = table[given].reset_index(drop=True)
    column = table[target]
    if column.dtype.kind in "mM":
        raise ValueError(
            f"the target column {target!r} holds dates or times, no classes and no numbers"
        )
    if column.dtype.kind in "iuf":
        y = column.to_numpy(dtype=np.float64 if column.dtype.kind == "f" else np.int64)
    else:
        y = np.array([str(label) for label in column], dtype=object)
    found = task_of(y) if task == "auto" else task
    if found == "regression" and not is_number(y):
        raise ValueError(f"the target column {target!r} is not made of numbers: no regression")
    if found == "classification" and y.dtype.kind == "f" and np.array_equal(y, np.floor(y)):
        y = y.astype(np.int64)
    return Problem(table.drop(columns=target), y, found, int((~given).sum()), dropped)


def _near(name: str, names: Iterable[str]) -> str:
    """What a name that is none of the names was perhaps to be, for messages."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        return f", did you mean {' or '.join(map(repr, near))}?"
    more = ", ..." if len(names) > 20 else ""
    return f"; there are {', '.join(names[:20])}{more}"
