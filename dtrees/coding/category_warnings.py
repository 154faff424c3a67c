"""Warnings about columns of categories: drift, ids, and dates in text.

none of its values was there at fit     the type changed ("7" then, 7 now), or the wrong column
nearly as many categories as rows       a name of each row, of which nothing can be learned
most categories look like dates         of which only an order would tell
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from dtrees._warnings import warn
from dtrees.coding.labels import Labels, number_of
from dtrees.coding.tables import Table
from dtrees.coding.text_dates import look_like_dates
from dtrees.exceptions import UnseenCategoryError

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

DRIFT_ROWS = 10  # with a value, of a column, below which a new category is nothing to warn of
ID_SHARE = 0.9  # categories for each row, from which on a column is called an id
ID_ROWS = 20  # of a table, below which no column is called an id
NAMED = 5  # columns that a warning names

OUTCOMES = {"missing": "count as missing", "majority": "go with the majority"}


def warn_of_unseen(book: CodeBook, table: Table) -> None:
    """Warn of columns of which every value is a category that was not there at fit.

    A warning takes at least 10 rows that have a value in the column: a single row, or a small block
    of a collection, may hold a new category and nothing else without any drift. An error takes one.

    Parameters
    ----------
    book : CodeBook
    table : Table
        To be coded by the book, as `CodeBook.check` makes it; all rows of it count as one.

    Raises
    ------
    UnseenCategoryError
        With ``handle_unknown="error"``.
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


def warn_of_ids(book: CodeBook, n_rows: int) -> None:
    """Warn once of all columns that have nearly as many categories as the table had rows."""
    found = nearly_ids(book, n_rows)
    if not found:
        return
    count = f"{min(found.values())} categories in {n_rows} rows"
    if len(found) == 1:
        said = f"{count}. Is this an id? It is"
    else:
        said = f"at least {count}. Is each an id? They are"
    warn(
        f"Column{_names(book, found)} of X: {said} not used. An id tells nothing of other rows: "
        "leave it out, or give numbers as numbers."
    )


def warn_of_dates(book: CodeBook) -> None:
    """Warn once of all columns of categories that look like dates; some of each are looked at."""
    found = [j for j, values in book.categories.items() if look_like_dates(values)]
    if found:
        warn(
            f"Values of column{_names(book, found)} look like dates, and count as categories: give "
            "dates (pandas.to_datetime)."
        )


def _names(book: CodeBook, columns: Collection[int]) -> str:
    """Names of the first few columns, as they go on after the word "column"."""
    names = ", ".join(map(book.name, list(columns)[:NAMED]))
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return f"{'s' if len(columns) > 1 else ''} {names}{more}"


def nearly_ids(book: CodeBook, n_rows: int) -> dict[int, int]:
    """Columns that have nearly as many categories as the table had rows, which no model uses.

    Parameters
    ----------
    book : CodeBook
    n_rows : int
        Of the table that was fitted.

    Returns
    -------
    dict of int to int
        Number of categories by column, for columns of at least 0.9 categories for each row; none of
        a table of less than 20 rows.
    """
    if n_rows < ID_ROWS:
        return {}
    counts = {j: len(values) for j, values in book.categories.items()}
    return {j: count for j, count in counts.items() if count >= ID_SHARE * n_rows}
