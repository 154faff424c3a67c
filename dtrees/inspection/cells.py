"""Cells of a table: as the user has them, and as places on an axis.

Numbers and dates are what they are. What trees do not order, words, is numbered in the order of its
labels. A hybrid column has both, and its words stand behind its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dtrees.coding.labels import Labels, is_missing, object_array, recode, sort_labels
from dtrees.coding.tables import read_table
from dtrees.coding.times import BOOL, DATETIME, NUMBER, TIMEDELTA, UNITS

LETTERS = 30  # of a cell in a label
SPANS = {"days": 86_400e9, "hours": 3_600e9, "minutes": 60e9, "seconds": 1e9}  # in nanoseconds


def cells_of(X: Any) -> Any:
    """The cells of a table in memory, (n_rows, n_columns); objects where columns differ, or csr.

    Times are in microseconds, dates in UTC; what is missing among objects is None.
    """
    if type(X) is np.ndarray and X.dtype.kind in "biuf":
        return X
    table, columns = read_table(X), {}
    if table.sparse is not None:
        return csr_array(table.sparse)
    if table.block is not None and not table.units.any():
        return table.block
    for block in table.numbers:
        for j, values in zip(block.columns.tolist(), block.values.T, strict=True):
            columns[j] = _in_unit(values, int(table.units[j]))
    for labels in table.labels:
        columns[labels.column] = object_array([*labels.labels, None])[labels.codes]
    dtypes = {column.dtype for column in columns.values()}
    kinds = {dtype.kind for dtype in dtypes}
    is_alike = len(kinds) == 1 or kinds <= set("iuf")
    cells = np.empty((table.n_rows, table.n_columns), np.result_type(*dtypes) if is_alike else "O")
    for j, column in columns.items():
        cells[:, j] = column
    return cells


def _in_unit(values: np.ndarray, unit: int) -> np.ndarray:
    """Numbers of a table as the user has them: times, booleans or numbers."""
    if unit == NUMBER or values.dtype.kind == "b":
        return values
    missing = np.isnan(values)
    if unit == BOOL:
        found = (values > 0).astype(object if missing.any() else bool)
        found[missing] = None
        return found
    times = np.rint(np.where(missing, 0, values) / 1000).astype(np.int64)
    found = times.astype(UNITS[unit].replace("ns", "us"))
    found[missing] = "NaT"
    return found


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column: each is a number, a word or missing.

    Attributes
    ----------
    numbers : float64 (n_rows,)
        nan where there is none; dates in days since 1970.
    codes : int64 (n_rows,)
        Numbers of words; -1 where there is none.
    words : list of str
    unit : str
        Of time spans "days", "hours", ..., of dates "dates", else "".
    """

    numbers: np.ndarray
    codes: np.ndarray
    words: list[str]
    unit: str = ""

    @classmethod
    def of(cls, cells: np.ndarray, *, is_category: bool = False) -> Cells:
        """The cells of an array; where they are categories, numbers are words, too."""
        if is_category:
            labels = Labels.of(0, cells.tolist(), "")
            known = np.full(len(labels.labels), np.nan)
        else:
            table = read_table(cells[:, np.newaxis])
            if table.numbers:
                return cls._of_numbers(table.numbers[0].values[:, 0], int(table.units[0]))
            (labels,) = table.labels
            known = labels.as_numbers("")
        words = [
            label for label, number in zip(labels.labels, known, strict=True) if np.isnan(number)
        ]
        code = {word: code for code, word in enumerate(sort_labels(words))}
        codes = np.array([code.get(label, -1) for label in labels.labels], dtype=np.int64)
        numbers = recode(known, labels.codes, np.nan)
        return cls(numbers, recode(codes, labels.codes, -1), list(map(written, code)))

    @classmethod
    def _of_numbers(cls, numbers: np.ndarray, unit: int) -> Cells:
        """The cells of a column of numbers, or of times in nanoseconds."""
        found = cls(numbers.astype(np.float64), np.full(len(numbers), -1), [])
        if unit == DATETIME:
            return replace(found, numbers=found.numbers / SPANS["days"], unit="dates")
        if unit == TIMEDELTA:
            most = np.nanmax(np.abs(found.numbers), initial=0)
            name = next((name for name, size in SPANS.items() if size <= most), "seconds")
            return replace(found, numbers=found.numbers / SPANS[name], unit=name)
        return found

    @property
    def is_missing(self) -> np.ndarray:
        """Which cells are missing, bool (n_rows,)."""
        missing: np.ndarray = np.isnan(self.numbers) & (self.codes < 0)
        return missing

    @property
    def bounds(self) -> tuple[float, float, float]:
        """The lowest number, the highest, and the step from it to a word and to the next one.

        Words without numbers stand at 0, 1, ...
        """
        if np.isnan(self.numbers).all():
            return 0.0, -1.0, 1.0
        low, high = float(np.nanmin(self.numbers)), float(np.nanmax(self.numbers))
        return low, high, (high - low or 1.0) * min(0.12, 0.6 / max(1, len(self.words)))

    @property
    def places(self) -> np.ndarray:
        """Numbers, words behind them, and missing cells before them."""
        low, high, step = self.bounds
        places: np.ndarray = np.where(self.codes < 0, self.numbers, high + step * (self.codes + 1))
        places[self.is_missing] = low - step
        return places


def written(cell: Any) -> str:
    """A cell in a label."""
    if is_missing(cell):
        return "missing"
    if isinstance(cell, float | np.floating):
        return f"{cell:.4g}"
    if isinstance(cell, np.datetime64 | np.timedelta64):
        cell = cell.astype(f"{cell.dtype.kind}8[us]").item()
    text = str(cell).removesuffix(" 00:00:00")
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
