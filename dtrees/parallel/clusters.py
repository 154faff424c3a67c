"""A cluster for a command: found by its address, or started here for as long as the command runs.

    tcp://host:8786, tls://...    the scheduler of a cluster that somebody else has started
    local:4                       four workers of a thread each, processes of this machine
    local                         as many as Dask thinks good for it

Tables on a cluster are files that the workers read: Parquet or CSV, a partition for each file or
stretch of one, and never in this process. What is made of them row by row is written by the workers
as a folder of Parquet files, one for each partition. Text is written by this process::

    FILE ... --read_files--> partitions --map_parts--> partitions --write_parquet--> folder
                                                                  --write_csv------> file
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from gzip import GzipFile
from itertools import count, repeat
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import dask

from dtrees.coding.times import DateForm, combined, forms_of, parsed
from dtrees.exceptions import ClusterError
from dtrees.parallel.client import sending_data
from dtrees.parallel.executors import Executor, run_with_retries
from dtrees.parallel.partitions import delayed_parts

T = TypeVar("T")

ANSWER = "10s"  # that a scheduler has to answer
LOCAL = re.compile(r"local(?::([1-9]\d{0,3}))?")
FIRST_ROWS = 100  # that say which columns may hold dates
CSV = (".csv", ".csv.gz")
PARQUET = ".parquet"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a cluster, which is in force in the context.

    Raises ValueError where `address` is none, as at the top of this module, and ClusterError where
    nobody answers there.
    """
    from distributed import Client, LocalCluster

    found = LOCAL.fullmatch(address)
    if found is None and "://" not in address:
        raise ValueError(
            f"{address!r} is no cluster: give the address of a scheduler (tcp://host:8786), or "
            "local:N for N workers on this machine"
        )
    if found is not None:
        n_workers = None if found[1] is None else int(found[1])
        threads = None if n_workers is None else 1
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"}),
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=threads,
                dashboard_address=":0",
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=ANSWER)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client


@contextmanager
def regime_asked_for(regime: str | None) -> Iterator[None]:
    """Fits in the context grow their trees there; None: as sizes and the cluster say."""
    with dask.config.set({} if regime is None else {"dtrees.regime": regime}):
        yield


def read_files(
    files: Sequence[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    dayfirst: bool = False,
    as_text: Collection[str] = (),
    dates: bool = True,
) -> tuple[Any, dict[str, DateForm]]:
    """Files of one table as a Dask data frame, whose rows stand in the order of the files.

    Parameters
    ----------
    files : sequence of str
        Paths, patterns with ``*``, or URLs that `fsspec` knows; all of one format. They have to be
        where the workers can read them.
    separator, encoding, decimal : str or None, default=None
        Of CSV files, ``,``, utf-8 and ``.``. Files that are not compressed are cut into stretches.
    dayfirst : bool, default=False
        Whether 01/02/2024 in a CSV file is a day of February.
    as_text : collection of str, default=()
        Columns of CSV files that are text whatever they look like; they need not be there.
    dates : bool, default=True
        Whether columns of text in CSV files that hold dates become dates, by the rule for one file
        (`dtrees.coding.times`). Where such a column begins like one, all of it is read now,
        once more than otherwise, by the workers.

    Returns
    -------
    (dask.dataframe.DataFrame, dict of str to DateForm)
        And how the columns of dates in CSV files are written.

    Raises
    ------
    ValueError
        There are no such files, of formats that differ or are not known, or they cannot be read.
    ClusterError
        The cluster cannot be used, or has lost the work too often.
    """
    found = [path for file in files for path in _matching(file)]
    is_parquet = {name.lower().endswith(PARQUET) for name in found}
    strange = [name for name in found if not name.lower().endswith((*CSV, PARQUET))]
    if strange:
        known = ", ".join((*CSV, PARQUET))
        raise ValueError(f"{strange[0]}: unknown extension, expected one of {known}")
    if len(is_parquet) > 1:
        raise ValueError("files of one table are either CSV or Parquet, not both")
    if is_parquet == {True} and (separator, encoding, decimal) != (None, None, None):
        raise ValueError("a Parquet file has no separator, no encoding and no decimal mark")
    import dask.dataframe

    label = found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"
    try:
        if is_parquet == {True}:
            return dask.dataframe.read_parquet(found), {}
        packed = any(name.lower().endswith(".gz") for name in found)
        table = dask.dataframe.read_csv(
            found,
            sep="," if separator is None else separator,
            encoding="utf-8" if encoding is None else encoding,
            decimal="." if decimal is None else decimal,
            blocksize=None if packed else "default",
            compression="gzip" if packed else None,
            dtype=dict.fromkeys(as_text, str),
        )
        forms = _dates_in(table, as_text, dayfirst) if dates else {}
        if forms:
            table = table.map_partitions(_parsed, forms, meta=_parsed(table._meta, forms))
        return table, forms
    except (OSError, EOFError, LookupError, ValueError) as error:  # pandas' and Arrow's errors too
        reason = str(error) or type(error).__name__
        raise ValueError(f"{label}: cannot be read: {reason}") from error


def _dates_in(table: Any, as_text: Collection[str], dayfirst: bool) -> dict[str, DateForm]:
    """Columns of text that hold nothing but dates, and how these are written."""
    is_text = {name: table._meta[name].dtype.kind == "O" for name in table.columns}
    names = [name for name in table.columns if is_text[name] and name not in as_text]
    if names:  # most columns of words are told by their first rows
        (first,) = _forms_in(table[names].partitions[0], FIRST_ROWS, dayfirst)
        names = [name for name in names if first[name] is not None]
    parts = _forms_in(table[names], None, dayfirst) if names else []
    forms = {name: combined(part[name] for part in parts) for name in names}
    return {name: form for name, form in forms.items() if form is not None}


def _forms_in(table: Any, n_rows: int | None, dayfirst: bool) -> list[Any]:
    """What `forms_of` says of the columns of each partition, or of its first rows."""

    def work(executor: Executor) -> list[Any]:
        tasks = _tasks("look-for-dates", _forms, table, repeat((n_rows, dayfirst)))
        return executor.fetch(executor.hold(tasks))

    return _computed(table, work)


def _forms(part: Any, how: tuple[int | None, bool]) -> dict[str, set[DateForm] | None]:
    n_rows, dayfirst = how
    return {name: forms_of(part[name].iloc[:n_rows], dayfirst=dayfirst) for name in part.columns}


def _parsed(part: Any, found: dict[str, DateForm]) -> Any:
    part = part.copy(deep=False)
    for name, form in found.items():
        part[name] = parsed(part[name], form)
    return part


def write_parquet(table: Any, folder: str) -> int:
    """Write a lazy data frame without its index as Parquet files, by the workers; returns its rows.

    `folder` is a path or URL, which the workers have to know, too. There is nothing yet; where the
    work fails, there is nothing again. The files in it are named in the order of the partitions.
    Raises ValueError where there is something already, OSError where the folder cannot be written,
    and ClusterError where the cluster cannot be used, or has lost the work too often.
    """
    from fsspec.core import get_fs_token_paths

    system, _, (path,) = get_fs_token_paths(folder)
    if system.exists(path):
        raise ValueError(f"{folder}: is there already, and a folder is not replaced")
    address = str(system.unstrip_protocol(path)) if "://" in folder else path

    def write(executor: Executor) -> int:
        names = (f"{address}/part-{number:06}.parquet" for number in count())
        return sum(
            executor.fetch(executor.hold(_tasks("write-parquet", _to_parquet, table, names)))
        )

    system.makedirs(path)
    try:
        return _computed(table, write)
    except BaseException:
        with suppress(OSError):  # what is raised already says more
            system.rm(path, recursive=True)
        raise


def write_csv(table: Any, file: Path, *, packed: bool = False) -> int:
    """Write a lazy data frame without its index as one CSV file; returns the number of its rows.

    The workers make the text, and this process writes. `file` is replaced, and `packed` by gzip.
    Raises OSError where it cannot be written, and ClusterError as `write_parquet`.
    """

    def write(executor: Executor) -> int:
        n_rows = 0
        with file.open("wb") as raw, GzipFile("", "wb", fileobj=raw) if packed else raw as stream:
            stream.write(table._meta.to_csv(index=False).encode())
            for held in executor.hold(_tasks("write-csv", _to_csv, table, count())):
                ((text, length),) = executor.fetch([held])
                stream.write(text)
                n_rows += length
        return n_rows

    return _computed(table, write)


def _computed(table: Any, work: Callable[[Executor], T]) -> T:
    with sending_data():  # a forest is in the graph
        return run_with_retries([table], work)


def _tasks(
    name: str, function: Callable[[Any, Any], Any], table: Any, places: Iterator[Any]
) -> list[Any]:
    """A task for each partition and its place."""
    task, key = dask.delayed(function, pure=False), f"{name}-{uuid4().hex}"
    parts = enumerate(zip(delayed_parts(table), places, strict=False))
    return [task(part, place, dask_key_name=(key, i)) for i, (part, place) in parts]


def _to_parquet(part: Any, file: str) -> int:
    part.to_parquet(file, index=False)
    return len(part)


def _to_csv(part: Any, _: int) -> tuple[bytes, int]:
    return part.to_csv(index=False, header=False).encode(), len(part)


def _matching(file: str) -> list[str]:
    """The files that a path, a pattern or a URL stands for."""
    from fsspec.core import get_fs_token_paths

    try:
        system, _, paths = get_fs_token_paths(file)
        paths = sorted(path for path in paths if system.exists(path))
    except (OSError, ImportError, ValueError) as error:
        raise ValueError(f"{file}: cannot be read: {error}") from error
    if not paths:
        raise ValueError(f"{file}: no such file")
    return [str(system.unstrip_protocol(path)) if "://" in file else path for path in paths]
