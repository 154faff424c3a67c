"""Types of columns: ordered, categorical or hybrid.

A column of numbers is ordered, a column whose type says "category" is categorical, and a column of
strings or objects is what its values are ([SF] section 2). ``categorical_features`` overrides:
columns it names are categorical whatever they hold, all others have to be numbers.

Integers are exact as categories, whatever their size. All other numbers are categories as float64,
those of Decimal and Fraction, too; ordered columns are float64 in any case.

A table has to have the columns of the fit. Errors of column names, infinities and types use the
words of scikit-learn for the same faults. There are three warnings of columns of categories::

    none of its values was there at fit     the type changed ("7" then, 7 now), or the wrong column
    nearly as many categories as rows       a name of each row, of which nothing can be learned
    most categories look like dates         of which only an order would tell
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse

from dtrees._warnings import warn
from dtrees.coding._cells import any_infinite
from dtrees.coding.labels import (
    MISSING_CODE,
    Labels,
    number_of,
    object_array,
    recode,
    sort_labels,
)
from dtrees.coding.tables import LARGEST_WHOLE, Numbers, Table, is_beyond_floats
from dtrees.coding.times import DATETIME, TIMEDELTA, look_like_dates
from dtrees.exceptions import UnseenCategoryError
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

UNIT_WORDS = ("numbers or labels", "dates", "time spans", "booleans")  # in the order of `UNITS`
INFINITIES = {math.inf, -math.inf}
TASK_CELLS = 4 * 2**20  # cells of a task that looks for infinities
DRIFT_ROWS = 10  # with a value, of a column, below which a new category is nothing to warn of
ID_SHARE = 0.9  # categories for each row, from which on a column is called an id
ID_ROWS = 20  # of a table, below which no column is called an id
NAMED = 5  # columns that a warning names
OUTCOMES = {"missing": "count as missing", "majority": "go with the majority"}


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column and the rows that hold them.

    `values` stand in the order of their codes; `rank` is int64, 1 + the position of each of the
    column's labels in them, 0 for labels that are no category.
    """

    values: list[Any]
    labels: Labels
    rank: np.ndarray


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table by kind; a hybrid column is in ``ordered`` and in ``categories``.

    `ordered` are numbers to be ordered, `numeric_categories` numbers that are categories.
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
    """The columns of a dense table by kind.

    Where the user calls numbers categories, -1 is a missing value.
    """
    ordered: list[Numbers] = []
    numeric: list[Numbers] = []
    categories = []
    labels = list(table.labels)
    for block in table.numbers:
        if mask is None:
            ordered.append(block)
            continue
        for is_category, part in block.split(mask):
            if is_category and is_beyond_floats(part.values):
                labels += [column.without_code() for column in labels_of_numbers(part)]
            elif is_category:
                numeric.append(_without_code(part))
            else:
                ordered.append(part)
    for column in labels:
        is_category = column.is_category if mask is None else bool(mask[column.column])
        if is_category and not column.is_category:
            column = column.without_code()
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


def _without_code(block: Numbers) -> Numbers:
    """The numbers with nan for -1."""
    is_code = block.values == MISSING_CODE
    if not is_code.any():
        return block
    return Numbers(block.columns, np.where(is_code, np.nan, block.values))


def labels_of_numbers(block: Numbers) -> list[Labels]:
    """Columns of numbers as labels, exact: what is wider than 64 bits is the nearest float64."""
    values, found = block.values, []
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    for j, cells in zip(block.columns.tolist(), values.T, strict=True):
        distinct, codes = np.unique(cells, return_inverse=True)
        found.append(Labels(j, codes, distinct.tolist(), is_category=True).without_missing())
    return found


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


def warn_of_equal_names(names: np.ndarray | None) -> None:
    """Warn of columns that their names do not tell apart."""
    numbers = Counter(() if names is None else names.tolist())
    twice = [repr(name) for name, number in numbers.items() if number > 1]
    if twice:
        warn(
            f"X has several columns of the name {', '.join(twice[:5])}. All of them count, but "
            "their names do not tell them apart. Rename or drop some."
        )


def check_names(fitted: np.ndarray | None, names: np.ndarray | None, estimator: str) -> None:
    """Compare the names of a table's columns with those that were fitted."""
    if fitted is None and names is None:
        return
    if fitted is None:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
        return
    if names is None:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
        return
    if len(names) == len(fitted) and np.all(names == fitted):
        return
    message = "The feature names should match those that were passed during fit.\n"
    unexpected = sorted(set(names) - set(fitted))
    gone = sorted(set(fitted) - set(names))
    for title, listed in (
        ("Feature names unseen at fit time:\n", unexpected),
        ("Feature names seen at fit time, yet now missing:\n", gone),
    ):
        if listed:
            message += title + "".join(f"- {name}\n" for name in listed[:5])
            message += "- ...\n" if len(listed) > 5 else ""
    if not unexpected and not gone:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def refuse_infinities(table: Table, run: Runner = serial) -> None:
    """Raise when a cell is infinite. O(cells), in the order of memory; tasks of rows for `run`."""
    for block in table.numbers:
        values = block.values
        if values.dtype.kind == "f" and _holds_infinity(values, run):
            infinite = np.zeros(table.n_columns, dtype=bool)
            infinite[block.columns] = np.isinf(values).any(axis=0)
            refuse_columns(table, infinite)
    if table.sparse is not None and table.sparse.dtype.kind == "f":
        cells = np.flatnonzero(np.isinf(table.sparse.data))
        if len(cells):
            infinite = np.zeros(table.n_columns, dtype=bool)
            infinite[np.searchsorted(table.sparse.indptr, cells, "right") - 1] = True
            refuse_columns(table, infinite)


def with_finite_ends(table: Table, run: Runner = serial) -> Table:
    """A table whose infinite numbers are the largest finite ones of their type: ends of the order.

    What holds some is copied. O(cells), as `refuse_infinities`, and O(labels).
    """
    numbers = tuple(
        replace(block, values=_finite(block.values))
        if block.values.dtype.kind == "f" and _holds_infinity(block.values, run)
        else block
        for block in table.numbers
    )
    labels = tuple(
        column
        if column.is_category or INFINITIES.isdisjoint(column.labels)
        else replace(column, labels=[_finite(v) if v in INFINITIES else v for v in column.labels])
        for column in table.labels
    )
    sparse = table.sparse
    if sparse is not None and sparse.dtype.kind == "f" and np.isinf(sparse.data).any():
        own = _finite(sparse.data), sparse.indices, sparse.indptr
        sparse = scipy.sparse.csc_array(own, shape=sparse.shape)
    return replace(table, numbers=numbers, labels=labels, sparse=sparse)


def _finite(values: Any) -> Any:
    """Numbers of a type with its largest finite ones for infinities; Python's of a number."""
    if isinstance(values, float):
        return math.copysign(sys.float_info.max, values)
    most = np.finfo(values.dtype).max
    return np.clip(values, -most, most)


def refuse_columns(table: Table, infinite: np.ndarray) -> NoReturn:
    """Raise since some columns, bool (n_columns,), hold an infinity."""
    raise ValueError(
        "Input X contains infinity or a value too large for dtype('float64'). "
        f"(column {table.name(int(np.argmax(infinite)))}) Replace infinities by a large "
        "number, or by NaN, which counts as missing."
    )


def _holds_infinity(values: np.ndarray, run: Runner) -> bool:
    """Tell whether a block of floats holds an infinity."""
    if values.dtype in (np.float32, np.float64):
        native = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
        native = np.require(native, requirements="A")
        if native.size <= TASK_CELLS:
            return any_infinite(native)
        parts = np.array_split(native, -(-native.size // TASK_CELLS))
        return any(run([partial(any_infinite, part) for part in parts]))
    return bool(np.isinf(values).any())


def check_units(book: CodeBook, table: Table) -> None:
    """Refuse numbers, dates and time spans in the place of one another."""
    differs = (table.units != book.units) & (book.n_codes > 0)
    if differs.any():  # one of them is a time
        times = (DATETIME, TIMEDELTA)
        differs &= np.isin(table.units, times) | np.isin(book.units, times)
    if differs.any():
        differs &= columns_with_values(table)
    if differs.any():
        j = int(np.argmax(differs))
        given, fitted = UNIT_WORDS[table.units[j]], UNIT_WORDS[book.units[j]]
        if any(column.column == j for column in table.labels):
            given = "strings or objects"
        raise ValueError(
            f"Column {table.name(j)} of X holds {given}, but {fitted} were fitted. Convert it "
            "to what was fitted."
        )


def columns_with_values(table: Table) -> np.ndarray:
    """Columns that are not all missing, bool (n_columns,); of a sparse table all."""
    found = np.full(table.n_columns, table.sparse is not None)
    for block in table.numbers:
        is_float = block.values.dtype.kind == "f"
        found[block.columns] = not is_float or (block.values == block.values).any(axis=0)
    for column in table.labels:
        found[column.column] = column.present().any()
    return found


def as_fitted(book: CodeBook, table: Table) -> Table:
    """Numbers where ordered codes were fitted, labels where categories alone were."""
    named = (book.n_ordered == 0) & (book.n_codes > 0)
    if table.sparse is not None:
        categorical = list(book.categories)
        if categorical:
            raise ValueError(
                f"X is sparse, but column {book.name(categorical[0])} was fitted as "
                "categories. Give X in the form that was fitted."
            )
        return table
    numbers: list[Numbers] = []
    labels: list[Labels] = []
    for block in table.numbers:
        if not named[block.columns].any():
            numbers.append(block)
            continue
        for is_named, part in block.split(named):
            if is_named:
                labels += [_as_codes(book, column) for column in labels_of_numbers(part)]
            else:
                numbers.append(part)
    for column in table.labels:
        j = column.column
        if book.n_ordered[j] == book.n_codes[j] > 0:
            values = column.as_numbers(table.name(j))
            refuse_strings(column, np.isnan(values) & column.present(), table.name(j))
            numbers.append(numbers_of(column, values))
        else:
            is_code = named[j] and not column.is_category
            labels.append(_as_codes(book, column) if is_code else column)
    return replace(table, numbers=tuple(numbers), labels=tuple(labels))


def _as_codes(book: CodeBook, column: Labels) -> Labels:
    """The labels without -1, unless it is a category, or no number is one."""
    if MISSING_CODE not in column.labels:
        return column
    known = book.numbers_of_categories(column.column)
    has_numbers = isinstance(next(iter(known)), Real)  # they stand in front of words
    return column.without_code() if has_numbers and MISSING_CODE not in known else column


def warn_of_unseen(book: CodeBook, table: Table) -> None:
    """Warn of columns of which every value is a category that was not there at fit.

    All rows of the table, as `CodeBook.check` makes it, count as one. A warning takes at least 10
    rows that have a value in the column: a single row, or a small block of a collection, may hold a
    new category and nothing else without any drift. With ``handle_unknown="error"`` one row is an
    UnseenCategoryError.
    """
    for column in table.labels:
        j = column.column
        known = book.categories.get(j)
        if known is None:
            continue
        label = _first_unseen(column, book.numbers_of_categories(j), book.n_ordered[j] > 0)
        if label is None:
            continue
        if book.handle_unknown != "error" and np.count_nonzero(column.codes >= 0) < DRIFT_ROWS:
            continue
        fitted = known[0]
        text = (
            f"Column {table.name(j)} of X: none of its values was there at fit, such as "
            f"{str(label)[:60]!r} of type {type(label).__name__}; fitted was, for example, "
            f"{str(fitted)[:60]!r} of type {type(fitted).__name__}."
        )
        if book.handle_unknown == "error":
            raise UnseenCategoryError(f"{text} Give the values in the form that was fitted.")
        warn(
            f"{text} All of its rows {OUTCOMES[book.handle_unknown]}. Give the values in the form "
            "that was fitted; handle_unknown='error' at fit makes this an error."
        )


def _first_unseen(column: Labels, known: dict, has_numbers: bool) -> object:
    """The first label that is in some row, if none of these is known; None otherwise."""
    found = None
    for i in np.flatnonzero(column.present()):
        label = column.labels[i]
        is_number = has_numbers and not np.isnan(number_of(label, ""))
        if is_number or label in known:
            return None
        found = label if found is None else found
    return found


def warn_of_categories(book: CodeBook, n_rows: int) -> None:
    """Warn once of all columns that are nearly ids, and once of all that look like dates.

    Some values of each column of categories are looked at.
    """
    ids = nearly_ids(book, n_rows)
    if ids:
        count = f"{min(ids.values())} categories in {n_rows} rows"
        if len(ids) == 1:
            said = f"{count}. Is this an id? It is"
        else:
            said = f"at least {count}. Is each an id? They are"
        warn(
            f"Column{_names(book, ids)} of X: {said} not used. An id tells nothing of other rows: "
            "leave it out, or give numbers as numbers."
        )
    dates = [j for j, values in book.categories.items() if look_like_dates(values)]
    if dates:
        warn(
            f"Values of column{_names(book, dates)} look like dates, and count as categories: give "
            "dates (pandas.to_datetime)."
        )


def _names(book: CodeBook, columns: Collection[int]) -> str:
    """Names of the first few columns, as they go on after the word "column"."""
    names = ", ".join(map(book.name, list(columns)[:NAMED]))
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return f"{'s' if len(columns) > 1 else ''} {names}{more}"


def nearly_ids(book: CodeBook, n_rows: int) -> dict[int, int]:
    """Columns that have nearly as many categories as the table had rows, which no model uses.

    Their numbers of categories, by column: at least 0.9 for each row of the table that was fitted,
    of at least 20 rows.
    """
    if n_rows < ID_ROWS:
        return {}
    counts = {j: len(values) for j, values in book.categories.items()}
    return {j: count for j, count in counts.items() if count >= ID_SHARE * n_rows}
