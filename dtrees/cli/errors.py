"""What cannot be done, and what is worth a note: single lines on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from dtrees.exceptions import ClusterError, TableTooLargeError


class RequestError(click.ClickException):
    """A request that cannot be served: one line, exit code 2."""

    exit_code = 2

    def __init__(self, message: object):
        super().__init__(" ".join(str(message).split()))


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
        yield
    for warning in caught:
        click.echo(f"Note: {' '.join(str(warning.message).split())}", err=True)
