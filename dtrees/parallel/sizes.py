"""What is known of a fit before it begins: how large its table is, and where it would grow.

Nothing of a table is computed but the lengths of partitions that do not know them::

    X ──▶ rows, columns, codes of each column at most ──▶ bytes of codes ──▶ regime, and why
    cluster ──▶ workers, threads, memory                ──▶ ┘
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from dask.utils import format_bytes, format_time

from dtrees.coding.sparse_positions import in_scipy
from dtrees.coding.tables import read_table
from dtrees.parallel.client import await_workers, current_client, limits_of
from dtrees.parallel.encoding import size_of_codes
from dtrees.parallel.executors import run_with_retries
from dtrees.parallel.local import effective_n_jobs
from dtrees.parallel.memory import able_workers
from dtrees.parallel.one_kind import is_lazy
from dtrees.parallel.partitions import PartitionedTable, admitted
from dtrees.parallel.regimes import ASKED_FOR, TOO_LARGE, Choice, choose_regime

CATEGORIES = 255  # of a column, where nobody knows how many there are
OF_BYTES = {1: 2**8, 2: 2**16}  # values of an integer of so many bytes


@dataclass(frozen=True, eq=False)
class TableSize:
    """How large a coded table is, at most."""

    n_rows: int
    n_columns: int
    n_codes: np.ndarray  # int64 (n_columns,), at most, by the types of the columns
    n_bytes: int  # of all codes
    collection: Any = None  # of Dask, which is to be coded where it is


@dataclass(frozen=True)
class Machines:
    """Where a fit would run."""

    n_workers: int  # 1: this process, where there is no cluster
    n_threads: int  # of all of them
    memory: int | None  # bytes of the smallest worker; None: no limit is known
    is_cluster: bool = False  # whether they are workers of Dask


def size_of_table(X: Any, max_bins: int | None) -> TableSize:
    """The size of a table as for a fit, without its values.

    Lengths of partitions that are not known are counted, for which a Parquet file reads no column.
    Blocks of sparse arrays are taken to be dense.
    """
    if is_lazy(X):
        (parts,) = admitted(X, {})
        assert isinstance(parts, PartitionedTable)
        types = _types(parts.collection, parts.n_columns)
        return _dense(parts.n_rows, types, max_bins, parts.collection)
    X = in_scipy(X)
    if scipy.sparse.issparse(X):
        n_rows, n_columns = X.shape
        codes = np.full(n_columns, min(max_bins or n_rows, n_rows), dtype=np.int64)
        return TableSize(n_rows, n_columns, codes, size_of_codes(codes, n_rows, X.nnz))
    if not (hasattr(X, "dtype") or hasattr(X, "dtypes")) or len(X.shape) != 2:
        table = read_table(X)
        return _dense(table.n_rows, [None] * table.n_columns, max_bins, None)
    return _dense(X.shape[0], _types(X, X.shape[1]), max_bins, None)


def place_of(
    size: TableSize,
    regime: str | None,
    n_jobs: int | None,
    *,
    n_trees: int | None = None,
    n_sets: int = 1,
) -> tuple[Choice, Machines]:
    """Where trees would grow, and why there; raises ClusterError as a fit.

    `regime` is as the estimator has it, `n_jobs` as for `dtrees.parallel.local.effective_n_jobs`,
    `n_trees` and `n_sets` as for `dtrees.parallel.regimes.choose_regime`.
    """
    room = None
    if size.collection is not None:
        room = run_with_retries([size.collection], lambda executor: executor.room())
    choice = choose_regime(
        regime,
        n_trees=n_trees,
        n_sets=n_sets,
        n_cells=size.n_rows * size.n_columns,
        n_bytes=size.n_bytes,
        room=room,
    )
    client = current_client(forced=True) if choice.on_cluster else None
    if client is None:
        return choice, Machines(1, effective_n_jobs(n_jobs), None)
    threads, limits = await_workers(client), limits_of(client)
    if choice.regime == "replicated":
        able = able_workers(client, size.n_bytes)
        if not able and choice.reason != ASKED_FOR:
            return Choice("local", TOO_LARGE), Machines(1, effective_n_jobs(n_jobs), None)
        threads = able or threads
    memory = min(filter(None, map(limits.get, threads)), default=None)
    return choice, Machines(len(threads), sum(threads.values()), memory, is_cluster=True)


def bytes_in_words(n_bytes: float) -> str:
    """A number of bytes for people."""
    return str(format_bytes(int(n_bytes)))


def seconds_in_words(seconds: float) -> str:
    """A time for people."""
    return str(format_time(seconds))


def _types(X: Any, n_columns: int) -> list[Any]:
    """The type of each column, as far as it is said."""
    types = getattr(X, "dtypes", None)
    if types is not None:
        return list(types)
    return [X.dtype] * n_columns


def _dense(n_rows: int, types: list[Any], max_bins: int | None, collection: Any) -> TableSize:
    codes = np.array([_most_codes(each, n_rows, max_bins) for each in types], dtype=np.int64)
    n_bytes = size_of_codes(codes, n_rows)
    return TableSize(int(n_rows), len(codes), codes, n_bytes, collection)


def _most_codes(kind: Any, n_rows: int, max_bins: int | None) -> int:
    """Codes of a column of a type, at most."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(kind, pandas.CategoricalDtype):
        categories = kind.categories
        known = categories is not None and "__UNKNOWN_CATEGORIES__" not in categories
        return min(n_rows, len(categories)) if known else min(n_rows, CATEGORIES)
    form, size = getattr(kind, "kind", "f"), getattr(kind, "itemsize", 8)
    if form == "b":
        return 2
    if form in "OUS":  # words, or anything
        return min(n_rows, CATEGORIES)
    most = n_rows if max_bins is None else min(max_bins, n_rows)
    return min(most, OF_BYTES.get(size, most)) if form in "iu" else most
