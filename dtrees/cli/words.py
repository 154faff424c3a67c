"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: 1 row, 2 rows, 1,000 leaves; `many` is `one` with an s, or given."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
