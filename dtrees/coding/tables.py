"""Any table in memory as typed columns.

Only this module knows table libraries. All other modules see three kinds of columns:

    Numbers   some columns of one numeric type as a 2-d array, NaN missing; a view where possible
    Labels    one column of anything else: a number per row (-1 missing) into distinct labels
    sparse    the whole table as a canonical CSC matrix, NaN missing

Columns of a DataFrame that are neighbours in one array become one block of numbers, a view. Dates
and time spans are float64 nanoseconds (`dtrees.coding.times`). Integers stay integers: float64
holds those up to 2**53. A column with larger integers beside missing values becomes labels.
pandas, polars and pyarrow are never imported here: a table of theirs has imported them.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from dtrees.coding.labels import DATES, SPANS, Labels, object_array
from dtrees.coding.sparse_positions import checked_sparse, in_scipy, usual_values
from dtrees.coding.times import BOOL, NUMBER, TIMEDELTA, time_column, time_objects
from dtrees.exceptions import StatisticsOverflowError

MAX_ROWS = 2**31 - 1  # that a number of 32 bits can count
LARGEST_WHOLE = 2.0**53  # up to which float64 holds every integer

Column = tuple[np.ndarray | Labels, int]  # with the position of its unit in `UNITS`
FEW_LABELS = 512  # of a column's type, which cost less than to find out which are in some row
FEW_STRINGS = 64  # of a column, of which Python makes labels sooner than pandas does
SMALL_FRAME = 2**26  # bytes of a DataFrame that may be copied
ONE_MEMORY = (np.ndarray, bytes, bytearray, memoryview)  # they own one; pickles have the others
FEW_ROWS = 500  # of a frame, whose numbers are copied sooner than a Series of each column is made
FEW_COLUMNS = 20  # of a frame: a Series of each is made sooner than that of their types


def as_array(X: Any) -> np.ndarray:
    """A list or array-like as an array; numbers beside strings in a list stay numbers."""
    if X is None or isinstance(X, (str, bytes, Mapping, Set)):
        raise ValueError(
            f"Expected 2D array, got a {type(X).__name__} instead: {reprlib.repr(X)}. "
            "Give an array, a data frame or a sparse matrix."
        )
    try:
        array = np.asarray(_unmasked(X) if isinstance(X, np.ma.MaskedArray) else X)
        if not isinstance(X, np.ndarray) and not hasattr(X, "__array__"):
            is_rounded = array.dtype.kind == "f" and _may_be_rounded(array)
            if array.dtype.kind in "US" or is_rounded:
                array = np.asarray(X, dtype=object)
    except ValueError as error:
        raise ValueError(
            f"X of type {type(X).__name__} does not form a 2D array: {error}. "
            "Give rows of equal length."
        ) from error
    if array.ndim < 2:
        what = "1D" if array.ndim == 1 else "scalar"
        raise ValueError(
            f"Expected 2D array, got {what} array instead:\narray={np.array2string(array)[:200]}.\n"
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X has shape "
            f"{array.shape}. Reshape it to (rows, columns)."
        )
    return array


def _unmasked(X: Any) -> np.ndarray:
    """A masked array with NaN, NaT or None in the cells that are masked."""
    kind = X.dtype.kind
    if not np.ma.is_masked(X) or kind == "c":
        return X.data
    if kind in "biu" and not is_beyond_floats(X.compressed()):
        return X.astype(np.float64).filled(np.nan)
    if kind == "f":
        return X.filled(np.nan)
    filled = X.data.copy() if kind in "Mm" else X.data.astype(object)
    filled[np.ma.getmaskarray(X)] = "NaT" if kind in "Mm" else None
    return filled


def array_column(values: np.ndarray, j: int, name: str) -> Column:
    """One column of a numpy type: numbers or labels, and its unit."""
    kind = values.dtype.kind
    if kind in "biuf":
        return values, BOOL if kind == "b" else NUMBER
    if kind in "Mm":
        return time_column(values, name)
    if kind in "UOT":
        return object_column(values, j, name)
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name} of X is {values.dtype}.")
    raise TypeError(
        f"Column {name} of X has dtype {values.dtype}, which is neither numbers nor labels. "
        "Convert it to numbers or strings."
    )


def object_column(values: np.ndarray, j: int, name: str) -> Column:
    """Strings or objects: numbers, dates or time spans where every cell is one; else labels."""
    if values.dtype.kind == "U":
        distinct, codes = np.unique(values, return_inverse=True)
        return Labels(j, codes, distinct.tolist()), NUMBER
    cells = values.tolist()
    if not any(isinstance(cell, str) for cell in cells):
        if any(isinstance(cell, DATES + SPANS) for cell in cells):
            times = time_objects(cells, name)
            if times is not None:
                return times
        try:
            parsed = values.astype(np.float64)
            if np.isfinite(parsed).all() and not _may_be_rounded(parsed):
                return parsed, NUMBER
        except (TypeError, ValueError, ArithmeticError):
            pass
    return Labels.of(j, cells, name), NUMBER


def _may_be_rounded(values: np.ndarray) -> bool:
    """Tell if floats may be integers that have lost digits: 2**53 is what 2**53 + 1 becomes."""
    return bool((np.abs(values) >= LARGEST_WHOLE).any())


def is_beyond_floats(values: np.ndarray) -> bool:
    """Tell whether integers of 64 bits, as they are, may have too many digits for a float64."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return int(values.max()) > LARGEST_WHOLE or int(values.min()) < -LARGEST_WHOLE


def integer_column(values: np.ndarray, missing: np.ndarray, j: int) -> np.ndarray | Labels:
    """Integers, some of which are missing: float64 where that holds them all, otherwise labels."""
    if not missing.any():
        return values
    if not is_beyond_floats(values[~missing]):
        out = values.astype(np.float64)
        out[missing] = np.nan
        return out
    distinct, codes = np.unique(values, return_inverse=True)
    return Labels(j, np.where(missing, -1, codes), distinct.tolist())


def pandas_column(series: Any, dtype: Any, j: int, name: str, pandas: Any) -> Column:
    """One column of a pandas DataFrame."""
    types = pandas.api.types
    if isinstance(dtype, np.dtype):
        return array_column(series.to_numpy(), j, name)
    if isinstance(dtype, pandas.ArrowDtype):
        pyarrow = sys.modules["pyarrow"]
        return arrow_column(pyarrow.array(series), j, name, pyarrow)
    if isinstance(dtype, pandas.CategoricalDtype):
        values = series.array  # the accessor makes a Series more
        used, codes = _in_some_row(values.codes, len(dtype.categories))
        categories = dtype.categories if used is None else dtype.categories[used]
        return Labels(j, codes, categories.tolist(), is_category=True), NUMBER
    if isinstance(dtype, pandas.StringDtype) and len(series) <= FEW_STRINGS:
        return Labels.of(j, series.array.tolist(), name), NUMBER
    if isinstance(dtype, pandas.SparseDtype):
        return array_column(np.asarray(series), j, name)
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        if types.is_complex_dtype(dtype):
            raise ValueError(f"Complex data not supported: column {name} of X is {dtype}.")
        if types.is_integer_dtype(dtype):
            values = series.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
            return integer_column(values, series.isna().to_numpy(), j), NUMBER
        unit = BOOL if types.is_bool_dtype(dtype) else NUMBER
        return series.to_numpy(dtype=np.float64, na_value=np.nan), unit
    if types.is_datetime64_any_dtype(dtype):
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return time_column(series.to_numpy(), name)
    if types.is_string_dtype(dtype):
        codes, distinct = pandas.factorize(series)
        return Labels(j, codes, distinct.tolist()).without_missing(), NUMBER
    raise TypeError(
        f"Column {name} of X has dtype {dtype}, which is neither numbers nor labels. "
        "Convert it to numbers, dates, strings or a category."
    )


def _in_some_row(codes: np.ndarray, n_labels: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Labels of a column's type that some row has, where there are many more of them than rows.

    What is in no row means nothing, and a row of a column of many categories is not to cost them
    all. Where there are few labels, or fewer than rows, all of them are kept.

    Returns the positions of used labels, ascending (None: all), and the codes among these.
    """
    if n_labels <= max(len(codes), FEW_LABELS):
        return None, codes
    used, positions = np.unique(codes, return_inverse=True)
    n_missing = np.count_nonzero(used < 0)  # 0 or 1
    return used[n_missing:], positions - n_missing


def polars_column(series: Any, j: int, polars: Any) -> Column:
    """One column of a polars DataFrame."""
    dtype, name = series.dtype, f"{series.name!r}"
    if dtype == polars.Boolean:
        return series.cast(polars.Float64).to_numpy(), BOOL
    if dtype.is_decimal():
        return series.cast(polars.Float64).to_numpy(), NUMBER
    if dtype.is_integer():
        values = series.fill_null(0).to_numpy()
        return integer_column(values, series.is_null().to_numpy(), j), NUMBER
    if dtype.is_numeric():
        return series.to_numpy(), NUMBER
    if dtype in (polars.Date, polars.Datetime, polars.Duration):
        return time_column(series.to_numpy(), name)
    if dtype == polars.Time:  # nanoseconds since midnight
        return series.to_physical().cast(polars.Float64).to_numpy(), TIMEDELTA
    if dtype == polars.Null:
        return np.full(len(series), np.nan), NUMBER
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        text = series.cast(polars.String)
        distinct = text.drop_nulls().unique().sort()
        codes = text.cast(polars.Enum(distinct)).to_physical().cast(polars.Int64).fill_null(-1)
        is_category = dtype != polars.String
        return Labels(j, codes.to_numpy(), distinct.to_list(), is_category), NUMBER
    if dtype == polars.Object:
        return object_column(object_array(series.to_list()), j, name)
    raise TypeError(
        f"Column {name} of X has the polars type {dtype}, which is neither numbers nor labels. "
        "Cast it to numbers, dates or strings."
    )


def arrow_column(column: Any, j: int, name: str, pyarrow: Any) -> Column:
    """One column of an Arrow table."""
    types, kind = pyarrow.types, column.type
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if types.is_boolean(kind):
        return column.cast(pyarrow.int8()).cast(pyarrow.float64()).to_numpy(False), BOOL
    if types.is_integer(kind):
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        return integer_column(values, missing, j), NUMBER
    if types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False), NUMBER
    if types.is_decimal(kind):
        return column.cast(pyarrow.float64()).to_numpy(False), NUMBER
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return time_column(column.to_numpy(zero_copy_only=False), name)
    if types.is_time(kind):
        since_midnight = column.cast(pyarrow.time64("ns")).cast(pyarrow.int64())
        return since_midnight.cast(pyarrow.float64()).to_numpy(zero_copy_only=False), TIMEDELTA
    if types.is_null(kind):
        return np.full(len(column), np.nan), NUMBER
    is_category = types.is_dictionary(kind)
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        column = column.dictionary_encode()
    elif not is_category:
        raise TypeError(
            f"Column {name} of X has the Arrow type {kind}, which is neither numbers nor labels. "
            "Cast it to numbers, dates or strings."
        )
    codes = column.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(False)
    used, codes = _in_some_row(codes, len(column.dictionary))
    dictionary = column.dictionary if used is None else column.dictionary.take(pyarrow.array(used))
    labels = Labels(j, codes, dictionary.to_pylist(), is_category)
    return labels.without_missing(), NUMBER


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

    def __sizeof__(self) -> int:
        """Bytes of the cells: Dask asks for it, to know what to spill."""
        arrays = [own.values for own in self.numbers] + [own.codes for own in self.labels]
        if self.sparse is not None:
            arrays += [self.sparse.data, self.sparse.indices, self.sparse.indptr]
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)

    def dtypes(self) -> list[np.dtype | None]:
        """Types of the columns of a dense table; None for labels."""
        found: list[np.dtype | None] = [None] * self.n_columns
        for block in self.numbers:
            for j in block.columns.tolist():
                found[j] = block.values.dtype
        return found

    def name(self, column: int) -> str:
        """Name of a column in messages."""
        return f"{self.names[column]!r}" if self.names is not None else f"{column}"

    @property
    def block(self) -> np.ndarray | None:
        """The whole table as one 2-d numeric array, if that is what it is."""
        if len(self.numbers) == 1 and len(self.numbers[0].columns) == self.n_columns:
            return self.numbers[0].values
        return None

    def equals(self, other: Table) -> bool:
        """Whether all cells are equal, whatever types and units columns have. O(cells)."""
        names = [each.names.tolist() for each in (self, other) if each.names is not None]
        shapes = [(each.n_rows, each.n_columns) for each in (self, other)]
        if shapes[0] != shapes[1] or names[:1] != names[-1:]:
            return False
        if self.sparse is not None and other.sparse is not None:
            parts = [(each.indptr, each.indices, each.data) for each in (self.sparse, other.sparse)]
            return all(map(_are_equal, *parts))
        return all(map(_are_equal, self._columns(), other._columns()))

    def _columns(self) -> Iterator[np.ndarray | Labels]:
        """The columns one by one; those of sparse tables are made."""
        found: dict[int, np.ndarray | Labels] = {own.column: own for own in self.labels}
        for block in self.numbers:
            found |= zip(block.columns.tolist(), block.values.T, strict=True)
        for j in range(self.n_columns):
            yield found[j] if self.sparse is None else self.sparse[:, [j]].toarray()[:, 0]

    def rows(self, start: int, stop: int) -> Table:
        """The rows ``start .. stop - 1``; views, but for sparse tables."""
        return replace(
            self,
            n_rows=len(range(*slice(start, stop).indices(self.n_rows))),
            numbers=tuple(replace(b, values=b.values[start:stop]) for b in self.numbers),
            labels=tuple(replace(c, codes=c.codes[start:stop]) for c in self.labels),
            sparse=None if self.sparse is None else self.sparse[start:stop],
        )

    def take(self, rows: np.ndarray) -> Table:
        """Some rows by number, copied."""
        return replace(
            self,
            n_rows=len(rows),
            numbers=tuple(replace(b, values=b.values[rows]) for b in self.numbers),
            labels=tuple(replace(c, codes=c.codes[rows]) for c in self.labels),
            sparse=None if self.sparse is None else self.sparse.tocsr()[rows].tocsc(),
        )


def _are_equal(one: np.ndarray | Labels, other: np.ndarray | Labels) -> bool:
    """Whether two columns hold the same; what is missing is equal to itself."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return np.array_equal(_as_objects(one), _as_objects(other))


def _as_objects(column: np.ndarray | Labels) -> np.ndarray:
    """The cells of a column; None is missing."""
    if isinstance(column, Labels):
        return object_array([*column.labels, None])[column.codes]
    found = column.astype(object)
    found[np.isnan(column)] = None
    return found


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
    if not isinstance(X, np.ndarray):
        X = in_scipy(X)
    if scipy.sparse.issparse(X):
        return _from_sparse(X)
    pandas, polars, pyarrow = (sys.modules.get(m) for m in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _from_pandas(X, pandas)
    if polars is not None and isinstance(X, polars.DataFrame):
        parts = {j: polars_column(series, j, polars) for j, series in enumerate(X.get_columns())}
        return _table(X.shape[0], X.shape[1], feature_names(X.columns), parts)
    if pyarrow is not None and isinstance(X, (pyarrow.Table, pyarrow.RecordBatch)):
        names = X.schema.names
        columns = enumerate(zip(X.columns, names, strict=True))
        parts = {j: arrow_column(each, j, f"{name!r}", pyarrow) for j, (each, name) in columns}
        return _table(X.num_rows, X.num_columns, feature_names(names), parts)
    if polars is not None and isinstance(X, polars.LazyFrame):
        raise TypeError("X is a polars LazyFrame, which holds no rows yet. Give X.collect().")
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            f"X is a Dask collection ({type(X).__name__}), which is not in memory. "
            "Give X.compute(), if it fits."
        )
    if isinstance(X, np.matrix):
        raise TypeError("X: np.matrix is not supported. Convert it with np.asarray(X).")
    array = X if type(X) is np.ndarray and X.ndim == 2 else as_array(X)
    n_rows, n_columns = array.shape
    if array.dtype.kind not in "biuf":
        parts = {j: array_column(array[:, j], j, f"{j}") for j in range(n_columns)}
        return _table(n_rows, n_columns, None, parts)
    check_shape(array.shape)
    units = np.full(n_columns, BOOL if array.dtype.kind == "b" else NUMBER, dtype=np.uint8)
    block = Numbers(np.arange(n_columns, dtype=np.int64), array)
    return Table(n_rows, n_columns, None, (block,), (), None, units)


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
    """Tell whether a column lies in memory where the block's next column has to lie."""
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
    if shape[0] > MAX_ROWS:
        raise StatisticsOverflowError(
            f"X has {shape[0]} rows; a table has at most 2**31 - 1 = {MAX_ROWS}. Fit on fewer rows."
        )


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
        return replace(read_table(X.to_numpy()), names=names)
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
    """Tell whether a column is sparse as a matrix of SciPy is; others leave out missing values."""
    if not isinstance(dtype, pandas.SparseDtype) or pandas.isna(dtype.fill_value):
        return False
    return bool(dtype.fill_value == 0)


def row_values(values: Any) -> Any:
    """A value for each row as a NumPy array, where it is a column of another library.

    Fits convert whatever they get. Splitters and scorers take rows by number, which columns of
    other libraries answer in ways of their own, or not at all. So every entry point converts first
    (`dtrees.parallel.admitted`): an extension array or an index of pandas, a column of Arrow or
    polars, or anything else that has ``__array__``. Series and data frames of pandas stay, as
    scorers may ask for their index; so do several columns of polars, which have names and types of
    their own, and what is no array, such as a list. Several columns of Arrow are such a data frame,
    where there is pandas.

    Python numbers of one type have that type instead of ``object``, and strings of variable width
    are objects: scikit-learn knows no others.
    """
    if not hasattr(values, "__array__"):
        return values
    if hasattr(values, "get_columns") and values.shape[1] > 1:
        return values
    if hasattr(values, "column_names") and values.shape[1] > 1 and find_spec("pandas") is not None:
        values = values.to_pandas()
    if not isinstance(values, np.ndarray) and not hasattr(values, "iloc"):
        values = np.asarray(values)
    kind = getattr(getattr(values, "dtype", None), "kind", "")  # a data frame has several
    if kind == "T":
        return values.astype(object)
    if kind == "O" and values.ndim == 1 and len(values) > 0:
        cells = values.tolist()
        if len(set(map(type, cells))) == 1 and isinstance(cells[0], bool | int | float | np.number):
            dtype = np.array(cells).dtype
            return values if dtype.kind == "O" else values.astype(dtype)
    return values
