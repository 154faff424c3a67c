"""The form of a CSV file: separator, encoding, marks of numbers, and what to try instead.

A file that was written elsewhere often has semicolons, decimal commas or another encoding than
UTF-8. pandas then reads one column, or words where numbers are meant, or nothing. The functions
here look at what was read and name the option that helps; nothing is guessed silently. Numbers
that are written otherwise than they are read are words for pandas, too::

    1,5       2,25          --decimal ,
    5.377,19  12            --decimal , --thousands .
    1,234.56  999.5         --thousands ,
    1,234     2,345         --thousands , or --decimal ,
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dtrees._forks import cached_property

if TYPE_CHECKING:
    from dtrees.coding.times import DateForm

SEPARATORS = (",", ";", "\t", "|", ":")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before that of utf-16, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LOOKED_AT = 1_000  # values of a column
MOST = 0.9  # of the values, from which on a column is meant to hold numbers


@dataclass(frozen=True)
class CsvForm:
    """The form of a CSV file as it was given; None: not given.

    And how its dates were found to be written, by column, when it was read.
    """

    separator: str | None = None  # ``\t`` stands for a tab
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    dayfirst: bool | None = None
    date_forms: dict[str, DateForm] = field(default_factory=dict, compare=False)

    def options(self) -> dict[str, Any]:
        """Arguments of what reads tables."""
        separator = "\t" if self.separator == r"\t" else self.separator
        form: dict[str, Any] = {"separator": separator, "encoding": self.encoding}
        form |= {"decimal": self.decimal, "dayfirst": bool(self.dayfirst)}
        return form if self.thousands is None else {**form, "thousands": self.thousands}


def separator_hint(target: str, names: Collection[str], form: CsvForm) -> str | None:
    """The option under which a header has the target; None: no separator has it.

    `names` are the columns that are there, read by `form`; the target is not.
    """
    read_by = form.options()["separator"] or ","
    header = read_by.join(names)
    for separator in SEPARATORS:
        fields = next(csv.reader([header], delimiter=separator), [])
        if separator != read_by and target in (field.strip() for field in fields):
            return _add_separator(separator)
    return None


def header_hint(head: bytes) -> str | None:
    """The option for a header without commas, of a file that could not be read with them."""
    header = head.decode("latin-1").partition("\n")[0]
    count, separator = max((header.count(letter), letter) for letter in SEPARATORS)
    return _add_separator(separator) if count and "," not in header else None


def names_given_twice(head: bytes, form: CsvForm) -> list[str]:
    """Names of columns that a header has more than once."""
    text = head.decode(form.encoding or "utf-8", errors="replace")
    separator = form.options()["separator"] or ","
    lines = csv.reader(io.StringIO(text, newline=None), delimiter=separator)
    header = next(filter(None, lines), [])
    counts = Counter(filter(None, header))
    return [name for name, count in counts.items() if count > 1]


def _add_separator(separator: str) -> str:
    shown = r"\t" if separator == "\t" else separator
    return f"the columns seem to stand between '{shown}': add --sep '{shown}'"


def encoding_hint(head: bytes) -> str:
    """The option by which a file that is not UTF-8 can be read, told from its first bytes."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return f"it begins like {encoding}: add --encoding {encoding}"
    nulls = head[1::2].count(0), head[::2].count(0)
    if min(nulls) > len(head) // 8:
        return "it does not look like text"
    if max(nulls) > len(head) // 4:
        encoding = "utf-16-le" if nulls[0] > nulls[1] else "utf-16-be"
        return f"it looks like {encoding}: add --encoding {encoding}"
    if 0 in head:
        return "take them out"
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return "it may be latin-1: add --encoding latin-1"
    return "it may be cp1252, as Western European Windows writes: add --encoding cp1252"


@dataclass(frozen=True)
class NumberForm:
    """Decimal mark and thousands separator; "": thousands are not separated."""

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of a number."""
        whole = r"\d+"
        if self.thousands:
            whole = rf"([1-9]\d{{0,2}}({re.escape(self.thousands)}\d{{3}})+|\d+)"
        decimals = rf"({re.escape(self.decimal)}\d*)?"
        return re.compile(rf"\s*[+-]?{whole}{decimals}([eE][+-]?\d+)?\s*", re.ASCII)

    @property
    def is_plain(self) -> bool:
        """Tell whether the decimal mark is a point, and there are no separators."""
        return self == NumberForm()

    def count(self, values: Iterable[Any]) -> int:
        """Number of values that are numbers of this form."""
        match = self.pattern.fullmatch
        return sum(isinstance(value, str) and match(value) is not None for value in values)

    def options(self, read_by: NumberForm) -> str:
        """Words to add to a command that reads numbers otherwise."""
        words = []
        if self.decimal != read_by.decimal:
            words += ["--decimal", self.decimal]
        if self.thousands != read_by.thousands:
            words += ["--thousands", self.thousands]
        return shlex.join(words)


# The simplest first, which wins where others fit as well.
OTHER_FORMS = (
    NumberForm(","),
    NumberForm(".", ","),
    NumberForm(",", "."),
    NumberForm(".", "'"),
    NumberForm(",", "'"),
)


def read_by(form: CsvForm) -> NumberForm:
    """The form by which numbers are read."""
    return NumberForm(form.decimal or ".", form.thousands or "")


def other_forms(values: list[Any], form: CsvForm) -> list[NumberForm]:
    """Forms under which most values are numbers and more than now; several fit equally well."""
    now = read_by(form)
    known = now.count(values)
    found: list[NumberForm] = []
    if known == len(values):
        return found
    best = max(known + 1, MOST * len(values))
    for other in OTHER_FORMS:
        if form.decimal is not None and other.decimal != form.decimal:
            continue
        if form.thousands is not None and other.thousands != form.thousands:
            continue
        count = other.count(values)
        if count > best or (count == best and not found):
            found, best = [other], count
        elif count == best and found and replace(other, thousands="") not in found:
            found.append(other)
    return found


def number_hints(table: Any, form: CsvForm, is_lazy: bool = False) -> dict[str, str]:
    """Hints on columns of words whose first values are numbers in another form, by name.

    Thousands separators are not for tables that a cluster reads (`is_lazy`).
    """
    now, columns = read_by(form), dict[tuple[NumberForm, ...], list[str]]()
    for name, column in table.items():
        if is_text(column):
            found = other_forms(column.dropna().iloc[:LOOKED_AT].tolist(), form)
            if found:
                columns.setdefault(tuple(found), []).append(str(name))
    hints: dict[str, str] = {}
    for forms, names in columns.items():
        shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
        which = f"column {shown} looks" if len(names) == 1 else f"columns {shown} look"
        known = [other for other in forms if not is_lazy or other.thousands == now.thousands]
        what_to_do = "write the table as Parquet, or read it without --cluster"
        if known:
            what_to_do = "add " + " or ".join(other.options(now) for other in known)
        marks = _marks(known or forms, now)
        text = f"{which} like numbers with {marks}, taken for words: {what_to_do}"
        hints |= dict.fromkeys(names, text)
    return hints


def _marks(forms: Iterable[NumberForm], now: NumberForm) -> str:
    marks = [
        "a decimal comma" if other.thousands == now.thousands else "a thousands separator"
        for other in forms
    ]
    return " or ".join(marks)


def is_text(column: Any) -> bool:
    """Tell whether a column of a DataFrame holds strings, perhaps beside other objects."""
    from pandas.api import types

    return types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)
