"""What cannot be done, and what is worth a note: single lines on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from dtrees.cli.formatting import visible
from dtrees.exceptions import ClusterError, TableTooLargeError

LONGEST = 1_000  # letters of a message
# Of `coding.input_validation`, of which `column_notes` says more.
OWN_WORDS = "Columns? .* Is (this|each) an id|Values of columns? .* look like dates"


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
