"""Tables that are Dask collections: what is known of them, and what belongs to their rows.

    X              array or data frame, cut into partitions of rows; it stays where it is
    y, weights,    one value per row: they are fetched, and stand in the order of the rows; or they
    groups         stay, too (`dtrees.parallel.row_columns`)

Everything is told apart by the number of a row. So it does not matter how y is cut into partitions,
or whether it is an array and X a data frame. Only the numbers of rows have to be equal, as for
tables in memory. An index is not looked at.

Row numbers need the lengths of the partitions. Arrays know them, or their blocks are counted; those
of data frames are counted by their index, for which a Parquet file reads no column. A partition
that then has another number of rows is an error, never a shift.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import Delayed
from scipy.sparse import issparse, vstack

from dtrees._warnings import warn
from dtrees.coding.group_keys import group_keys
from dtrees.coding.tables import check_shape, feature_names, read_table, row_values
from dtrees.parallel.executors import Executor, computed, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.lazy_collections import is_lazy

NUMBERS = "biuf"  # kinds of types


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """A Dask collection whose partitions have known lengths."""

    collection: Any  # array or data frame, as given; but chunks along columns are joined
    lengths: np.ndarray  # int64 (n_partitions,)
    n_columns: int
    names: np.ndarray | None  # object (n_columns,) of str

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(self.lengths.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, self.n_columns

    def __len__(self) -> int:
        """Rows of all partitions."""
        return self.n_rows

    def __getitem__(self, rows: Any) -> Any:
        """Rows cannot be taken: they are on their workers."""
        raise TypeError(
            "Rows of a Dask collection cannot be taken by number here: a scorer that is a function "
            "of (estimator, X, y), or scikit-learn's function, asks for them. Use "
            "make_scorer(metric), which asks for predictions only, or give X.compute(), if it fits."
        )

    def parts(self) -> list[tuple[Any, int, int]]:
        """Partitions that have rows: (delayed partition, number of its first row, its length)."""
        first = np.cumsum(self.lengths) - self.lengths
        rows = zip(first.tolist(), self.lengths.tolist(), strict=True)
        return [
            (part, start, length)
            for part, (start, length) in zip(delayed_parts(self.collection), rows, strict=True)
            if length > 0
        ]


def admitted(
    X: Any, columns: Mapping[str, Any], stats: FitStatistics | None = None
) -> tuple[Any, ...]:
    """A table, and what belongs to its rows, ready for a fit.

    `columns` are values of each row, or None, by the name of the argument. `stats` are told of the
    phase "reading", unless there are no collections. Returns `X`, a Dask collection as
    `PartitionedTable`, and the columns in their order, as `row_values` makes them: in memory.

    Raises ValueError where a collection has no rows, not two dimensions, an unknown number of
    columns, or another number of rows than `X`, as far as that is known; the fit looks at the rest.
    Raises TypeError where `X` is a collection of another kind, or what belongs to its rows is
    delayed.
    """
    if not any(map(is_lazy, (X, *columns.values()))):
        return (X, *map(row_values, columns.values()))
    for name, value in columns.items():
        if isinstance(value, Delayed):  # nothing is known of it, not even that it is of rows
            raise TypeError(
                f"{name} is a dask.delayed value. Give {name}.compute(), or a Dask array of it: "
                f"dask.array.from_delayed({name}, shape=(n_rows,), dtype=...)."
            )
    if is_lazy(X):
        X = _of_rows(X)
        lengths = known_lengths(X)
        if lengths is not None:  # before anything is computed
            check_lengths(int(lengths.sum()), columns)
    lazy = [value for value in columns.values() if is_lazy(value)]
    is_table = is_lazy(X)

    def fetched(executor: Executor) -> tuple[np.ndarray | None, list[Any]]:
        counts = counts_of_rows(X) if is_table and known_lengths(X) is None else []
        results = executor.fetch(executor.hold([*counts, *lazy])) if counts or lazy else []
        lengths = np.array(results[: len(counts)], dtype=np.int64) if counts else None
        return lengths, results[len(counts) :]

    stats = FitStatistics() if stats is None else stats
    with stats.phase("reading"):
        lengths, values = run_with_retries([X, *lazy] if is_table else lazy, fetched, stats)
    found = iter(values)
    rest = [next(found) if is_lazy(value) else value for value in columns.values()]
    if is_table:
        lengths = known_lengths(X) if lengths is None else lengths
        assert lengths is not None
        names = feature_names(X.columns) if hasattr(X, "columns") else None
        X = PartitionedTable(X, lengths, int(X.shape[1]), names)
        check_shape(X.shape)
    return (X, *map(row_values, rest))


def is_array(X: Any) -> bool:
    """Whether a collection is a table as an array; False for data frames, others are refused.

    Raises TypeError for other kinds, and ValueError for other dimensions and complex numbers.
    """
    array, frame = sys.modules.get("dask.array"), sys.modules.get("dask.dataframe")
    if frame is not None and isinstance(X, frame.DataFrame):
        return False
    if array is None or not isinstance(X, array.Array):
        raise TypeError(
            f"X is a Dask collection of type {type(X).__name__}. Give a Dask array of shape "
            "(n_rows, n_columns) or a Dask data frame, or X.compute()."
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X is a Dask array of shape {X.shape}."
        )
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X is a Dask array of dtype {X.dtype}.")
    return True


def _of_rows(X: Any) -> Any:
    """A collection of two dimensions whose partitions have all columns."""
    if not is_array(X):
        return X
    if np.isnan(X.shape[1]):
        raise ValueError(
            f"The number of columns of X is not known: it is a Dask array of shape {X.shape}. Call "
            "X.compute_chunk_sizes() first."
        )
    if X.numblocks[1] > 1:
        warn(
            f"X has chunks along columns ({X.numblocks[1]} of them), which are joined. "
            "X.rechunk({1: -1}) does that once and for all."
        )
        return X.rechunk({1: -1})
    return X


def known_lengths(X: Any) -> np.ndarray | None:
    """Rows of each partition of an array; None where they are not known."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return np.array(chunks[0], dtype=np.int64)


def known_length(values: Any) -> int | None:
    """Rows of a table, or values of a column; None: they have to be counted, or there are none."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, Sequence):
        length = shape[0] if len(shape) > 0 else None
    else:
        length = None if is_lazy(values) or not hasattr(values, "__len__") else len(values)
    return int(length) if isinstance(length, int | np.integer) else None


def rows_as_array(X: Any, n_rows: int) -> Any:
    """A Dask array for whoever divides the rows of a table, and wants to know their blocks.

    It is the user's collection, where that is an array of known block sizes. Of data frames, and of
    arrays whose blocks had to be counted, it has the numbers in blocks of these lengths; none of
    them is empty. Where cells are no numbers, and for other tables in memory, it has zeros.
    """
    from dask import array

    if is_lazy(X):
        return X
    if not isinstance(X, PartitionedTable):
        if isinstance(X, np.ndarray) and X.dtype.kind in NUMBERS:
            return array.from_array(X, chunks=-1, name=False)
        return array.zeros((n_rows, 1), chunks=-1)
    if known_lengths(X.collection) is not None:
        return X.collection
    dtype = _dtype_of_numbers(X.collection)
    if dtype is None:
        lengths = tuple(length for length in X.lengths.tolist() if length > 0)
        return array.zeros(X.shape, chunks=(lengths, X.n_columns))
    as_block = dask.delayed(np.asarray, pure=True)
    blocks = [
        array.from_delayed(as_block(part, dtype=dtype), (length, X.n_columns), dtype=dtype)
        for part, _, length in X.parts()
    ]
    return array.concatenate(blocks)


def _dtype_of_numbers(collection: Any) -> np.dtype | None:
    """Type of the cells of a collection, all of which are numbers of NumPy; None: they are not."""
    if hasattr(collection, "dtypes"):
        dtypes = list(collection.dtypes)
    else:
        dtypes = [collection.dtype if isinstance(collection._meta, np.ndarray) else None]
    if all(isinstance(dtype, np.dtype) and dtype.kind in NUMBERS for dtype in dtypes):
        return np.result_type(*dtypes)
    return None


def rows_here(table: PartitionedTable, rows: np.ndarray, stats: FitStatistics) -> tuple[Any, Any]:
    """Some rows of a table, and those where each partition has a label first.

    `rows` are int64 (n,), ascending. Returns a table in memory, and the numbers of its rows, int64,
    ascending.
    """
    parts = table.parts()
    ends = np.searchsorted(rows, [first for _, first, _ in parts] + [table.n_rows])
    own = [rows[a:b] - first for a, b, (_, first, _) in zip(ends, ends[1:], parts, strict=False)]
    take = dask.delayed(_taken, pure=False)
    tasks = [take(part, n, mine) for (part, _, n), mine in zip(parts, own, strict=True)]
    with stats.phase("reading"):
        found = computed(*tasks, stats=stats)
    blocks = [block for block, _ in found]
    numbers = [local + first for (_, local), (_, first, _) in zip(found, parts, strict=True)]
    if hasattr(blocks[0], "iloc"):
        stacked = sys.modules["pandas"].concat(blocks, ignore_index=True)
    elif issparse(blocks[0]):
        stacked = vstack(blocks, format="csr")
    else:
        stacked = np.concatenate(blocks)
    return stacked, np.concatenate(numbers)


def _taken(block: Any, length: int, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows of a partition that should have so many, and which they are."""
    if block.shape[0] != length:
        raise ValueError(f"A partition has {block.shape[0]} rows; it had {length} when counted.")
    labels = read_table(block).labels
    firsts = [np.unique(column.codes, return_index=True)[1] for column in labels]
    rows = np.unique(np.concatenate([rows, *firsts]))
    block = getattr(block, "iloc", block.tocsr() if issparse(block) else block)
    return block[rows], rows


def check_lengths(n_rows: int, columns: Mapping[str, Any]) -> None:
    """Raise ValueError where `columns`, as for `admitted`, have another length than X, if known."""
    for name, value in columns.items():
        n_values = known_length(value)
        if n_values is not None and n_values != n_rows:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{n_rows} rows, {name} has {n_values} values. Give one value of {name} per row "
                "of X."
            )


def lazy_keys(labels: Any) -> Any:
    """A collection of labels of groups as one of their keys, which are made where the labels are.

    What is no collection of one value per row is returned as it is.
    """
    if not is_lazy(labels) or isinstance(labels, Delayed) or getattr(labels, "ndim", None) != 1:
        return labels
    if hasattr(labels, "map_partitions"):
        return labels.map_partitions(_series_of_keys, meta=_series_of_keys(labels._meta[:0]))
    return labels.map_blocks(group_keys, dtype=np.uint64, meta=np.empty(0, dtype=np.uint64))


def _series_of_keys(labels: Any) -> Any:
    return sys.modules["pandas"].Series(group_keys(labels), dtype=np.uint64)


def counts_of_rows(X: Any) -> list[Any]:
    """A task for the number of rows of each partition."""
    blocks = delayed_parts(X)
    if hasattr(X, "index"):
        indexes = delayed_parts(X.index)
        if len(indexes) == len(blocks):
            blocks = indexes
    count = dask.delayed(_n_rows, pure=False)
    name = f"count-rows-{uuid4().hex}"
    return [count(block, dask_key_name=(name, i)) for i, block in enumerate(blocks)]


def _n_rows(block: Any) -> int:
    return int(block.shape[0])


def delayed_parts(X: Any) -> list[Any]:
    """The partitions of a collection, one by one.

    Those of data frames read the columns that they need. They are not joined, as Dask does with
    files of which few columns are read: the index would have other partitions than X.
    """
    if hasattr(X, "simplify"):
        return list(X.simplify().to_delayed(optimize_graph=False))
    return X.to_delayed().ravel().tolist()
