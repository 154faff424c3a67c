"""Types of columns: ordered, categorical or hybrid.

A column of numbers is ordered, a column whose type says "category" is categorical, and a column of
strings or objects is what its values are ([SF] section 2). ``categorical_features`` overrides:
columns it names are categorical whatever they hold, all others have to be numbers.

Integers are exact as categories, whatever their size. All other numbers are categories as float64,
those of Decimal and Fraction, too; ordered columns are float64 in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees.coding.labels import Labels, object_array, recode, sort_labels
from dtrees.coding.tables import LARGEST_WHOLE, Numbers, Table, is_beyond_floats


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column and the rows that hold them.

    Attributes
    ----------
    values : list
        In the order of their codes.
    labels : Labels
        The column.
    rank : int64 (number of labels,)
        1 + position of a label in ``values``; 0 for labels that are no category.
    """

    values: list[Any]
    labels: Labels
    rank: np.ndarray


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table by kind; a hybrid column is in ``ordered`` and in ``categories``.

    Attributes
    ----------
    ordered, numeric_categories : tuple of Numbers
        Numbers to be ordered; numbers that are categories.
    categories : tuple of Categories
    """

    ordered: tuple[Numbers, ...]
    numeric_categories: tuple[Numbers, ...]
    categories: tuple[Categories, ...]


def categorical_mask(
    categorical_features: Any, n_columns: int, column_names: np.ndarray | None
) -> np.ndarray | None:
    """Columns that the user calls categorical, bool (n_columns,); None: by their types."""
    n = n_columns
    if categorical_features is None:
        return np.zeros(n, dtype=bool)
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return None
        raise ValueError(
            "categorical_features must be 'from_dtype', None, a boolean mask, column numbers or "
            f"column names, got {categorical_features!r}. Put a single name in a list."
        )
    chosen = np.asarray(categorical_features)
    if chosen.size == 0:
        return np.zeros(n, dtype=bool)
    if chosen.dtype.kind == "b" and chosen.shape != (n,):
        raise ValueError(
            f"categorical_features is a mask of shape {chosen.shape}, but X has {n} columns. "
            "Give one boolean per column."
        )
    if chosen.dtype.kind == "b":
        return chosen.copy()
    mask = np.zeros(n, dtype=bool)
    if chosen.dtype.kind in "iu" and chosen.ndim == 1:
        if chosen.min() < 0 or chosen.max() >= n:
            wrong = chosen[(chosen < 0) | (chosen >= n)][0]
            raise ValueError(
                f"categorical_features holds {wrong}, but the columns of X are numbered 0 to "
                f"{n - 1}. Give numbers in that range."
            )
        mask[chosen] = True
        return mask
    names = [name for name in chosen.ravel().tolist() if isinstance(name, str)]
    if len(names) == len(chosen) and chosen.ndim == 1:
        if column_names is None:
            raise ValueError(
                f"categorical_features holds names ({names[0]!r}), but the columns of X have none. "
                "Give column numbers, or X as a DataFrame."
            )
        unknown = sorted(set(names) - set(column_names))
        if unknown:
            raise ValueError(
                f"categorical_features holds {unknown[0]!r}, which is no column of X "
                f"({', '.join(column_names[:5])}{', ...' if n > 5 else ''})."
            )
        return np.isin(column_names.astype(str), np.asarray(names, dtype=str))
    raise ValueError(
        "categorical_features must be 'from_dtype', None, a boolean mask, column numbers or "
        f"column names, got an array of {chosen.dtype} and shape {chosen.shape}."
    )


def refuse_sparse_categories(table: Table, mask: np.ndarray | None) -> None:
    """Raise when columns of a sparse table are called categorical."""
    if mask is not None and mask.any():
        raise ValueError(
            f"categorical_features names column {table.name(int(np.argmax(mask)))} of a "
            "sparse X, whose columns are numbers. Give X as a dense table."
        )


def columns_by_type(table: Table, mask: np.ndarray | None) -> Columns:
    """The columns of a dense table by kind."""
    ordered: list[Numbers] = []
    numeric: list[Numbers] = []
    categories = []
    for block in table.numbers:
        if mask is None:
            ordered.append(block)
            continue
        for is_category, part in block.split(mask):
            if is_category and is_beyond_floats(part.values):
                cells = zip(part.columns.tolist(), part.values.T, strict=True)
                exact = [labels_of_numbers(values, j) for j, values in cells]
                categories += [_categories(column, column.present()) for column in exact]
            else:
                (numeric if is_category else ordered).append(part)
    for column in table.labels:
        is_category = column.is_category if mask is None else bool(mask[column.column])
        found = column.present()
        if not is_category:
            values = column.as_numbers(table.name(column.column))
            is_number = ~np.isnan(values)
            if mask is not None:
                refuse_strings(column, found & ~is_number, table.name(column.column))
            if (found & is_number).any() or not found.any():
                ordered.append(numbers_of(column, values))
            found &= ~is_number
        elif not found.any():
            ordered.append(numbers_of(column, np.full(len(column.labels), np.nan)))
        if found.any():
            categories.append(_categories(column, found))
    return Columns(tuple(ordered), tuple(numeric), tuple(categories))


def labels_of_numbers(values: np.ndarray, column: int) -> Labels:
    """A column of numbers as labels, exact: what is wider than 64 bits is the nearest float64."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    distinct, codes = np.unique(values, return_inverse=True)
    return Labels(column, codes, distinct.tolist(), is_category=True).without_missing()


def category_array(values: Sequence[Any] | np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """Sorted categories as they are kept.

    They are objects, and whole numbers integers, where the column's type does not hold them all.
    """
    if dtype is not None:
        dtype = np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype
        if dtype.kind != "f" or not any(
            isinstance(value, int) and abs(value) > LARGEST_WHOLE for value in values
        ):
            return np.array(values, dtype=dtype)
    return object_array([_whole(value) for value in values])


def _whole(value: Any) -> Any:
    is_whole = isinstance(value, float) and abs(value) < 2.0**64 and value == int(value)
    return int(value) if is_whole else value


def numbers_of(column: Labels, values: np.ndarray) -> Numbers:
    """A column of labels as the numbers that they are; ``values`` has one per label."""
    cells = recode(values, column.codes, np.nan)
    return Numbers(np.array([column.column], dtype=np.int64), cells[:, None])


def refuse_strings(column: Labels, strings: np.ndarray, name: str) -> None:
    """Raise when some labels of a column that has to be numbers are none."""
    if strings.any():
        label = column.labels[int(np.argmax(strings))]
        raise ValueError(
            f"could not convert string to float: {label!r} in column {name} of X, which is to hold "
            "numbers. Name the column in categorical_features at fit, or repair its values."
        )


def _categories(column: Labels, chosen: np.ndarray) -> Categories:
    """The chosen labels in the order of their codes."""
    index = {id(column.labels[i]): i for i in np.flatnonzero(chosen)}
    values = sort_labels(column.labels[i] for i in np.flatnonzero(chosen))
    rank = np.zeros(len(column.labels), dtype=np.int64)
    rank[[index[id(value)] for value in values]] = np.arange(1, len(values) + 1)
    return Categories(values, column, rank)
