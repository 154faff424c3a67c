"""Cells of a CSV file that a spreadsheet opens and does not compute.

A spreadsheet takes text for a formula that begins with an operator, whoever wrote it. Names, labels
and kept columns come from files, so such text gets an apostrophe in front, in the header too.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dtrees.cli.columns import is_text

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(
    r"[-+]? (?: [.,]?\d[\d.,]* (?: e[-+]?\d+ )? %? | inf | infinity | nan )", re.I | re.X
)
MARKED_CELL = re.compile(rb"""[,\n] "? ' [-=+@\t\r]""", re.X)
BLOCK = 1 << 20  # bytes of a file that are looked at at once
OVERLAP = 3  # bytes of a marked cell's beginning that the block before may hold


def as_cell(label: Any) -> Any:
    """A label that a spreadsheet does not take for a formula when it opens a CSV file.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe
    in front. Numbers, and signs alone such as ``+``, do not. Anything else is returned as it is.

    >>> as_cell("=1+1"), as_cell("-1"), as_cell("-"), as_cell("yes")
    ("'=1+1", '-1', '-', 'yes')
    """
    if not isinstance(label, str) or not label.startswith(FORMULA_STARTS):
        return label
    text = label.strip()
    if not text.strip("=+-@ ") or NUMBER.fullmatch(text):
        return label
    return f"'{label}"


def safe_names(names: Iterable[str]) -> list[str]:
    """Names of columns as cells."""
    return [as_cell(name) for name in names]


def safe_table(table: Any) -> tuple[Any, int]:
    """A DataFrame in which text and names of columns are cells, and how many of them changed."""
    from pandas import StringDtype

    names = safe_names(table.columns)
    n_changed = sum(new != old for new, old in zip(names, table.columns, strict=True))
    safe = table.copy(deep=False)
    for place in range(table.shape[1]):
        column = table.iloc[:, place]
        if not may_hold_text(column):
            continue
        is_all_text = isinstance(column.dtype, StringDtype)
        if is_all_text and not column.str.startswith(FORMULA_STARTS, na=False).any():
            continue  # as in nearly every table, and much faster than cell by cell
        values = column.tolist()
        cells = [as_cell(value) for value in values]
        n_of_column = sum(new is not old for new, old in zip(cells, values, strict=True))
        if n_of_column:
            n_changed += n_of_column
            dtype = column.dtype if is_text(column) else object
            safe.isetitem(place, type(column)(cells, column.index, dtype=dtype))
    return safe.set_axis(names, axis=1), n_changed


def may_hold_text(column: Any) -> bool:
    """Whether a column of a DataFrame holds strings, or categories that may be."""
    from pandas import CategoricalDtype

    return is_text(column) or isinstance(column.dtype, CategoricalDtype)


def holds_marked_cells(path: Path, *, packed: bool) -> bool:
    """Whether a CSV file has a cell with an apostrophe in front of what would be a formula.

    The workers of a cluster make the text, so this tells afterwards whether they changed any.
    """
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        block = b"\n"  # in front of the first line
        while more := file.read(BLOCK):
            block = block[-OVERLAP:] + more
            if MARKED_CELL.search(block):
                return True
    return False
