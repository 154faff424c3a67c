"""The front door: any table in memory as typed columns.

This is the only place that asks what a table is. What comes out has three kinds of columns, and
nothing behind this door sees a DataFrame, a list or a sparse matrix in another form:

    Numbers   some columns of one numeric type as a 2-d array, NaN missing; a view where possible
    Labels    one column of anything else: a number per row (-1 missing) into distinct labels
    sparse    the whole table as a canonical CSC matrix, NaN missing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from dtrees.coding.coded import check_n_rows

UNITS = ("number", "datetime64[ns]", "timedelta64[ns]", "bool")
NUMBER, DATETIME, TIMEDELTA, BOOL = range(4)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns of one numeric type.

    Attributes
    ----------
    columns : int64 (k,)
        Where they stand in the table; ascending.
    values : bool, int or float (n_rows, k), any strides
    """

    columns: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Labels:
    """A column that is not numbers by its type.

    Attributes
    ----------
    column : int
    codes : intp (n_rows,)
        Place in ``labels``; -1 for missing.
    labels : list
        Distinct Python objects, in any order; some may be in no row.
    says : {"category", "string", "object"}
        What the column's type says about it.
    """

    column: int
    codes: np.ndarray
    labels: list[Any]
    says: str


@dataclass(frozen=True, eq=False)
class Table:
    """A table as typed columns."""

    n_rows: int
    n_columns: int
    names: np.ndarray | None
    numbers: tuple[Numbers, ...]
    labels: tuple[Labels, ...]
    sparse: scipy.sparse.csc_array | None
    units: np.ndarray

    def name(self, column: int) -> str:
        """How messages call a column."""
        return f"{self.names[column]!r}" if self.names is not None else f"{column}"


def read_table(X: Any) -> Table:
    """Any table as typed columns."""
    if scipy.sparse.issparse(X):
        return _from_sparse(X)
    X = np.asarray(X)
    n_rows, n_columns = X.shape
    check_n_rows(n_rows)
    numbers = (Numbers(np.arange(n_columns), X),)
    return Table(n_rows, n_columns, None, numbers, (), None, np.zeros(n_columns, np.uint8))


def _from_sparse(X: Any) -> Table:
    """A sparse matrix or array of any format; the user's object is left as it is."""
    n_rows, n_columns = X.shape
    check_n_rows(n_rows)
    matrix = scipy.sparse.csc_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return Table(n_rows, n_columns, None, (), (), matrix, np.zeros(n_columns, np.uint8))
