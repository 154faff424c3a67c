"""A shorter way for small arrays of floats: few rows cost the calls, not the cells.

For a book of numbers without column names, `CodeBook.check` of a float32 or float64 array depends
on its shape and on infinities alone. The other parts of such tables are made once. Everything else
takes the long way, which raises the errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding._cells import any_infinite
from dtrees.coding.tables import Numbers, Table
from dtrees.coding.times import DATETIME, NUMBER, TIMEDELTA

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

MOST_CELLS = 2**16  # above it, the long way costs nothing


@dataclass(frozen=True, eq=False)
class PlainTables:
    """Tables of one block of floats.

    Attributes
    ----------
    columns : int64 (n_columns,)
        All of them.
    units : uint8 (n_columns,)
        Numbers.
    """

    columns: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, book: CodeBook) -> PlainTables | None:
        """What fits a book; None where arrays of floats have to be looked at."""
        fitted = book.n_codes > 0
        if (
            book.feature_names is not None
            or (book.n_ordered < book.n_codes).any()
            or np.isin(book.units[fitted], (DATETIME, TIMEDELTA)).any()
        ):
            return None
        columns = np.arange(book.n_columns, dtype=np.int64)
        return cls(columns, np.full(book.n_columns, NUMBER, dtype=np.uint8))

    def table(self, X: Any) -> Table | None:
        """The table that `CodeBook.check` makes of `X`; None where it takes the long way."""
        if (
            type(X) is not np.ndarray
            or X.dtype.char not in "fd"
            or X.ndim != 2
            or X.shape[1] != len(self.columns)
            or not 0 < X.size <= MOST_CELLS
            or not X.flags.aligned
            or not X.dtype.isnative
            or any_infinite(X)
        ):
            return None
        n_rows, n_columns = X.shape
        block = Numbers(self.columns, X)
        return Table(n_rows, n_columns, None, (block,), (), None, self.units)
