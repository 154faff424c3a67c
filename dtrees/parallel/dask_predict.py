"""Predictions for Dask collections: lazy, block by block.

A collection is answered by a collection of the same blocks, and nothing is computed when it is
asked for::

    X   block 0     block 1     block 2          dask.array, blocks dense or of scipy.sparse,
           |           |           |             or dask.dataframe
           v           v           v
        answer      answer      answer  <--- model: one key of the graph
           |           |           |
           v           v           v
        predict-<hash>, one task per block

    X                   one number or label a row       several columns
    array               array (n_rows,)                 array (n_rows, n_columns)
    data frame          Series, index kept              DataFrame, index kept

Rows of array blocks may be unknown, and blocks may be empty. Chunks along columns are joined.

The model enters a graph once, under a key that follows from its bytes. So a scheduler sends it to
each process once, and two predictions share it. In this process it is not copied. On its way to
others it is a string of bytes (`Sealed`), which the scheduler does not open and a worker opens
once. It is what the estimator had learned when it was asked: a later fit changes nothing.

A task uses the one thread that it runs on.
"""

from __future__ import annotations

import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.base import tokenize

from dtrees._forks import lock_of_process
from dtrees.coding.codebook import CodeBook
from dtrees.coding.tables import Table, feature_names, read_table
from dtrees.parallel.lazy_collections import is_lazy
from dtrees.parallel.partitions import check_lengths, is_array, known_length
from dtrees.typing import Runner, serial

_opening = lock_of_process(RLock)  # a model may hold others


class Answer(NamedTuple):
    """What a method returns for rows."""

    # (0,), (0, n_columns) or (0, n_columns, ...), sparse or not: its type and dtype
    empty: Any
    columns: Any = None  # labels of them in a data frame; None: one value per row, or an array
    labels: Any = None  # what the values are taken from, if they are labels


class Model(ABC):
    """What answers for the rows of tables; pickled on its way to other processes."""

    book: CodeBook
    estimator: str  # name for messages

    @abstractmethod
    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""

    def check(self, X: Any, run: Runner = serial) -> Table:
        """A table of the columns that were fitted."""
        return self.book.check(X, estimator=self.estimator, run=run)

    def check_columns(self, names: np.ndarray | None, n_columns: int | None) -> None:
        """Raise when a table of these columns is not one of those that were fitted."""
        self.book.check_columns(names, n_columns, self.estimator)

    def begun(self, method: str, X: Any, rows: Any, run: Runner = serial) -> Any:
        """A method's answer for rows that begin with numbers; not of all models."""
        raise NotImplementedError

    def of_block(self, method: str, block: Any, rows: Any = None) -> Any:
        """Answer for the rows of a block, at least one, whose columns have been checked.

        `rows` are what they begin with; None: with the same.
        """
        table = self.table_of(block)
        return getattr(self, method)(table) if rows is None else self.begun(method, table, rows)

    def table_of(self, block: Any) -> Table:
        """The table of a block, whose columns have been checked.

        Names that only one side has were a warning then, and are none for every block.
        """
        table = read_table(block)
        if table.names is None or self.book.feature_names is None:
            table = replace(table, names=self.book.feature_names)
        return table


class Sealed:
    """A model within a graph: itself in this process, and its pickle on the way to others."""

    def __init__(self, model: Any) -> None:
        self.pickled = pickle.dumps(model, protocol=5)
        self._model: Any = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.pickled)} bytes)"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.pickled)

    def __getstate__(self) -> bytes:
        return self.pickled

    def __setstate__(self, pickled: bytes) -> None:
        self.pickled, self._model = pickled, None

    def open(self) -> Any:
        """The model; unpickled when it is first asked for."""
        if self._model is None:
            with _opening:
                if self._model is None:
                    self._model = pickle.loads(self.pickled)
        return self._model


def map_rows(model: Model, method: str, X: Any, init_score: Any = None) -> Any:
    """A method's answers for an array or data frame of Dask, lazily, from the model as it is now.

    What kind of collection they are, the head of this module says. A sparse answer is an array in
    any case. `init_score` is what rows begin with, if they do: of the same partitions. Raises
    TypeError where `X` is a collection of another kind, and ValueError where it has other columns
    than at fit, or other rows than `init_score`, as far as the collection tells. The rest is told
    by the tasks.
    """
    rows = [] if init_score is None else [_cut_as(X, init_score)]
    return (_map_array if is_array(X) else _map_frame)(model, method, X, *rows)


def _cut_as(X: Any, init_score: Any) -> Any:
    """What rows of a collection begin with, cut as it is: a frame, or of an array two dimensions.

    Arrays of known lengths are cut anew; other collections need as many partitions.
    """
    found, of_array, n_rows = init_score, is_array(X), known_length(X)
    if of_array and n_rows is not None and not is_lazy(found):
        found = np.asarray(found)
        if found.ndim == 0:
            raise ValueError(f"init_score must have the shape ({n_rows},). Got () instead.")
        found = sys.modules["dask.array"].from_array(found)
    is_column = hasattr(found, "to_dask_array")
    if not is_column and not hasattr(found, "numblocks"):
        raise TypeError(
            "Rows of a Dask collection of unknown lengths begin with an init_score that is an "
            f"array or a data frame of Dask, of the same partitions. Got {type(found).__name__}."
        )
    if of_array and is_column:
        found = found.to_dask_array()
    elif not of_array and not is_column:
        found = sys.modules["dask.dataframe"].from_dask_array(found)
    if of_array and n_rows is not None and known_length(found) is not None:
        check_lengths(n_rows, {"init_score": found})
        found = found.rechunk({0: X.chunks[0]})
    n_parts = [each.numblocks[0] if of_array else each.npartitions for each in (X, found)]
    if n_parts[0] != n_parts[1]:
        raise ValueError(f"X has {n_parts[0]} partitions, and init_score has {n_parts[1]}.")
    if of_array:
        found = found[:, None] if found.ndim == 1 else found.rechunk({1: -1})
    return found


def map_parts(
    answer: Callable[..., Any], model: Any, X: Any, name: str = "predict", *rows: Any
) -> Any:
    """A function of a data frame and a model for the partitions of a lazy data frame, lazily.

    The model is kept as it is now, as a single key of the graph. A partition of no rows is asked
    about at once, for the columns. `rows` are other collections of as many partitions, parts of
    which the function gets, too.
    """
    return X.map_partitions(
        partial(_of_part, answer=answer),
        _leaf(model),
        *rows,
        meta=answer(X._meta, model),
        enforce_metadata=False,
        align_dataframes=False,
        token=name,
    )


def _of_part(part: Any, model: Sealed, *rows: Any, answer: Callable[..., Any]) -> Any:
    return answer(part, model.open(), *rows)


def _leaf(model: Any) -> Any:
    """The model as a single key of a graph."""
    sealed = Sealed(model)
    return dask.delayed(sealed, name=f"dtrees-model-{tokenize(sealed.pickled)}", traverse=False)


def _map_array(model: Model, method: str, X: Any, *rows: Any) -> Any:
    model.check_columns(None, None if np.isnan(X.shape[1]) else X.shape[1])
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    empty = model.answer(method).empty
    leaf = _leaf(model)
    return X.map_blocks(
        partial(_of_array, method=method, empty=empty),
        *rows,
        model=leaf,
        drop_axis=[1] if empty.ndim == 1 else [],
        new_axis=[*range(2, empty.ndim)],
        chunks=(X.chunks[0], *((n,) for n in empty.shape[1:])),
        dtype=empty.dtype,
        meta=empty,
        name=f"{method.replace('_', '-')}-{tokenize(X.name, leaf.key, *rows)}",
    )


def _of_array(block: Any, *rows: Any, model: Sealed, method: str, empty: Any) -> Any:
    return model.open().of_block(method, block, *rows) if block.shape[0] else empty


def _map_frame(model: Model, method: str, X: Any, *rows: Any) -> Any:
    model.check_columns(feature_names(X.columns), len(X.columns))
    answer = model.answer(method)
    pandas = sys.modules["pandas"]
    # pandas tells the type of strings by looking at them: where there are none, it has to be told
    labels = answer.empty if answer.labels is None else answer.labels
    dtype = pandas.Series(labels).dtype if answer.empty.ndim == 1 else None
    own = {"method": method, "empty": answer.empty, "columns": answer.columns, "dtype": dtype}
    return map_parts(partial(_of_frame, **own), model, X, method.replace("_", "-"), *rows)


def _of_frame(
    part: Any, model: Model, *rows: Any, method: str, empty: Any, columns: Any, dtype: Any
) -> Any:
    """Values as a Series or, with several columns, as a DataFrame; sparse ones as they are."""
    values = model.of_block(method, part, *rows) if len(part) else empty
    pandas, index = sys.modules["pandas"], part.index
    if values.ndim == 1:
        return pandas.Series(values, index=index, dtype=dtype)
    return values if columns is None else pandas.DataFrame(values, index=index, columns=columns)
