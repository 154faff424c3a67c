"""Any table in memory as typed columns.

Only this module, `array_columns` and `frame_columns` know table libraries. All other modules see
three kinds of columns:

    Numbers   some columns of one numeric type as a 2-d array, NaN missing; a view where possible
    Labels    one column of anything else: a number per row (-1 missing) into distinct labels
    sparse    the whole table as a canonical CSC matrix, NaN missing

Columns of a DataFrame that are neighbours in one array become one block of numbers, a view. Dates
and time spans are float64 nanoseconds (`dtrees.coding.times`). Integers stay integers: float64
holds those up to 2**53. A column with larger integers beside missing values becomes labels.
pandas, polars and pyarrow are never imported here: a table of theirs has imported them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from dtrees.coding.array_columns import Column, array_column, as_array
from dtrees.coding.coded import check_n_rows
from dtrees.coding.frame_columns import arrow_column, pandas_column, polars_column
from dtrees.coding.labels import Labels, object_array
from dtrees.coding.sparse_positions import checked_sparse, in_scipy, usual_values
from dtrees.coding.times import BOOL, NUMBER

SMALL_FRAME = 2**26  # bytes of a DataFrame that may be copied
ONE_MEMORY = (np.ndarray, bytes, bytearray, memoryview)  # they own one; pickles have the others
FEW_ROWS = 500  # of a frame, whose numbers are copied sooner than a Series of each column is made
FEW_COLUMNS = 20  # of a frame: a Series of each is made sooner than that of their types


@dataclass(eq=False)  # frozen ones take longer to make: of both, 0.9 of a row's 20 us
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

    def split(self, flags: np.ndarray) -> list[tuple[bool, Numbers]]:
        """Views of neighbouring columns with equal ``flags``, which the table's columns have."""
        own = flags[self.columns]
        ends = np.flatnonzero(np.diff(own)) + 1
        parts = zip([0, *ends], [*ends, len(own)], strict=True)
        return [(bool(own[a]), Numbers(self.columns[a:b], self.values[:, a:b])) for a, b in parts]


@dataclass(eq=False)
class Table:
    """A table as typed columns.

    Attributes
    ----------
    n_rows, n_columns : int
    names : object (n_columns,) of str, or None
    numbers : tuple of Numbers
    labels : tuple of Labels
    sparse : csc_array or None
        Canonical; then there are no other columns.
    units : uint8 (n_columns,)
        Positions in `dtrees.coding.times.UNITS`.
    """

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

    @property
    def block(self) -> np.ndarray | None:
        """The whole table as one 2-d numeric array, if that is what it is."""
        if len(self.numbers) == 1 and len(self.numbers[0].columns) == self.n_columns:
            return self.numbers[0].values
        return None

    def rows(self, start: int, stop: int) -> Table:
        """The rows ``start .. stop - 1``; views, but for sparse tables."""
        return replace(
            self,
            n_rows=len(range(*slice(start, stop).indices(self.n_rows))),
            numbers=tuple(replace(b, values=b.values[start:stop]) for b in self.numbers),
            labels=tuple(replace(c, codes=c.codes[start:stop]) for c in self.labels),
            sparse=None if self.sparse is None else self.sparse[start:stop],
        )


def read_table(X: Any) -> Table:
    """Any table in memory as typed columns.

    Parameters
    ----------
    X : array-like (n_rows, n_columns), DataFrame, pyarrow.Table, sparse matrix or array
        Numbers, booleans, strings, dates, categories. An object column holds numbers, strings or
        both. Sparse arrays are SciPy's, or those of the package ``sparse``. A Table is returned as
        it is.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Empty, one-dimensional, more than two dimensions, complex.
    TypeError
        Cells or columns of a type that is neither number nor label.
    """
    if isinstance(X, Table):
        return X
    X = in_scipy(X)
    if scipy.sparse.issparse(X):
        return _from_sparse(X)
    pandas, polars, pyarrow = (sys.modules.get(m) for m in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _from_pandas(X, pandas)
    if polars is not None and isinstance(X, polars.DataFrame):
        return _from_polars(X, polars)
    if pyarrow is not None and isinstance(X, (pyarrow.Table, pyarrow.RecordBatch)):
        return _from_arrow(X, pyarrow)
    if polars is not None and isinstance(X, polars.LazyFrame):
        raise TypeError("X is a polars LazyFrame, which holds no rows yet. Give X.collect().")
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            f"X is a Dask collection ({type(X).__name__}), which is not in memory. "
            "Give X.compute(), if it fits."
        )
    if isinstance(X, np.matrix):
        raise TypeError("X: np.matrix is not supported. Convert it with np.asarray(X).")
    return _from_array(as_array(X))


def feature_names(names: Iterable[Any]) -> np.ndarray | None:
    """Column names as scikit-learn takes them: all strings, or none at all."""
    found = list(names)
    types = sorted({type(name).__qualname__ for name in found})
    if len(types) > 1 and "str" in types:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {types} as feature name / column name types. If you want feature names to "
            "be stored and validated, you must convert them all to strings, by using X.columns = "
            "X.columns.astype(str) for example. Otherwise you can remove feature / column names "
            "from your input data, or convert them all to a non-string data type."
        )
    if types != ["str"]:
        return None
    return object_array(found)


def join_columns(columns: Sequence[tuple[int, np.ndarray]]) -> tuple[Numbers, ...]:
    """Columns as blocks: neighbours of equal step in one and the same memory are one view."""
    blocks: list[list[_Placed]] = []
    for column, values in columns:
        address = values.__array_interface__["data"][0]
        placed = _Placed(column, values, _root(values), address)
        if blocks and _continues(blocks[-1], placed):
            blocks[-1].append(placed)
        else:
            blocks.append([placed])
    joined = []
    for members in blocks:
        first = members[0]
        view = first.values[:, None]
        if len(members) > 1:
            shape = len(first.values), len(members)
            strides = first.values.strides[0], members[1].address - first.address
            view = np.lib.stride_tricks.as_strided(first.values, shape, strides, writeable=False)
        numbers = np.array([placed.column for placed in members], dtype=np.int64)
        joined.append(Numbers(numbers, view))
    return tuple(joined)


class _Placed(NamedTuple):
    """A column of the table, and where it lies; looked up once, which is dear for one row."""

    column: int
    values: np.ndarray
    root: Any  # owns the memory
    address: int


def _root(array: np.ndarray) -> Any:
    """The object that owns an array's memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner


def _continues(block: list[_Placed], placed: _Placed) -> bool:
    """Whether a column lies in memory where the block's next column has to lie."""
    last = block[-1]
    if (
        placed.values.dtype != last.values.dtype
        or placed.values.strides != last.values.strides
        or placed.root is not last.root
        or not isinstance(last.root, ONE_MEMORY)
    ):
        return False
    step = placed.address - last.address
    return len(block) == 1 or step == last.address - block[-2].address


def _table(
    n_rows: int,
    n_columns: int,
    names: np.ndarray | None,
    parts: Mapping[int, Column],
    blocks: Sequence[Numbers] = (),
) -> Table:
    """A table of columns one by one, each an array of numbers or labels, and its unit; and blocks.

    Those of `blocks` are plain numbers.
    """
    check_shape((n_rows, n_columns))
    numbers = [(j, part) for j, (part, _) in parts.items() if isinstance(part, np.ndarray)]
    labels = tuple(part for part, _ in parts.values() if isinstance(part, Labels))
    units = np.full(n_columns, NUMBER, dtype=np.uint8)
    units[list(parts)] = [unit for _, unit in parts.values()]
    joined = (*blocks, *join_columns(numbers))
    return Table(n_rows, n_columns, names, joined, labels, None, units)


def check_shape(shape: tuple[int, int]) -> None:
    """Refuse empty tables, in scikit-learn's words, and tables of too many rows."""
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                f"required. X needs at least one {'row' if what == 'sample' else 'column'}."
            )
    check_n_rows(shape[0])


def _from_array(X: np.ndarray) -> Table:
    """A 2-d array of any dtype."""
    n_rows, n_columns = X.shape
    check_shape(X.shape)
    if X.dtype.kind in "biuf":
        units = np.full(n_columns, BOOL if X.dtype.kind == "b" else NUMBER, dtype=np.uint8)
        columns = np.arange(n_columns, dtype=np.int64)
        block = Numbers(columns, np.asarray(X))
        return Table(n_rows, n_columns, None, (block,), (), None, units)
    parts = {j: array_column(X[:, j], j, f"{j}") for j in range(n_columns)}
    return _table(n_rows, n_columns, None, parts)


def _from_sparse(X: Any) -> Table:
    """A sparse matrix or array of any format; the user's object is left as it is."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse array of shape {X.shape} instead.")
    check_shape(X.shape)
    kind = X.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: X is sparse of dtype {X.dtype}.")
    if kind not in "biuf":
        raise TypeError(f"X is sparse of dtype {X.dtype}. Convert it to numbers.")
    matrix = scipy.sparse.csc_array(usual_values(checked_sparse(X)))
    shared = getattr(X, "data", None) is not None and np.shares_memory(matrix.data, X.data)
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if shared else matrix
        matrix.sum_duplicates()
    units = np.zeros(matrix.shape[1], dtype=np.uint8)
    return Table(matrix.shape[0], matrix.shape[1], None, (), (), matrix, units)


def _from_pandas(X: Any, pandas: Any) -> Table:
    """A pandas DataFrame: numpy, nullable, Arrow-backed, categorical, string, object, dates."""
    columns = X.columns.tolist()
    names = feature_names(columns)
    series = _series(X) if X.shape[1] <= FEW_COLUMNS else None
    dtypes = list(X.dtypes) if series is None else [each.dtype for each in series]
    kind = dtypes[0] if dtypes else None
    if not isinstance(kind, np.dtype) or any(dtype != kind for dtype in dtypes):
        kind = None  # types of many categories take long to compare
    if kind is not None and kind.kind in "iuf" and X.size * kind.itemsize < SMALL_FRAME:
        # one block as a rule, and then no copy; column by column costs more than a small copy
        return replace(_from_array(X.to_numpy()), names=names)
    if dtypes and all(_leaves_zeros_out(dtype, pandas) for dtype in dtypes):
        return replace(_from_sparse(X.sparse.to_coo()), names=names)
    blocks: list[Numbers] = []
    others = list(range(len(dtypes)))
    if series is None and X.shape[0] <= FEW_ROWS:
        blocks, others = _blocks_of_types(X, dtypes)
    if series is None:
        series = _series(X.iloc[:, others] if blocks else X)
    parts = {
        j: pandas_column(each, dtypes[j], j, f"{columns[j]!r}", pandas)
        for j, each in zip(others, series, strict=True)
    }
    return _table(X.shape[0], X.shape[1], names, parts, blocks)


def _blocks_of_types(X: Any, dtypes: Sequence[Any]) -> tuple[list[Numbers], list[int]]:
    """The columns of each numeric type as a copy; and the other columns."""
    by_type: dict[np.dtype | None, list[int]] = {}
    for j, dtype in enumerate(dtypes):
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "iuf"
        by_type.setdefault(dtype if is_number else None, []).append(j)
    others = by_type.pop(None, [])
    blocks = [Numbers(np.array(own), X.iloc[:, own].to_numpy()) for own in by_type.values()]
    return blocks, others


def _series(X: Any) -> list[Any]:
    """The columns of a frame; names of columns are slow to look up, and are left out."""
    table = X.copy(deep=False)  # `set_axis` copies all of it before pandas 3
    table.columns = range(X.shape[1])
    return [series for _, series in table.items()]


def _leaves_zeros_out(dtype: Any, pandas: Any) -> bool:
    """Whether a column is sparse as a matrix of SciPy is; others leave missing values out, say."""
    if not isinstance(dtype, pandas.SparseDtype) or pandas.isna(dtype.fill_value):
        return False
    return bool(dtype.fill_value == 0)


def _from_polars(X: Any, polars: Any) -> Table:
    """A polars DataFrame."""
    parts = {j: polars_column(series, j, polars) for j, series in enumerate(X.get_columns())}
    return _table(X.shape[0], X.shape[1], feature_names(X.columns), parts)


def _from_arrow(X: Any, pyarrow: Any) -> Table:
    """A pyarrow Table or RecordBatch."""
    names = X.schema.names
    parts = {j: arrow_column(X.column(j), j, f"{names[j]!r}", pyarrow) for j in range(len(names))}
    return _table(X.num_rows, X.num_columns, feature_names(X.schema.names), parts)
