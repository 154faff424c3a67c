"""Which files a command may replace: empty ones, and what it has written itself.

A slip of the shell's completion must not cost a table or a program. So a file that is there is
replaced only if it is recognised as what is about to be written:

    fit --out       a model file: its first member is model.json, which names the format
    cv --report     a page of ours, by the generator that its head names
    predict --out   a table with exactly the columns that are about to be written

``--force`` replaces any file. Folders are never replaced.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from dtrees.cli.cells import safe_names
from dtrees.cli.errors import RequestError
from dtrees.cli.files import PARQUET, is_packed

MODEL_HEAD = b'{"format":"dtrees model"'
PAGE_HEAD = '<meta name="generator" content="dtrees">'
HEAD_BYTES = 4096  # of a page that are looked at

force_option = click.option(
    "--force", is_flag=True, help="Replace the file that is written, whatever it holds."
)


def check_replaceable(out: Path, is_ours: Callable[[Path], bool], what: str, force: bool) -> None:
    """Refuse to replace a file that `is_ours` does not know; `what` is for the message."""
    if force or not out.exists() or out.stat().st_size == 0 or is_ours(out):
        return
    raise RequestError(f"{out} is there and is not {what}: add --force to replace it")


def is_model(path: Path) -> bool:
    """Whether a file is a model file, as far as its head says."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("model.json") as document:
            return document.read(len(MODEL_HEAD)) == MODEL_HEAD
    except (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile):
        return False


def is_page(path: Path) -> bool:
    """Whether a file is a page that `cv --report` has written."""
    try:
        with path.open("rb") as file:
            return PAGE_HEAD in file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return False


def is_predictions(path: Path, names: Sequence[str]) -> bool:
    """Whether a file is a table with the columns that are about to be written.

    In CSV they may stand as they are or as cells.
    """
    try:
        if path.name.lower().endswith(PARQUET):
            from pyarrow import parquet

            return parquet.read_schema(path).names == list(names)
        headers = [csv_header(names), csv_header(safe_names(names))]
        with gzip.open(path, "rb") if is_packed(path) else path.open("rb") as file:
            return file.read(max(map(len, headers))).startswith(tuple(headers))
    except (OSError, EOFError, ValueError):
        return False


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of a CSV file with these columns."""
    from pandas import DataFrame

    return DataFrame(columns=list(names)).to_csv(index=False).encode()
