"""Output: progress on a terminal, tables that a pipe can read too, and JSON."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from dtrees.cli.formatting import visible

if TYPE_CHECKING:
    from dtrees.callbacks import Bar


def console() -> Any:
    """What draws on standard output."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # a stream without block characters shows "?"
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


@contextmanager
def trees_grown(show: bool) -> Iterator[Bar | None]:
    """A bar of trees on standard error when it is a terminal, wiped out at the end; else None."""
    error = _terminal(show)
    if error is None:
        yield None
        return
    from dtrees.callbacks import Bar

    with Bar(error, transient=True) as bar:
        yield bar


@contextmanager
def waiting(words: str, show: bool) -> Iterator[None]:
    """A sign of life on standard error when it is a terminal, for work without steps."""
    error = _terminal(show)
    with nullcontext() if error is None else error.status(words):
        yield


def _terminal(show: bool) -> Any:
    """Standard error, to be drawn on; None: it is no terminal, or nothing is to be shown."""
    if not show:
        return None
    from rich.console import Console

    error = Console(stderr=True)
    return error if error.is_terminal else None


def print_sentence(out: Any, bold: str, rest: str = "") -> None:
    """Print a line that begins bold, in one piece however narrow the terminal or the pipe is."""
    from rich.text import Text

    out.print(Text.assemble((bold, "bold"), rest), soft_wrap=True)


def say(text: str) -> None:
    """Print lines for people; what a terminal would obey is made visible."""
    click.echo("\n".join(map(visible, text.split("\n"))))


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(finite(document), indent=2, allow_nan=False))


def finite(value: Any) -> Any:
    """The value with null for every number that JSON has no word for."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
