"""A table's columns as a model knows them.

A model knows its columns by name, and what each of them holds: numbers, dates, categories. A file
at prediction has other rows than the one at fit. The types that it shows are those of its own rows,
and they can differ where nothing differs but the rows::

    at fit          at prediction     what it is
    A1, 12, B7      12, 17            words and numbers, of which only numbers came
    yes, no, 2024-05-01   2024-05-01  words, of which only one that looks like a date came
    '1', '2'        1, 2              categories that are digits (a type that Parquet can hold)

So columns with categories are read as they are written, and compared with the categories as text.

A model that the command line has fitted also knows by which order it has read dates such as
01/02/2024, and those of another file are read alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtrees.cli.form import Form
    from dtrees.coding.codebook import CodeBook
    from dtrees.coding.text_dates import Form as DateForm

DATES = "datetime64[ns]"  # a unit
SHOWN = 5  # names in a message


def codebook_of(model: Any) -> CodeBook:
    """What the codes of a fitted tree or forest mean."""
    return model.codebook_ if hasattr(model, "codebook_") else model.tree_.codebook


def column_names(book: CodeBook) -> list[str]:
    """Names of a model's columns; numbers where it was fitted without names."""
    if book.feature_names is None:
        return [str(j) for j in range(book.n_columns)]
    return list(book.feature_names)


def column_kind(book: CodeBook, j: int) -> str:
    """Ordered, categorical, hybrid, or empty: how a codebook sees column j."""
    n_codes, n_ordered = book.n_codes[j], book.n_ordered[j]
    if n_codes == 0:
        return "empty"
    if n_ordered == n_codes:
        return "ordered"
    return "hybrid" if n_ordered else "categorical"


def text_columns(book: CodeBook) -> list[str]:
    """Names of the columns that are to be read as they are written."""
    names = column_names(book)
    return [names[j] for j in book.categories]


def number_columns(book: CodeBook) -> list[str]:
    """Names of the columns that hold numbers, dates or nothing, and no categories."""
    return [name for j, name in enumerate(column_names(book)) if j not in book.categories]


def date_columns(book: CodeBook) -> list[str]:
    """Names of the columns that hold dates, and no categories."""
    return [
        name
        for j, name in enumerate(column_names(book))
        if column_kind(book, j) == "ordered" and book.unit(j) == DATES
    ]


def remember_orders(model: Any, form: Form) -> None:
    """Let a model that was just fitted know by which order the dates of its columns were read."""
    import numpy as np

    from dtrees.coding.text_dates import NO_ORDER

    orders = {name: each.order for name, each in form.date_forms.items()}
    names = column_names(codebook_of(model))
    found = np.array([orders.get(name, NO_ORDER) for name in names], dtype=np.uint8)
    if found.any():
        model._date_orders = found


def day_first(model: Any) -> dict[str, bool]:
    """Whether dates of columns were read day first, of those whose order a model knows."""
    from dtrees.coding.text_dates import DAY_FIRST, NO_ORDER

    names = column_names(codebook_of(model))
    orders = getattr(model, "_date_orders", [NO_ORDER] * len(names))
    known = zip(names, orders, strict=True)
    return {name: bool(order == DAY_FIRST) for name, order in known if order != NO_ORDER}


def columns_as_fitted(
    table: Any, book: CodeBook, file: str, dayfirst: Mapping[str, bool]
) -> tuple[Any, dict[str, DateForm]]:
    """The columns of a model, in its order and with its categories; how dates in text are written.

    `table` has every column of the model, by name; others are left out. A model without names takes
    the columns by their places. `dayfirst` says how dates are read, by name. Raises ValueError
    where columns of `file` are missing, or hold words where numbers or dates were fitted.
    """
    names = column_names(book)
    if book.feature_names is None:
        if table.shape[1] != book.n_columns:
            raise ValueError(
                f"{file} has {table.shape[1]} columns, and the model {book.n_columns} without "
                "names: use --drop to leave out what is not the model's"
            )
        X = table.set_axis(range(book.n_columns), axis=1)
    else:
        if len(set(names)) < len(names):
            raise ValueError("the model has two columns of one name, which no table can have")
        missing = [name for name in names if name not in table.columns]
        if missing:
            shown = ", ".join(map(repr, missing[:SHOWN]))
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            what = "column" if len(missing) == 1 else "columns"
            raise ValueError(f"{file} lacks the {what} {shown}{more} of the model")
        X = table[names].copy(deep=False)
    forms = {}
    for j, name in enumerate(X.columns):
        kind = column_kind(book, j)
        if kind == "categorical":
            X[name] = named_alike(X[name], book.categories[j].tolist(), names[j])
        elif kind == "ordered" and book.unit(j) in ("number", "bool"):
            refuse_words(X[name], names[j], book.unit(j))
        elif kind == "ordered" and book.unit(j) == DATES and is_text(X[name]):
            X[name], form = as_dates(X[name], names[j], dayfirst.get(names[j], False))
            if form is not None:
                forms[names[j]] = form
    return X, forms


def as_dates(column: Any, name: str, dayfirst: bool = False) -> tuple[Any, DateForm | None]:
    """A column of text as dates, and how they are written; ValueError: it holds something else."""
    from pandas import to_datetime

    from dtrees.coding.text_dates import are_dates, dates_of

    if column.isna().all():
        return to_datetime(column), None
    found = dates_of(column, dayfirst=dayfirst)
    if found is None:
        given = column.dropna()
        if not any(isinstance(value, str) for value in given):
            return column, None  # dates of Python, as Parquet's date32 is read
        given = given.astype(str)
        worst = [*given[~are_dates(given, dayfirst=dayfirst)], given.iloc[0]][0]
        now, other, option = "12/31/2024", "31/12/2024", "--dayfirst"
        if dayfirst:
            now, other, option = other, now, "--no-dayfirst"
        raise ValueError(
            f"column {name!r} held dates at fit, and holds {worst!r} now: dates are written like "
            "2024-05-01 or 2024-05-01T13:30, either all of them with an offset or none, or like "
            f"31.12.2024 or {now}, all in the same way; for {other} add {option}, and fit again "
            "with it if the dates of the fit were written so, too"
        )
    return found


def named_alike(column: Any, categories: list[Any], name: str) -> Any:
    """The column with the categories of the fit where its values are written like them.

    Strings, numbers or booleans; other categories are only known from columns of their own type.
    ValueError: the column is text, and the categories are what text cannot be compared with.
    """
    words = all(isinstance(category, str) for category in categories)
    if is_text(column) and words:
        return column
    strange = [c for c in categories if not isinstance(c, (str, bool, int, float))]
    if strange:
        if is_text(column):
            raise ValueError(
                f"column {name!r} held categories of the type {type(strange[0]).__name__} at fit, "
                "and holds text now: give a Parquet file with that type"
            )
        return column
    known = {as_written(category, not words): category for category in categories}
    return column.astype(object).map(
        lambda value: known.get(as_written(value, not words), value), na_action="ignore"
    )


def as_written(value: Any, as_number: bool) -> str:
    """A value as text, the same for 1 and 1.0, and for '1' and '1.0' read as numbers."""
    if as_number and isinstance(value, str):
        for kind in (int, float):
            try:
                value = kind(value)
                break
            except ValueError:
                pass
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def is_text(column: Any) -> bool:
    """Whether a column of a DataFrame holds strings, perhaps beside other objects."""
    from pandas.api import types

    return types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)


def refuse_words(column: Any, name: str, unit: str) -> None:
    """Raise when a column of text holds something else than numbers."""
    if not is_text(column):
        return
    from pandas import to_numeric

    given = column.dropna()
    words = given[to_numeric(given, errors="coerce").isna()].tolist()
    if words:
        held = "True and False" if unit == "bool" else "numbers"
        worst = next((word for word in words if word not in ("True", "False")), words[0])
        raise ValueError(f"column {name!r} held {held} at fit, and holds {worst!r} now")
