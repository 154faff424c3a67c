"""Labels: columns that are not numbers by their type.

A column of strings or objects is reduced to its distinct values. These are read as numbers, ordered
and coded once each.

What parses as a number is one, the rest are categories ([SF] section 2). All of one kind gives an
ordered or a categorical column, both a hybrid one. Only None, NaN, NaT and pandas.NA are missing;
the empty string is a category, and so are strings such as "nan" or "inf", which name no number.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees.coding._cells import label_codes, labels_present

PLAIN = (str, int, float)  # types of labels that stay as they are
DATES = (datetime.date, np.datetime64)  # a datetime.datetime is a date, a pandas.Timestamp, too
SPANS = (datetime.timedelta, np.timedelta64, datetime.time)  # times of day: since midnight
MISSING_CODE = -1  # of categories in pandas, scikit-learn and LightGBM
KINDS = ("dates", "time spans", "other values")
WANTED = (
    "in every cell the argument must be a string or a real number (or None, NaN for missing), or "
    "in every cell a date, or a time span"
)


@dataclass(frozen=True, eq=False)
class Labels:
    """A column that is not numbers by its type.

    Attributes
    ----------
    column : int
    codes : int8, int16, int32 or int64 (n_rows,)
        Position in ``labels``; -1 for missing.
    labels : list
        Distinct Python objects, in any order; some may be in no row.
    is_category : bool
        The column's type says that it is categorical; its labels are not read as numbers.
    """

    column: int
    codes: np.ndarray
    labels: list[Any]
    is_category: bool = False

    @classmethod
    def of(cls, column: int, values: Sequence[Any], name: str) -> Labels:
        """The labels of a sequence of Python objects. O(n_rows) dictionary look-ups."""
        try:
            distinct = list(dict.fromkeys(values))
            number = dict(zip(distinct, range(len(distinct)), strict=True))
            codes = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
        except TypeError as error:
            bad = next(value for value in values if not is_hashable(value))
            raise _no_label(bad, name) from error
        return cls(column, codes, distinct).without_missing().with_plain_numbers(name)

    def with_plain_numbers(self, name: str) -> Labels:
        """The labels with Python's integers and floats for numbers of all other types.

        A Decimal or Fraction that is no integer is the nearest float64; numbers that become equal
        are one label.
        """
        if all(type(label) in PLAIN for label in self.labels):
            return self
        plain = [plain_number(label, name) for label in self.labels]
        index = {label: i for i, label in enumerate(dict.fromkeys(plain))}
        table = np.array([index[label] for label in plain], dtype=np.int64)
        codes = recode(table, self.codes, -1) if len(table) else self.codes
        return Labels(self.column, codes, list(index), self.is_category)

    def without_missing(self) -> Labels:
        """The labels with -1 for those that mean missing."""
        return self._without(is_missing)

    def without_code(self) -> Labels:
        """The labels without the number -1, which is the code of a missing category."""
        return self._without(lambda label: isinstance(label, int | float) and label == MISSING_CODE)

    def _without(self, means_missing: Callable[[Any], bool]) -> Labels:
        missing = np.fromiter(map(means_missing, self.labels), bool, len(self.labels))
        if not missing.any():
            return self
        index = np.where(missing, -1, np.cumsum(~missing) - 1)
        kept = [label for label, gone in zip(self.labels, missing, strict=True) if not gone]
        return Labels(self.column, recode(index, self.codes, -1), kept, self.is_category)

    def present(self) -> np.ndarray:
        """Labels that are in some row: bool (n_labels,)."""
        present = np.zeros(len(self.labels), dtype=bool)
        labels_present(self.codes, present.view(np.uint8))
        return present

    def __post_init__(self) -> None:
        codes = self.codes
        if codes.dtype.kind != "i" or not codes.flags.c_contiguous:
            object.__setattr__(self, "codes", np.ascontiguousarray(codes, dtype=np.int64))

    def write_codes(self, table: np.ndarray, codes: np.ndarray) -> None:
        """Write ``table[label]`` for every row, 0 for missing, to ``codes`` (OUT). O(n_rows)."""
        extended = np.zeros(len(table) + 1, dtype=np.uint32)
        extended[1:] = table
        label_codes(self.codes, extended, codes)

    def as_numbers(self, name: str) -> np.ndarray:
        """Every label as a number, float64 (n_labels,); NaN for strings that are none.

        Raises
        ------
        TypeError, ValueError
            A label that is neither number nor string.
        """
        try:
            found = (number_of(label, name) for label in self.labels)
            return np.fromiter(found, np.float64, len(self.labels))
        except TypeError:
            self._refuse_mixed_times(name)
            raise

    def _refuse_mixed_times(self, name: str) -> None:
        """Raise (TypeError) where some rows hold times and others do not; names the fewer ones."""
        kinds = np.array([*map(_kind, self.labels), len(KINDS)])[self.codes]
        counts = np.bincount(kinds)[: len(KINDS)]
        there = sorted(np.flatnonzero(counts).tolist(), key=counts.__getitem__)
        if len(there) < 2:
            return
        row = int(np.argmax(kinds == there[0]))
        raise TypeError(
            f"Column {name} of X holds {_shown(self.labels[self.codes[row]])} in row {row}, among "
            f"{KINDS[there[-1]]}: {WANTED}. Make such cells missing (None), or name the column in "
            "categorical_features."
        )


def recode(table: np.ndarray, codes: np.ndarray, missing: Any) -> np.ndarray:
    """``table[codes]`` with ``missing`` where the code is -1."""
    extended = np.append(table, np.asarray([missing], dtype=table.dtype))
    return np.take(extended, codes, mode="wrap")


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # a signaling NaN of decimal, say
        return False


def number_of(label: Any, name: str) -> float:
    """A label as a number; NaN for a string that is none.

    Infinities are numbers here when they are given as such; strings never name one. Neither are
    strings with underscores numbers, which Python's `float` would read.
    """
    if isinstance(label, str):
        try:
            number = np.nan if "_" in label else float(label)
        except ValueError:
            return np.nan
        return number if np.isfinite(number) else np.nan
    if isinstance(label, (numbers.Real, decimal.Decimal, np.bool_)):
        return _float(label)
    raise _no_label(label, name)


def plain_number(label: Any, name: str) -> Any:
    """A number of any type as Python's integer or float; other labels as they are."""
    if type(label) in PLAIN or isinstance(label, bool | np.bool_):
        return label
    if isinstance(label, numbers.Integral):
        return int(label)
    if isinstance(label, numbers.Real | decimal.Decimal):
        number = _float(label)
        if np.isinf(number) and label != number:
            raise ValueError(
                f"Column {name} of X holds {str(label)[:60]}, a {type(label).__name__} that is too "
                "large for a float64. Divide the column, or make such values missing."
            )
        return number
    return label


def _float(number: Any) -> float:
    """The nearest float64, infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def sort_labels(labels: Iterable[Any]) -> list[Any]:
    """Labels in the order of their codes: numbers by value, then strings, then the rest."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=_rank_of_any)


def object_array(labels: Sequence[Any]) -> np.ndarray:
    """Python objects as a 1-d object array, whatever they are."""
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _rank_of_any(label: Any) -> tuple[int, float, str, str]:
    """A sorting key that compares labels of all types."""
    if isinstance(label, (numbers.Real, decimal.Decimal, np.bool_)):
        return 0, _float(label), "", repr(label)
    if isinstance(label, str):
        return 1, 0.0, "", label
    return 2, 0.0, type(label).__name__, repr(label)


def is_hashable(value: Any) -> bool:
    """Tell whether a dictionary takes it."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _no_label(value: Any, name: str) -> Exception:
    """The error for a cell that is neither number nor string."""
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return ValueError(
            f"Complex data not supported: column {name} of X holds {value!r}. "
            "Give its real and imaginary parts as two columns."
        )
    hint = ", for example bytes to str" if isinstance(value, bytes) else ""
    return TypeError(
        f"Column {name} of X holds {_shown(value)}: {WANTED}. Convert the column{hint}."
    )


def _shown(value: Any) -> str:
    """A cell and its type, for messages."""
    return f"{str(value)[:60]!r} of type {type(value).__name__}"


def _kind(label: Any) -> int:
    """Position in `KINDS`."""
    return 0 if isinstance(label, DATES) else 1 if isinstance(label, SPANS) else 2
