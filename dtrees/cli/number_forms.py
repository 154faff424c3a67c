"""How the numbers of a CSV file are written: decimal mark and thousands separator.

Numbers that are written otherwise than they are read are words for pandas. The functions here look
at such columns and name the options under which their values are numbers::

    1,5       2,25          --decimal ,
    5.377,19  12            --decimal , --thousands .
    1,234.56  999.5         --thousands ,
    1,234     2,345         --thousands , or --decimal ,
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dtrees._forks import cached_property
from dtrees.cli.form import Form

LOOKED_AT = 1_000  # values of a column
MOST = 0.9  # of the values, from which on a column is meant to hold numbers


@dataclass(frozen=True)
class NumberForm:
    """Decimal mark and thousands separator; "": thousands are not separated."""

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What a number looks like."""
        whole = r"\d+"
        if self.thousands:
            whole = rf"([1-9]\d{{0,2}}({re.escape(self.thousands)}\d{{3}})+|\d+)"
        decimals = rf"({re.escape(self.decimal)}\d*)?"
        return re.compile(rf"\s*[+-]?{whole}{decimals}([eE][+-]?\d+)?\s*", re.ASCII)

    @property
    def is_plain(self) -> bool:
        """Whether the decimal mark is a point, and there are no separators."""
        return self == NumberForm()

    def count(self, values: Iterable[Any]) -> int:
        """How many values are numbers of this form."""
        match = self.pattern.fullmatch
        return sum(isinstance(value, str) and match(value) is not None for value in values)

    def options(self, read_by: NumberForm) -> str:
        """What is to be added to a command that reads numbers otherwise."""
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


def read_by(form: Form) -> NumberForm:
    """How numbers are read."""
    return NumberForm(form.decimal or ".", form.thousands or "")


def other_forms(values: list[Any], form: Form) -> list[NumberForm]:
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


def is_text(column: Any) -> bool:
    """Whether a column of a table that was read holds words."""
    return column.dtype.kind == "O" or str(column.dtype) in ("str", "string")


def number_hints(table: Any, form: Form, is_lazy: bool = False) -> dict[str, str]:
    """What to say of columns of words whose first values are numbers in another form, by name.

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
