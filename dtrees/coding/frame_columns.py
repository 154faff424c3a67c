"""Columns of pandas, polars and Arrow: numbers or labels, and the unit of each.

These libraries are arguments: nothing is imported that the caller has not imported.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dtrees.coding.array_columns import Column, array_column, integer_column, object_column
from dtrees.coding.labels import Labels, object_array
from dtrees.coding.times import BOOL, NUMBER, TIMEDELTA, time_column

FEW_LABELS = 512  # of a column's type, which cost less than to find out which are in some row
FEW_STRINGS = 64  # of a column, of which Python makes labels sooner than pandas does


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
    """Which labels of a column's type are in some row, where there are many more of them than rows.

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
