"""How a CSV file is written: separator, encoding, marks of numbers, and what to try instead.

A file that was written elsewhere often has semicolons, decimal commas or another encoding than
UTF-8. pandas then reads one column, or words where numbers are meant, or nothing. The functions
here look at what was read and name the option that helps; nothing is guessed silently. Numbers have
a file of their own (`dtrees.cli.number_forms`).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtrees.cli.files import is_packed

if TYPE_CHECKING:
    from dtrees.coding.text_dates import Form as DateForm

SEPARATORS = (",", ";", "\t", "|", ":")
HEAD_BYTES = 65_536
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before that of utf-16, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Form:
    """How a CSV file is written, as it was given; None: not given.

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


def separator_hint(target: str, names: Collection[str], form: Form) -> str | None:
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


def names_given_twice(head: bytes, form: Form) -> list[str]:
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


def head_of(source: Path | io.BytesIO) -> bytes:
    """The first bytes of a file, unpacked, or of a stream."""
    if not isinstance(source, Path):
        return source.getvalue()[:HEAD_BYTES]
    try:
        with gzip.open(source) if is_packed(source) else source.open("rb") as stream:
            return stream.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):  # who reads the table has said what is wrong with it
        return b""
