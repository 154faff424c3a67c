"""The files beside the table: models that are read, models and predictions that are written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dtrees.cli.errors import RequestError

STANDARD_STREAM = Path("-")
PARQUET = ".parquet"
UNITS = ("bytes", "kB", "MB", "GB")


def is_stream(file: Path) -> bool:
    """Whether a path stands for standard input or output."""
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
    from dtrees.io.extras import extra
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
        return load(path)


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
    """Whether a file is compressed, by its name."""
    return out.name.lower().endswith(".gz")


def write_text(text: str, out: Path) -> None:
    """Write a text in UTF-8; the file is whole, or as it was."""
    with whole_file(out) as partial:
        partial.write_text(text, encoding="utf-8")


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
