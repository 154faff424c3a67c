"""Output: notes and refusals, progress on a terminal, tables that a pipe can read too, and JSON.

A note or a refusal is a single line on standard error. Text from data is made safe to show.
"""

from __future__ import annotations

import io
import json
import math
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from dtrees.exceptions import ClusterError, TableTooLargeError

if TYPE_CHECKING:
    from dtrees.callbacks import Bar

# Control and format characters (escape sequences, text that runs the other way), halves of pairs,
# and separators of lines.
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
LONGEST = 1_000  # letters of a message
# Of `coding.column_types`, of which `dtrees.cli.columns` says more.
OWN_WORDS = "Columns? .* Is (this|each) an id|Values of columns? .* look like dates"


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


class RequestError(click.ClickException):
    """A request that cannot be served: one line, exit code 2."""

    exit_code = 2

    def __init__(self, message: object):
        super().__init__(one_line(message))


def one_line(message: object) -> str:
    """A message without line ends and without characters that a terminal obeys, cut to a length."""
    line = visible(" ".join(str(message).split()))
    if len(line) <= LONGEST:
        return line
    half = LONGEST // 2
    return f"{line[:half]} ... {line[-half:]}"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what the floors below refuse into one line and exit code 2."""
    try:
        yield
    except (ImportError, TypeError, ValueError, ClusterError, TableTooLargeError) as error:
        if "Mismatched dtypes found" in str(error):  # Dask, of a CSV file
            raise RequestError(
                "a column of the CSV files is something else further down than in the first rows "
                "(a gap among whole numbers, for instance), by which a cluster tells what it is. "
                "Write the table as Parquet, or read it without --cluster"
            ) from error
        raise RequestError(error) from error


@contextmanager
def notes() -> Iterator[None]:
    """Turn the warnings of the floors below into lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)
        warnings.filterwarnings("ignore", message=OWN_WORDS)
        yield
    for warning in caught:
        note(warning.message)


def note(message: object) -> None:
    """Say something that is worth knowing, on standard error."""
    click.echo(f"Note: {one_line(message)}", err=True)


def console() -> Any:
    """A console that draws on standard output."""
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
