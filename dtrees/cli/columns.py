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

Some columns are worth a note::

    1 of 200 values is no number, 4 of 300 are no dates    told of the table, before the fit
    dates that can be read month first or day first        likewise
    a single class                                         likewise
    dates that are read by another order than at fit       told of the table, at prediction
    nearly as many categories as rows                      told of the model, after it
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtrees.cli.files import PARQUET
from dtrees.cli.form import LOOKED_AT, MOST, CsvForm, is_text, other_forms, read_by
from dtrees.cli.terminal import counted, note

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook
    from dtrees.coding.times import DateForm

DATES = "datetime64[ns]"  # a unit
SHOWN = 5  # names in a message
MOST_NOTES = 5  # of columns with strays
READ_MONTH_FIRST = (
    "are read month first (01/02/2024 is a day of January), and could be read day first as well: "
    "say which by --dayfirst or --no-dayfirst"
)


def codebook_of(model: Any) -> CodeBook:
    """The codebook of a fitted tree or forest."""
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


def remember_orders(model: Any, form: CsvForm) -> None:
    """Let a model that was just fitted know by which order the dates of its columns were read."""
    import numpy as np

    from dtrees.coding.times import NO_ORDER

    orders = {name: each.order for name, each in form.date_forms.items()}
    names = column_names(codebook_of(model))
    found = np.array([orders.get(name, NO_ORDER) for name in names], dtype=np.uint8)
    if found.any():
        model._date_orders = found


def day_first(model: Any) -> dict[str, bool]:
    """Tell whether dates of columns were read day first, of those whose order a model knows."""
    from dtrees.coding.times import DAY_FIRST, NO_ORDER

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

    from dtrees.coding.times import are_dates, dates_of

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


def note_ids(model: Any, n_rows: int, form: CsvForm, files: Sequence[str]) -> None:
    """Say which columns of a fitted model have nearly as many categories as there are rows.

    Numbers in another form, and dates beside a few words, have had their note; but for Parquet.
    """
    from pandas import Series

    from dtrees.coding.column_types import nearly_ids
    from dtrees.coding.times import are_dates

    book = codebook_of(model)
    names, is_csv = column_names(book), not files[0].lower().endswith(PARQUET)
    for column, n_categories in nearly_ids(book, n_rows).items():
        hint = f"like an id, and is not used: --drop {names[column]} leaves it out"
        categories = book.categories[column].tolist()
        orders = (are_dates(Series(categories), dayfirst=order) for order in (False, True))
        if is_csv and any(dates.mean() >= MOST for dates in orders):
            continue
        if other_forms(categories, form):
            if is_csv:
                continue
            hint = "most of them numbers in text: let the file hold numbers"
        note(
            f"column {names[column]!r} has {counted(n_categories, 'category', 'categories')} in "
            f"{counted(n_rows, 'row')}, {hint}"
        )


def note_strays(table: Any, form: CsvForm, noted: Collection[str], is_csv: bool) -> None:
    """Say in which columns of a DataFrame a few values are no numbers, or no dates.

    `noted` are columns of which enough was said. O(rows) for columns of words that begin like
    numbers or dates.
    """
    found = []
    for place, name in enumerate(map(str, table.columns)):
        if name not in noted:
            strays = strays_of(table.iloc[:, place], form, is_csv)
            found += [] if strays is None else [f"column {name!r} {strays}"]
    for text in found[:MOST_NOTES]:
        note(text)
    if len(found) > MOST_NOTES:
        note(f"{counted(len(found) - MOST_NOTES, 'more column')} of the same kind")


def strays_of(column: Any, form: CsvForm, is_csv: bool) -> str | None:
    """Words on what keeps a column of text from numbers or dates: a few values, or order."""
    if not is_text(column):
        return None
    present = column.notna().to_numpy(dtype=bool)
    given = column[present]
    if not len(given) or not all(isinstance(value, str) for value in given.iloc[:LOOKED_AT]):
        return None
    from dtrees.coding.times import are_dates

    few = given.iloc[:LOOKED_AT]
    now, other = (
        are_dates(few, dayfirst=order).mean() for order in (bool(form.dayfirst), not form.dayfirst)
    )
    if is_csv and other >= MOST and other > now:
        hint = "leave --dayfirst out" if form.dayfirst else "add --dayfirst"
        return f"is taken for words: its dates seem to be of the other order, {hint}"

    def in_order(values: Any, form: CsvForm) -> Any:
        return are_dates(values, dayfirst=bool(form.dayfirst))

    for what, told in (("number", are_numbers), ("date", in_order)):
        if (what == "date" and not is_csv) or told(few, form).mean() < MOST:
            continue
        if not all(isinstance(value, str) for value in given):
            return None
        good = told(given, form).to_numpy(dtype=bool)
        n_strays = int((~good).sum())
        if n_strays == 0 and what == "date":
            return "is taken for words: its dates are not all written in the same way"
        if n_strays == 0 or good.mean() < MOST:
            continue
        row = int(present.nonzero()[0][~good][0])
        is_mixed = what == "number" and (not is_csv or read_by(form).is_plain)
        are = f"is no {what}" if n_strays == 1 else f"are no {what}s"
        return (
            f"{'holds numbers and words' if is_mixed else 'is taken for words'}: "
            f"{n_strays:,} of its {counted(len(given), 'value')} {are}, "
            f"first {str(column.iloc[row])!r} in row {row + 1:,}; "
            "a cell without a value is to be empty"
        )
    return None


def note_open_orders(forms: Mapping[str, DateForm], passed: Collection[str]) -> None:
    """Say which dates are read month first, and could be read day first as well."""
    names = [repr(name) for name, form in forms.items() if form.is_open and name not in passed]
    if names:
        note(f"the dates of {', '.join(names)} {READ_MONTH_FIRST}")


def note_other_orders(
    forms: Mapping[str, DateForm], known: Mapping[str, bool], dayfirst: bool
) -> None:
    """Say which dates are read by another order than at fit; `known`: day first or not."""
    from dtrees.coding.times import NO_ORDER

    with_order = (name for name, form in forms.items() if form.order != NO_ORDER)
    names = [repr(name) for name in with_order if known.get(name, dayfirst) != dayfirst]
    if names:
        before, now = ("month", "day") if dayfirst else ("day", "month")
        note(f"the dates of {', '.join(names)}: {before} first at fit, {now} first now")


def note_single_class(y: Any, target: str, task: str) -> None:
    """Say that a target of a single class, or number, has nothing to learn."""
    if (y == y[0]).all():
        what = "class" if task == "classification" else "number"
        note(
            f"the target {target!r} holds a single {what}, {str(y[0])!r}: there is nothing to learn"
        )


def are_numbers(values: Any, form: CsvForm) -> Any:
    """Tell which values of a column of text are numbers, as the file is read; Series of bool."""
    from pandas import to_numeric

    now = read_by(form)
    if now.is_plain:
        return to_numeric(values, errors="coerce").notna()
    match = now.pattern.fullmatch
    return values.map(lambda value: match(str(value)) is not None).astype(bool)
