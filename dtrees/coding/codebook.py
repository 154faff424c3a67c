"""The codebook: how a table is coded, and what every code of every column means.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from dtrees._forks import cached_property
from dtrees.coding._binning import STATUS_INFINITE, cut_column
from dtrees.coding._cells import any_infinite
from dtrees.coding._thresholds import thresholds
from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.coding.column_types import (
    as_fitted,
    categorical_mask,
    check_names,
    check_units,
    columns_by_type,
    refuse_columns,
    refuse_infinities,
    refuse_sparse_categories,
    warn_of_equal_names,
    warn_of_unseen,
    with_finite_ends,
)
from dtrees.coding.dense_columns import OrderedValues, code_dense, encode_dense, join_values
from dtrees.coding.labels import Labels, object_array
from dtrees.coding.sampling import CutRules
from dtrees.coding.sparse_columns import code_sparse, encode_sparse, read_sparse
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import Numbers, Table, read_table
from dtrees.coding.times import DATETIME, NUMBER, TIMEDELTA, UNITS
from dtrees.exceptions import UnseenCategoryError
from dtrees.typing import Runner, serial

HANDLE_UNKNOWN = ("missing", "majority", "error")
SAMPLE_ROWS = 200_000  # of a column, that quantiles are read from
PLAIN_CELLS = 2**16  # of an array of floats; above it, the long way costs nothing


@dataclass(frozen=True, eq=False)
class CodeBook:
    """Codes and their meaning, for every column of a table; made by `fit_encode`.

    Arrays are not to be written to.

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
    takes_infinities : bool
        Whether infinite numbers are taken, for the largest finite ones; otherwise they are refused.
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
    takes_infinities: bool = False
    _numbers: dict[int, dict[Any, int]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit_encode(
        cls,
        X: Any,
        *,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        handle_unknown: str = "missing",
        takes_infinities: bool = False,
        seed: int = 0,
        sample_rows: int = SAMPLE_ROWS,
        weights: np.ndarray | None = None,
        run: Runner = serial,
    ) -> tuple[CodeBook, CodedMatrix]:
        """Learn the codes of a table and code it.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            See `dtrees.coding.tables.read_table`. NaN, None, NaT and NA are missing.
        categorical_features : default="from_dtype"
            "from_dtype": by the column's type and values. None: no column. Or a boolean mask,
            column numbers, or column names; then all other columns have to be numbers.
        max_bins : int or None, default=None
            Most codes of an ordered column; columns with more distinct values are cut at
            quantiles. None: one code per distinct value, always.
        handle_unknown : {"missing", "majority", "error"}, default="missing"
        takes_infinities : bool, default=False
        seed : int, default=0
            Key of the sample that quantiles are read from.
        sample_rows : int, default=200_000
            Size of that sample, per column.
        weights : int64 (n_rows,) or None, default=None
            What rows count for in quantiles (`dtrees.coding.target.cut_weights`); None: one.
        run : Runner, default=serial
            Gets one task per few columns.

        Returns
        -------
        book : CodeBook
        coded : CodedMatrix

        Raises
        ------
        ValueError, TypeError
            A table that cannot be read, infinities that are not taken.

        Notes
        -----
        O(cells). Above table and codes it holds a few columns per thread.
        """
        rules = CutRules(max_bins=max_bins, sample_rows=sample_rows, seed=seed)
        table = read_table(X)
        table = with_finite_ends(table, run) if takes_infinities else table
        mask = categorical_mask(categorical_features, table.n_columns, table.names)
        categories: dict[int, np.ndarray] = {}
        if table.sparse is not None:
            refuse_sparse_categories(table, mask)
            coded, part, status = code_sparse(read_sparse(table), rules, run, weights)
            if (status == STATUS_INFINITE).any():
                refuse_columns(table, status == STATUS_INFINITE)
            parts = [part]
        else:
            columns = columns_by_type(table, mask)
            coded, parts, categories = code_dense(table, columns, rules, run, weights)
        how = handle_unknown, takes_infinities
        return cls._of(parts, categories, table.names, table.units, *how), coded

    @classmethod
    def from_summary(
        cls,
        summary: TableSummary,
        *,
        feature_names: np.ndarray | None = None,
        handle_unknown: str = "missing",
        takes_infinities: bool = False,
    ) -> CodeBook:
        """The book of a table of which only a (merged) summary is known.

        The same as `fit_encode` on the whole table learns, whatever parts the summary comes from.

        Raises
        ------
        ValueError
            Infinities, or dates in the place of numbers.
        """
        if (summary.clashes | summary.infinite).any():
            _refuse_summary(summary, feature_names)
        parts, categories = summary.ordered_values(), summary.labels()
        how = handle_unknown, takes_infinities
        return cls._of(parts, categories, feature_names, summary.units, *how)

    @classmethod
    def _of(
        cls,
        parts: Sequence[OrderedValues],
        categories: dict[int, np.ndarray],
        names: np.ndarray | None,
        units: np.ndarray,
        handle_unknown: str,
        takes_infinities: bool,
    ) -> CodeBook:
        warn_of_equal_names(names)
        n_ordered = np.zeros(len(units), dtype=np.int64)
        exact = np.ones(len(units), dtype=bool)
        for part in parts:
            n_ordered[part.columns] = part.n_codes
            exact[part.columns] = part.exact
        n_codes = n_ordered.copy()
        for column, labels in categories.items():
            n_codes[column] += len(labels)
        offsets = np.concatenate([[0], np.cumsum(n_ordered)])
        if len(parts) == 1 and len(parts[0].columns) == len(units):  # of an array
            low = parts[0].low
            high = low if exact.all() else parts[0].high
        else:
            low, high = join_values(parts, offsets, exact)
        return cls(
            n_columns=len(units),
            feature_names=names,
            n_codes=n_codes,
            n_ordered=n_ordered,
            offsets=offsets,
            low=low,
            high=high,
            exact=exact,
            units=units,
            categories=categories,
            handle_unknown=handle_unknown,
            takes_infinities=takes_infinities,
        )

    def encode_part(self, table: Table) -> CodedMatrix:
        """Codes of some rows of the table that the book is of, for `stack_parts`.

        What `check` would refuse was refused when the rows were summarized.
        """
        # All categories are known, and no room is left for others. Values are known, too: they are
        # cuts themselves.
        known = replace(self, handle_unknown="missing", exact=np.zeros_like(self.exact))
        return known.encode(as_fitted(known, table))

    def stack_parts(self, parts: Sequence[CodedMatrix]) -> CodedMatrix:
        """The coded table that the book is of, from all of its parts in order.

        The same as `fit_encode` makes of the whole table, but for the order of the rows of wide
        columns (``order32``), which growth then finds itself.
        """
        coded = CodedMatrix.stack(parts)
        if len(coded.sparse_rows) == 0:
            return coded
        # zero has a code where it is a value, and in cut columns where a row does not store it
        sparse = np.flatnonzero(coded.storage == SPARSE)
        slots = coded.slot[sparse]
        zeros = np.flatnonzero(self.low == 0)
        has_zero = np.zeros(self.n_columns, dtype=bool)
        has_zero[np.searchsorted(self.offsets, zeros, side="right") - 1] = True
        is_stored = np.diff(coded.sparse_indptr)[slots] == coded.n_rows
        is_value = np.where(self.exact[sparse], has_zero[sparse], ~is_stored)
        fill = np.zeros_like(coded.fill_code)
        fill[slots] = np.where(is_value, coded.fill_code[slots], 0)
        return replace(coded, fill_code=fill)

    def check_columns(
        self, names: np.ndarray | None, n_columns: int | None, estimator: str = "CodeBook"
    ) -> None:
        """Compare names and number of columns with those of the table that was fitted.

        ValueError in scikit-learn's words. Names on one side only are a warning, as there. A number
        of None is not known yet; `estimator` is a name for messages.
        """
        check_names(self.feature_names, names, estimator)
        if n_columns is not None and n_columns != self.n_columns:
            raise ValueError(
                f"X has {n_columns} features, but {estimator} is expecting "
                f"{self.n_columns} features as input."
            )

    def check(self, X: Any, *, estimator: str = "CodeBook", run: Runner = serial) -> Table:
        """A table that has to have the columns of the one that was fitted.

        In the table that is returned ordered columns are numbers, categorical ones labels.
        `estimator` is a name for messages.

        Raises
        ------
        ValueError
            Other number, names or order of columns (in scikit-learn's words), strings where numbers
            were fitted, dates or time spans where something else was fitted or the reverse,
            infinities that are not taken. A column that is all missing is of any kind.
        UnseenCategoryError
            With ``handle_unknown="error"``: none of a column's values was fitted, whether a tree
            asks or not.

        Warns
        -----
        UserWarning
            None of a column's values was fitted, of ten or more, so that its type may have changed.
            A table is judged as a whole, a Dask collection block by block when it is computed.
        """
        plain = self._plain_table(X)
        if plain is not None:
            return plain
        table = read_table(X)
        self.check_columns(table.names, table.n_columns, estimator)
        check_units(self, table)
        table = as_fitted(self, table)
        if self.takes_infinities:
            table = with_finite_ends(table, run)
        else:
            refuse_infinities(table, run)
        warn_of_unseen(self, table)
        return table

    def encode(
        self, X: Any, *, columns: Iterable[int] | None = None, run: Runner = serial
    ) -> CodedMatrix:
        """Codes of another table by this book.

        X : table of shape (n_rows, n_columns), or what `check` returned. Of some `columns` only
        these are coded; the others have no codes (``n_codes == 0``) and take no memory. With
        ``handle_unknown="majority"`` a category that was not fitted has the code ``n_codes + 1``;
        with "error" it is an UnseenCategoryError.
        """
        table = X if isinstance(X, Table) else self.check(X)
        wanted = np.zeros(self.n_columns, dtype=bool)
        wanted[slice(None) if columns is None else np.asarray(list(columns), dtype=np.intp)] = True
        if table.sparse is not None:
            return encode_sparse(self, read_sparse(table), wanted)
        return encode_dense(self, table, wanted, run)

    def read_labels(self, column: Labels, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Codes and numbers of the labels of a categorical or hybrid column. O(labels), not rows.

        Codes are uint32 (n_labels,), as `encode` gives them to rows; 0 for labels that are in no
        row and name no number. Numbers are float64 (n_labels,); nan for what is no number, and
        where no number was fitted. `name` is that of the column in messages. UnseenCategoryError: a
        label of some row was not fitted, and ``handle_unknown="error"``.
        """
        j = column.column
        n_ordered, n_codes = int(self.n_ordered[j]), int(self.n_codes[j])
        codes = np.zeros(len(column.labels), dtype=np.uint32)
        numbers = np.full(len(codes), np.nan)
        unknown = column.present() if n_codes > 0 else codes.astype(bool)
        if n_ordered > 0:
            numbers = column.as_numbers(name)
            is_number = ~np.isnan(numbers)
            by_number = np.empty(len(numbers), dtype=np.uint32)
            cut_column(numbers + 0.0, self.cuts(j), by_number)
            codes[is_number] = by_number[is_number]
            unknown &= ~is_number
        number = self.numbers_of_categories(j)
        for i in np.flatnonzero(unknown).tolist():
            code = number.get(column.labels[i], 0)
            if code == 0 and self.handle_unknown == "error":
                shown = list(number)[:5]
                raise UnseenCategoryError(
                    f"Found an unknown category {column.labels[i]!r} in column {name} of X, "
                    f"which was fitted with {len(number)} categories ({str(shown)[1:-1]}"
                    f"{', ...' if len(number) > 5 else ''}) and handle_unknown='error'. Repair "
                    "the value, or fit with handle_unknown='missing' or handle_unknown='majority'."
                )
            codes[i] = n_codes + 1 if code == 0 and self.handle_unknown == "majority" else code
        return codes, numbers

    @cached_property
    def _plain_columns(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers and units of all columns; None where arrays of floats have to be looked at."""
        fitted = self.n_codes > 0
        if (
            self.feature_names is not None
            or (self.n_ordered < self.n_codes).any()
            or np.isin(self.units[fitted], (DATETIME, TIMEDELTA)).any()
        ):
            return None
        units = np.full(self.n_columns, NUMBER, dtype=np.uint8)
        return np.arange(self.n_columns, dtype=np.int64), units

    def _plain_table(self, X: Any) -> Table | None:
        """The table that `check` makes of few floats; None where it takes the long way.

        For a book of numbers without column names it depends on the array's shape and on
        infinities alone. So a few rows cost the calls, not the cells.
        """
        if (
            type(X) is not np.ndarray
            or X.dtype.char not in "fd"
            or X.ndim != 2
            or X.shape[1] != self.n_columns
            or not 0 < X.size <= PLAIN_CELLS
            or self._plain_columns is None
            or not X.flags.aligned
            or not X.dtype.isnative
            or any_infinite(X)
        ):
            return None
        columns, units = self._plain_columns
        n_rows, n_columns = X.shape
        return Table(n_rows, n_columns, None, (Numbers(columns, X),), (), None, units)

    def thresholds(
        self,
        column: np.ndarray,
        code_left: np.ndarray,
        code_right: np.ndarray,
        fractions: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds between neighbouring codes of nodes, and the last code that goes left.

        code_left, code_right : greatest ordered code of the left side and least of the right side
        that are present in the node, ``1 <= code_left < code_right <= n_ordered``. Where
        ``code_right`` is 0 all ordered codes go left, and the threshold is inf; where ``code_left``
        is 0 there is none, nan.

        fractions : where between the two codes random cuts were drawn; 0 is the value of the left
        one, 1 that of the right one, which is not reached. None: midpoints.

        Returns float64 thresholds, and uint32: the greatest code whose values are all at most the
        threshold; 0 where there is none.
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
        """Name of a column in messages."""
        names = self.feature_names
        return f"{names[column]!r}" if names is not None else f"{column}"

    def unit(self, column: int) -> str:
        """Unit of a column's ordered values, one of `UNITS`."""
        return UNITS[self.units[column]]

    def without_values(self) -> Self:
        """The book for prediction: values of ordered columns are left out.

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
        return replace(self, offsets=offsets, low=low, high=high)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the look-up tables that were made on the way."""
        state = {**vars(self), "_numbers": {}}
        state.pop("_plain_columns", None)
        return state


def _refuse_summary(summary: TableSummary, names: np.ndarray | None) -> None:
    """Refuse what `fit_encode` refuses when it has seen the whole table."""
    named = Table(summary.n_rows, len(summary.units), names, (), (), None, summary.units)
    if summary.clashes.any():
        raise ValueError(
            f"Column {named.name(int(np.argmax(summary.clashes)))} of X holds dates or time spans "
            "in some rows, and something else in others. Convert it to one type."
        )
    refuse_columns(named, summary.infinite)


def midpoints(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Halfway between values a < b, float64; a where that is not below b."""
    middle = below / 2 + above / 2
    return np.where(middle < above, middle, below)
