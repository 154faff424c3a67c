"""What every code of every column means: values, categories, cuts and thresholds.

    exact ordered column     code c is one value:                  low[c] == high[c]
    binned ordered column    code c: values in (high[c - 1], high[c]]; low[c] is the least sampled
    categories               code n_ordered + i is categories[column][i - 1]
    hybrid                   numbers first, then categories

Values of ordered codes stand one behind the other for all columns (``offsets``), so a table of
100,000 sparse columns costs a handful of arrays and no Python object per column.

Thresholds are in the user's units. Between two neighbouring values a, b *present in the node* the
threshold is the midpoint ``a / 2 + b / 2``, as in scikit-learn, or, of a random cut, the number
drawn between them; where rounding would bring it up to b, it is a. Codes of values that were not
there at fit are those of the nearest known value, the lower of two equally near, so a test between
neighbours at the whole table's midpoint sends them the same way. Deeper in a tree the neighbours of
a node are further apart: raw values compared with the threshold are right and codes may not be.
Prediction on ordered columns therefore uses raw values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from dtrees.coding._thresholds import thresholds
from dtrees.coding.labels import object_array
from dtrees.coding.times import BOOL, DATETIME, TIMEDELTA, UNITS


@dataclass(frozen=True, eq=False)
class CodeMeanings:
    """What the codes of a table mean; arrays are not to be written to.

    Attributes
    ----------
    n_columns : int
    feature_names : object (n_columns,) of str, or None
    n_codes, n_ordered : int64 (n_columns,)
    offsets : int64 (n_columns + 1,)
        Where the ordered codes of a column begin in ``low`` and ``high``.
    low, high : float64, or float32 where X was (offsets[-1],)
        Least and greatest value of every ordered code; the same array when all are exact.
    exact : bool (n_columns,)
        Whether each ordered code is one value.
    units : uint8 (n_columns,)
        Positions in `UNITS`; see `unit`.
    categories : dict of int to (n_codes - n_ordered,) array
        By column, in the order of the codes; only columns that have some.
    handle_unknown : {"missing", "majority", "error"}
        What `CodeBook.encode` does with a category that was not there at fit.
    """

    n_columns: int
    feature_names: np.ndarray | None
    n_codes: np.ndarray
    n_ordered: np.ndarray
    offsets: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray
    units: np.ndarray
    categories: dict[int, np.ndarray] = field(default_factory=dict)
    handle_unknown: str = "missing"
    _numbers: dict[int, dict[Any, int]] = field(default_factory=dict, repr=False)

    def thresholds(
        self,
        column: np.ndarray,
        code_left: np.ndarray,
        code_right: np.ndarray,
        fractions: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds between neighbouring codes of nodes, and the last code that goes left.

        Parameters
        ----------
        column : int (m,)
        code_left, code_right : int (m,)
            Greatest ordered code of the left side and least of the right side that are present
            in the node: ``1 <= code_left < code_right <= n_ordered``. Where ``code_right`` is 0
            all ordered codes go left; where ``code_left`` is 0 there is no threshold.
        fractions : float64 (m,) or None, default=None
            Where between the two codes a random cut was drawn: 0 is the value of the left one, 1
            that of the right one, which is not reached. None: midpoints.

        Returns
        -------
        threshold : float64 (m,)
            inf where all ordered codes go left, nan where there is none.
        last_left_code : uint32 (m,)
            The greatest code whose values are all at most the threshold; 0 where there is none.
        """
        return thresholds(
            self.low,
            self,
            np.asarray(column, dtype=np.int32),
            np.asarray(code_left, dtype=np.uint32),
            np.asarray(code_right, dtype=np.uint32),
            fractions,
        )

    def cuts(self, column: Any) -> np.ndarray:
        """Greatest values that still get the codes 1, 2, ...: float64 (n_ordered - 1,).

        Exact columns: the midpoints of neighbouring values, so any number gets the code of the
        nearest known value. Binned ones: ``high``.
        """
        part = slice(self.offsets[column], self.offsets[column + 1])
        assert part.stop - part.start == self.n_ordered[column], "the values were left out"
        high = self.high[part].astype(np.float64, copy=False)
        return midpoints(high[:-1], high[1:]) if self.exact[column] else high[:-1]

    def code_values(self) -> tuple[np.ndarray, np.ndarray]:
        """The greatest value of every ordered code, and where each column's values begin.

        Returns
        -------
        values : float64 (sum of n_ordered,)
        first : int64 (n_columns + 1,)
        """
        return self.high.astype(np.float64), self.offsets.astype(np.int64)

    def numbers_of_categories(self, column: int) -> dict[Any, int]:
        """The code of every category of a column; made once."""
        if column not in self._numbers and column in self.categories:
            known = self.categories[column].tolist()
            codes = range(int(self.n_ordered[column]) + 1, int(self.n_codes[column]) + 1)
            self._numbers[column] = dict(zip(known, codes, strict=True))
        return self._numbers.get(column, {})

    def decode(self, column: int, codes: np.ndarray) -> np.ndarray:
        """Raw values of codes of one column.

        Returns
        -------
        float64 (len(codes),)
            Columns without categories; NaN for missing, the middle of a binned code's values.
        object (len(codes),)
            Others: numbers and categories; None for missing and unseen.
        """
        codes = np.asarray(codes, dtype=np.int64)
        part = slice(self.offsets[column], self.offsets[column + 1])
        low = self.low[part].astype(np.float64)
        middle = low if self.exact[column] else low / 2 + self.high[part].astype(np.float64) / 2
        if column not in self.categories:
            return np.append(np.nan, middle)[codes]
        known = [None, *middle.tolist(), *self.categories[column].tolist(), None]
        return object_array(known)[codes]

    def name(self, column: int) -> str:
        """How messages call a column."""
        names = self.feature_names
        return f"{names[column]!r}" if names is not None else f"{column}"

    def unit(self, column: int) -> str:
        """Unit of a column's ordered values, one of `UNITS`."""
        return UNITS[self.units[column]]

    def describe_value(self, column: int, value: float) -> str:
        """A threshold or value of an ordered column as people write it: dates as dates."""
        unit = self.units[column]
        if unit in (DATETIME, TIMEDELTA) and np.isfinite(value):
            nanoseconds = np.int64(round(value))
            if unit == TIMEDELTA:
                return str(nanoseconds.astype("timedelta64[ns]"))
            text = str(nanoseconds.astype("datetime64[ns]"))
            return text.removesuffix(".000000000").removesuffix("T00:00:00")
        if unit == BOOL and value in (0.0, 1.0):
            return str(bool(value))
        return f"{value:g}"

    def without_values(self) -> Self:
        """The same book for prediction: values of ordered columns are left out.

        Hybrid columns keep theirs, since they are coded at prediction. A book of many rows shrinks
        from the size of the table to almost nothing.
        """
        keep = (self.n_ordered > 0) & (self.n_ordered < self.n_codes)
        counts = np.where(keep, np.diff(self.offsets), 0)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        positions = np.concatenate(
            [np.arange(self.offsets[j], self.offsets[j + 1]) for j in np.flatnonzero(keep)]
            or [np.empty(0, dtype=np.int64)]
        )
        low = self.low[positions]
        high = low if self.high is self.low else self.high[positions]
        return replace(self, offsets=offsets, low=low, high=high, _numbers={})

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the look-up tables that were made on the way."""
        state = {**vars(self), "_numbers": {}}
        state.pop("_plain_tables", None)
        return state


def midpoints(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Halfway between values a < b, float64; a where that is not below b."""
    middle = below / 2 + above / 2
    return np.where(middle < above, middle, below)
