"""The files beside the table: models that are read, models and predictions that are written.

A slip of the shell's completion must not cost a table or a program. So a file that is there is
replaced only if it is recognised as what is about to be written:

    fit --out       a model file: its first member is model.json, which names the format
    cv --report     a page of ours, by the generator that its head names
    predict --out   a table with exactly the columns that are about to be written

``--force`` replaces any file. Folders are never replaced.

A spreadsheet takes text for a formula that begins with an operator, whoever wrote it. Names, labels
and kept columns come from files, so such text gets an apostrophe in front, in the header too.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dtrees.cli.form import is_text
from dtrees.cli.terminal import RequestError

STANDARD_STREAM = Path("-")
PARQUET = ".parquet"
TABLE_HEAD = 65_536  # bytes
UNITS = ("bytes", "kB", "MB", "GB")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(
    r"[-+]? (?: [.,]?\d[\d.,]* (?: e[-+]?\d+ )? %? | inf | infinity | nan )", re.I | re.X
)
MARKED_CELL = re.compile(rb"""[,\n] "? ' [-=+@\t\r]""", re.X)
BLOCK = 1 << 20  # bytes of a file that are looked at at once
OVERLAP = 3  # bytes of a marked cell's beginning that the block before may hold
MODEL_HEAD = b'{"format":"dtrees model"'
PAGE_HEAD = '<meta name="generator" content="dtrees">'
HEAD_BYTES = 4096  # of a page that are looked at


def is_stream(file: Path) -> bool:
    """Tell whether a path stands for standard input or output."""
    return file == STANDARD_STREAM


def check_there(path: Path, hint: str = "") -> None:
    """Refuse a file that cannot be read, since there is none; a hint says what was meant, then."""
    if any(letter in str(path) for letter in "*?[") and not path.exists():
        raise RequestError(f"{path}: patterns are read on a cluster: add --cluster local:2")
    if not path.is_file():
        raise RequestError(f"{path}: {'not a file' if path.exists() else 'no such file' + hint}")


def check_out(out: Path, *sources: Path, option: str = "--out") -> None:
    """Refuse, before the work is done, a file that cannot be written or must not be replaced."""
    target = target_of(out)
    if (out.exists() and not out.is_file()) or target.is_symlink():  # a link to itself, in the end
        raise RequestError(f"{out}: not a file")
    folder = target.parent if out.is_symlink() else out.parent
    if not folder.is_dir():
        raise RequestError(f"{out}: there is no folder {folder}")
    for source in sources:
        if target == target_of(source):
            raise RequestError(f"{option} {out} would replace what is read")


def check_format(out: Path) -> None:
    """Refuse a file of predictions whose format is not known, or cannot be written here."""
    from dtrees._extras import extra
    from dtrees.io.files import FORMATS

    if not out.name.lower().endswith(FORMATS):
        raise RequestError(f"{out}: unknown extension, expected one of {', '.join(FORMATS)}")
    if out.name.lower().endswith(PARQUET):
        extra("pyarrow")


def load_model(path: Path) -> Any:
    """The estimator in a model file; RequestError, ModelFileError: there is none to be read."""
    from dtrees.export import load

    check_there(path)
    with file_errors(path, "read"):
        model = load(path)
    if type(model).__module__.startswith("sklearn."):
        raise RequestError(f"{path} holds a {type(model).__name__} of scikit-learn; use Python")
    return model


def target_of(path: Path) -> Path:
    """The file that a path means, where it is a link or lies behind one."""
    return Path(os.path.realpath(path))  # Path.resolve raises on links that lead to themselves


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """Another name to write to, renamed in the end: the file is whole, or as it was.

    A link stays one, and the file that it leads to is replaced.
    """
    out = target_of(out)
    partial = out.with_name(f".{out.name}.{secrets.token_hex(8)}.partial")
    try:
        yield partial
        os.replace(partial, out)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_table(frame: Any, out: Path) -> None:
    """Write a DataFrame; the file is whole, or as it was."""
    with whole_file(out) as partial:
        if out.name.lower().endswith(PARQUET):
            frame.to_parquet(partial, index=False)
        else:
            frame.to_csv(partial, index=False, compression="gzip" if is_packed(out) else None)


def is_packed(out: Path) -> bool:
    """Tell whether a file is compressed, by its name."""
    return out.name.lower().endswith(".gz")


def bytes_in_words(path: Path) -> str:
    """The size of a file."""
    return in_units(path.stat().st_size)


def in_units(n_bytes: int) -> str:
    """A number of bytes."""
    size = float(n_bytes)
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


@contextmanager
def file_errors(path: Path | str, what: str) -> Iterator[None]:
    """Turn what the system has against a file into one line: "cannot be read", "... written"."""
    try:
        yield
    except BrokenPipeError:  # who reads has enough; click ends in silence
        raise
    except OSError as error:
        raise RequestError(f"{path}: cannot be {what}: {error.strerror or error}") from error


def head_of(source: Path | io.BytesIO) -> bytes:
    """The first bytes of a file, unpacked, or of a stream."""
    if not isinstance(source, Path):
        return source.getvalue()[:TABLE_HEAD]
    try:
        with gzip.open(source) if is_packed(source) else source.open("rb") as stream:
            return stream.read(TABLE_HEAD)
    except (OSError, EOFError, zlib.error):  # who reads the table has said what is wrong with it
        return b""


def as_cell(label: Any) -> Any:
    """A label that a spreadsheet does not take for a formula when it opens a CSV file.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe
    in front. Numbers, and signs alone such as ``+``, do not. Anything else is returned as it is.

    >>> as_cell("=1+1"), as_cell("-1"), as_cell("-"), as_cell("yes")
    ("'=1+1", '-1', '-', 'yes')
    """
    if not isinstance(label, str) or not label.startswith(FORMULA_STARTS):
        return label
    text = label.strip()
    if not text.strip("=+-@ ") or NUMBER.fullmatch(text):
        return label
    return f"'{label}"


def safe_names(names: Iterable[str]) -> list[str]:
    """Names of columns as cells."""
    return [as_cell(name) for name in names]


def safe_table(table: Any) -> tuple[Any, int]:
    """A DataFrame in which text and names of columns are cells, and how many of them changed."""
    from pandas import StringDtype

    names = safe_names(table.columns)
    n_changed = sum(new != old for new, old in zip(names, table.columns, strict=True))
    safe = table.copy(deep=False)
    for place in range(table.shape[1]):
        column = table.iloc[:, place]
        if not may_hold_text(column):
            continue
        is_all_text = isinstance(column.dtype, StringDtype)
        if is_all_text and not column.str.startswith(FORMULA_STARTS, na=False).any():
            continue  # as in nearly every table, and much faster than cell by cell
        values = column.tolist()
        cells = [as_cell(value) for value in values]
        n_of_column = sum(new is not old for new, old in zip(cells, values, strict=True))
        if n_of_column:
            n_changed += n_of_column
            dtype = column.dtype if is_text(column) else object
            safe.isetitem(place, type(column)(cells, column.index, dtype=dtype))
    return safe.set_axis(names, axis=1), n_changed


def may_hold_text(column: Any) -> bool:
    """Tell whether a column of a DataFrame holds strings, or categories that may be."""
    from pandas import CategoricalDtype

    return is_text(column) or isinstance(column.dtype, CategoricalDtype)


def holds_marked_cells(path: Path, *, packed: bool) -> bool:
    """Tell whether a CSV file has a cell with an apostrophe in front of what would be a formula.

    The workers of a cluster make the text, so this tells afterwards whether they changed any.
    """
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        block = b"\n"  # in front of the first line
        while more := file.read(BLOCK):
            block = block[-OVERLAP:] + more
            if MARKED_CELL.search(block):
                return True
    return False


force_option = click.option(
    "--force", is_flag=True, help="Replace the file that is written, whatever it holds."
)


def check_replaceable(out: Path, is_ours: Callable[[Path], bool], what: str, force: bool) -> None:
    """Refuse to replace a file that `is_ours` does not know; `what` is for the message."""
    if force or not out.exists() or out.stat().st_size == 0 or is_ours(out):
        return
    raise RequestError(f"{out} is there and is not {what}: add --force to replace it")


def is_model(path: Path) -> bool:
    """Tell whether a file is a model file, as far as its head says."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("model.json") as document:
            return document.read(len(MODEL_HEAD)) == MODEL_HEAD
    except (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile):
        return False


def is_page(path: Path) -> bool:
    """Tell whether a file is a page that `cv --report` has written."""
    try:
        with path.open("rb") as file:
            return PAGE_HEAD in file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return False


def is_predictions(path: Path, names: Sequence[str]) -> bool:
    """Tell whether a file is a table with the columns that are about to be written.

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
