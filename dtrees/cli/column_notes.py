"""What is worth a note about the columns of a table.

::

    1 of 200 values is no number, 4 of 300 are no dates    told of the table, before the fit
    dates that can be read month first or day first        likewise
    a single class                                         likewise
    dates that are read by another order than at fit       told of the table, at prediction
    nearly as many categories as rows                      told of the model, after it
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtrees.cli.columns import codebook_of, column_names
from dtrees.cli.errors import note
from dtrees.cli.files import PARQUET
from dtrees.cli.form import Form
from dtrees.cli.formatting import counted
from dtrees.cli.number_forms import LOOKED_AT, MOST, is_text, other_forms, read_by

if TYPE_CHECKING:
    from dtrees.coding.text_dates import Form as DateForm

MOST_NOTES = 5  # of columns with strays
READ_MONTH_FIRST = (
    "are read month first (01/02/2024 is a day of January), and could be read day first as well: "
    "say which by --dayfirst or --no-dayfirst"
)


def note_ids(model: Any, n_rows: int, form: Form, files: Sequence[str]) -> None:
    """Say which columns of a fitted model have nearly as many categories as there are rows.

    Numbers in another form, and dates beside a few words, have had their note; but for Parquet.
    """
    from pandas import Series

    from dtrees.coding.input_validation import nearly_ids
    from dtrees.coding.text_dates import are_dates

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


def note_strays(table: Any, form: Form, noted: Collection[str], is_csv: bool) -> None:
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


def strays_of(column: Any, form: Form, is_csv: bool) -> str | None:
    """What keeps a column of words from being one of numbers or dates: a few values, or order."""
    if not is_text(column):
        return None
    present = column.notna().to_numpy(dtype=bool)
    given = column[present]
    if not len(given) or not all(isinstance(value, str) for value in given.iloc[:LOOKED_AT]):
        return None
    from dtrees.coding.text_dates import are_dates

    few = given.iloc[:LOOKED_AT]
    now, other = (
        are_dates(few, dayfirst=order).mean() for order in (bool(form.dayfirst), not form.dayfirst)
    )
    if is_csv and other >= MOST and other > now:
        hint = "leave --dayfirst out" if form.dayfirst else "add --dayfirst"
        return f"is taken for words: its dates seem to be of the other order, {hint}"

    def in_order(values: Any, form: Form) -> Any:
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
    from dtrees.coding.text_dates import NO_ORDER

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


def are_numbers(values: Any, form: Form) -> Any:
    """Which values of a column of text are numbers, as the file is read; a Series of bool."""
    from pandas import to_numeric

    now = read_by(form)
    if now.is_plain:
        return to_numeric(values, errors="coerce").notna()
    match = now.pattern.fullmatch
    return values.map(lambda value: match(str(value)) is not None).astype(bool)
