"""A cluster for a command: found by its address, or started here for as long as the command runs.

    tcp://host:8786, tls://...    the scheduler of a cluster that somebody else has started
    local:4                       four workers of a thread each, processes of this machine
    local                         as many as Dask thinks good for it

Tables on a cluster are files that the workers read: Parquet or CSV, a partition for each file or
stretch of one, and never in this process.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
from fsspec.core import get_fs_token_paths

from dtrees.exceptions import ClusterError

ANSWER = "10s"  # that a scheduler has to answer
LOCAL = re.compile(r"local(?::([1-9]\d{0,3}))?")
CSV = (".csv", ".csv.gz")
PARQUET = ".parquet"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a cluster, which is in force in the context.

    Parameters
    ----------
    address : str
        As at the top of this module.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ValueError
        `address` is no address.
    ClusterError
        Nobody answers there.
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
    files: Sequence[str], *, separator: str | None = None, encoding: str | None = None
) -> Any:
    """Files of one table as a Dask data frame, whose rows stand in the order of the files.

    Parameters
    ----------
    files : sequence of str
        Paths, patterns with ``*``, or URLs that `fsspec` knows; all of one format. They have to be
        where the workers can read them.
    separator, encoding : str or None, default=None
        Of CSV files, ``,`` and utf-8. Files that are not compressed are cut into stretches.

    Returns
    -------
    dask.dataframe.DataFrame

    Raises
    ------
    ValueError
        There are no such files, of formats that differ or are not known, or they cannot be read.
    """
    found = [path for file in files for path in _matching(file)]
    is_parquet = {name.lower().endswith(PARQUET) for name in found}
    strange = [name for name in found if not name.lower().endswith((*CSV, PARQUET))]
    if strange:
        known = ", ".join((*CSV, PARQUET))
        raise ValueError(f"{strange[0]}: unknown extension, expected one of {known}")
    if len(is_parquet) > 1:
        raise ValueError("files of one table are either CSV or Parquet, not both")
    if is_parquet == {True} and (separator is not None or encoding is not None):
        raise ValueError("a Parquet file has no separator and no encoding")
    import dask.dataframe

    label = found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"
    try:
        if is_parquet == {True}:
            return dask.dataframe.read_parquet(found)
        packed = any(name.lower().endswith(".gz") for name in found)
        return dask.dataframe.read_csv(
            found,
            sep="," if separator is None else separator,
            encoding="utf-8" if encoding is None else encoding,
            blocksize=None if packed else "default",
            compression="gzip" if packed else None,
        )
    except (OSError, EOFError, LookupError, ValueError) as error:  # pandas' and Arrow's errors too
        reason = str(error) or type(error).__name__
        raise ValueError(f"{label}: cannot be read: {reason}") from error


def _matching(file: str) -> list[str]:
    """The files that a path, a pattern or a URL stands for."""
    try:
        system, _, paths = get_fs_token_paths(file)
        paths = sorted(path for path in paths if system.exists(path))
    except (OSError, ImportError, ValueError) as error:
        raise ValueError(f"{file}: cannot be read: {error}") from error
    if not paths:
        raise ValueError(f"{file}: no such file")
    return [str(system.unstrip_protocol(path)) if "://" in file else path for path in paths]
