"""Words: numbers of things, and text from data that is safe to show."""

from __future__ import annotations

import unicodedata

# Control and format characters (escape sequences, text that runs the other way), halves of pairs,
# and separators of lines.
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: 1 row, 2 rows, 1,000 leaves; `many` is `one` with an s, or given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def visible(text: object) -> str:
    r"""One line of text whose invisible characters are written as Python escapes.

    Names and labels come from files and can hold anything: sequences that a terminal obeys, line
    ends, NUL.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode("ascii")
        if unicodedata.category(letter) in INVISIBLE
        else letter
        for letter in text
    )
