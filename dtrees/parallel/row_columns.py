"""What belongs to the rows of a Dask collection and stays where it is: y, weights and the like.

Where the codes of a table stay on the workers, so does whatever has a value for each row. The
client knows no more of it than what parts say of themselves: classes, ranges, sums. From these it
finds what all rows have in common (`dtrees.coding.target.TargetUnits`). Each block then makes its
own from the user's graph::

    partitions of X      |    0..99    |       100..249       |
    those of y           |  0..79  |   80..159   |  160..249  |
    pieces               |  0..79 80..99 | 100..159  160..249 |

    workers   pieces ──▶ classes, sums ──┐          pieces ──▶ target of a partition ──▶ block
    client                               └──▶ units ──┘

It does not matter how these columns are cut. One that is in memory here is sent in pieces. A
`LazyColumn` is one that comes here if somebody looks at it: what need not look keeps it where it
is, and all else finds an array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import Delayed

from dtrees.coding.tables import row_values
from dtrees.parallel.client import limits_of, scheduler_of
from dtrees.parallel.executors import Executor, computed, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.lazy_collections import is_lazy
from dtrees.parallel.partitions import (
    PartitionedTable,
    admitted,
    check_lengths,
    counts_of_rows,
    delayed_parts,
    known_lengths,
)
from dtrees.parallel.regimes import choose_regime

CODE_BYTES = 4  # of a cell, at most
FEW_ROWS = 2**17  # whose columns are fetched: a megabyte each, and faster than many questions
OFTEN = 4  # times as many are few where each of several models asks

T = TypeVar("T")


def admitted_where_they_are(
    X: Any,
    columns: Mapping[str, Any],
    stats: FitStatistics,
    regime: str | None,
    regimes: Collection[str] = ("partitioned",),
    *,
    often: bool = False,
) -> tuple[Any, ...]:
    """As `admitted`; but collections stay what they are where the codes of `X` may stay, too.

    `regime` is what the estimator asks for, and `regimes` are those in which codes stay. The first
    of the columns is a target: where that is in memory, so are the others. `often`: several models
    will ask.
    """
    y = next(iter(columns.values()))
    lazy = [value for value in columns.values() if is_lazy(value)]
    are_columns = all(
        not isinstance(each, Delayed) and getattr(each, "ndim", None) in (1, 2) for each in lazy
    )
    may_stay = partial(_may_stay, regime=regime, regimes=regimes)
    if not (is_lazy(X) and is_lazy(y) and are_columns and y.ndim == 1 and may_stay(X)):
        return admitted(X, columns, stats)
    (table,) = admitted(X, {}, stats)
    is_long = table.n_rows > (OFTEN if often else 1) * FEW_ROWS
    if is_long and may_stay(table.collection, CODE_BYTES * table.n_rows * table.n_columns):
        check_lengths(table.n_rows, columns)
        return (
            table,
            *(value if is_lazy(value) else row_values(value) for value in columns.values()),
        )
    return (table, *admitted(None, columns, stats)[1:])


def _may_stay(
    X: Any, n_bytes: int = 2**62, *, regime: str | None, regimes: Collection[str]
) -> bool:
    """Whether codes of so many bytes stay on the workers of a cluster."""
    _, client = scheduler_of([X])
    if client is None:
        return False
    room = min(filter(None, limits_of(client).values()), default=None)
    choice = choose_regime(regime, n_bytes=n_bytes, room=room)
    return choice.regime in regimes and choice.on_cluster


@dataclass(eq=False, repr=False)
class LazyColumn:
    """A value for each row of a table, which comes here when somebody looks at it.

    Attributes
    ----------
    collection : Dask collection, or callable
        A callable makes tasks of stretches of the values, and tells how many each has.
    n_rows : int
        Of the table; whoever reads the column sees whether it has as many.
    stats : FitStatistics
        Told of the phase "reading".
    keeps : bool, default=False
        Whether values are made once, and stay on the workers as long as the column does.
    """

    collection: Any
    n_rows: int
    stats: FitStatistics
    keeps: bool = False
    _here: Any = field(default=None, init=False)
    _kept: Any = field(default=None, init=False)

    ndim = 1

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (self.n_rows,)

    def __len__(self) -> int:
        return self.n_rows

    def here(self) -> Any:
        """The values in memory, as `admitted` makes them; they stay here."""
        if self._here is None and callable(self.collection):
            with self.stats.phase("reading"):
                self._here = np.concatenate(computed(*(task for task, _ in self.there())))
        elif self._here is None:
            _, self._here = admitted(None, {"column": self.there()}, self.stats)
        return self._here

    def there(self) -> Any:
        """The collection; values that are kept, made again where a restart has taken them."""
        if self._kept is None or _are_lost(self._kept):
            made = self.collection() if callable(self.collection) else self.collection
            return self.keep(made) if self.keeps else made
        return self._kept

    def keep(self, found: Any) -> Any:
        """Let the workers have the values of what `collection` is, or makes."""
        tasks = [task for task, _ in found] if isinstance(found, list) else found
        _, client = scheduler_of(tasks if isinstance(found, list) else [tasks])
        if client is not None:
            tasks = client.persist(tasks)
            is_list = isinstance(found, list)
            found = [(a, n) for a, (_, n) in zip(tasks, found, strict=True)] if is_list else tasks
            self._kept = found
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.here(), dtype=dtype, copy=copy)

    def __getitem__(self, rows: Any) -> np.ndarray:
        found: np.ndarray = np.asarray(self)[rows]
        return found


def _are_lost(kept: Any) -> bool:
    """Whether a restart of the workers has taken results, and what makes them."""
    from distributed import futures_of

    return any(future.cancelled() for future in futures_of(kept))


Pieces = list[tuple[Any, int, int]]  # parts of a column, of each the first row and the last one


@dataclass(frozen=True, eq=False)
class RowColumns:
    """Values of the rows of a table, cut as its partitions are."""

    table: PartitionedTable
    # of each partition that has rows, and each column; none where there is no such column
    pieces: list[list[Pieces]]
    firsts: list[int]  # number of the first row of each of these partitions
    # finds the pieces again, which are elsewhere after a restart
    cut: Callable[[], list[list[Pieces]]]
    # makes others of the columns of a partition; None: they are as given
    change: Callable[..., Sequence[Any]] | None = None

    @classmethod
    def of(
        cls, table: PartitionedTable, columns: Mapping[str, Any], stats: FitStatistics
    ) -> RowColumns:
        """Those of a table: collections, lazy or in memory; None: there is no such column.

        ValueError: one has another length than the table.
        """

        def counted(executor: Executor) -> list[list[int]]:
            tasks = [counts_of_rows(each) for each in uncounted.values()]
            found = iter(executor.fetch(executor.hold([one for of in tasks for one in of])))
            return [[next(found) for _ in of] for of in tasks]

        def there(value: Any) -> Any:
            return value.there() if isinstance(value, LazyColumn) else value

        def whole_rows(value: Any) -> Any:
            is_cut = getattr(value, "numblocks", ())[1:] > (1,)
            return value.rechunk({1: -1}) if is_cut else value

        made = {name: whole_rows(there(value)) for name, value in columns.items()}
        uncounted = {
            name: value
            for name, value in made.items()
            if is_lazy(value) and known_lengths(value) is None
        }
        found = run_with_retries([*uncounted.values()], counted, stats) if uncounted else []
        counts = dict(zip(uncounted, found, strict=True))
        rows = [(first, first + length) for _, first, length in table.parts()]

        def pieces_of(name: str, value: Any) -> list[Pieces]:
            """The pieces of a column in each partition."""
            if value is None:
                return [[] for _ in rows]
            if isinstance(value, list):  # of a `LazyColumn`
                parts, lengths = map(list, zip(*value, strict=True))
            elif is_lazy(value):
                known = known_lengths(value)
                lengths = counts[name] if known is None else known.tolist()
                parts = delayed_parts(value)
            else:
                parts = [np.asarray(value)]
                lengths = [len(parts[0])]
            check_lengths(table.n_rows, {name: range(sum(lengths))})
            return _cut(parts, np.cumsum(lengths), rows)

        cuts: dict[str, tuple[Any, list[Pieces]]] = {}

        def cut() -> list[list[Pieces]]:
            for name, given in columns.items():
                value = there(given)  # another one after a restart
                if name not in cuts or cuts[name][0] is not value:
                    cuts[name] = value, pieces_of(name, whole_rows(value))
            return list(map(list, zip(*(pieces for _, pieces in cuts.values()), strict=True)))

        return cls(table, cut(), [first for first, _ in rows], cut)

    def each(
        self, function: Callable[..., Any], name: str, more: Sequence[Any] | None = None
    ) -> list[Any]:
        """What a function makes of the columns of each partition, and the number of its first row.

        Tasks of Dask, made anew with each call; None in place of a column that there is not. Those
        of partitions get one `more` argument each, if there are such.
        """
        make, common = dask.delayed(_of_pieces, pure=False), _sent_once((function, self.change))
        key = f"{name}-{uuid4().hex}"
        given = [self.cut(), self.firsts, *([] if more is None else [more])]
        rows = zip(*given, strict=True)
        return [make(common, *own, dask_key_name=(key, i)) for i, own in enumerate(rows)]

    def column(
        self,
        function: Callable[..., Any],
        name: str,
        stats: FitStatistics,
        more: Sequence[Any] | None = None,
    ) -> LazyColumn:
        """What a function makes of the columns of each partition, as `each`, in one column."""
        return self._as_column(partial(self.each, function, name, more), stats)

    def column_of_all(
        self, function: Callable[..., tuple[Any, Any]], name: str, stats: FitStatistics
    ) -> tuple[LazyColumn | None, Any]:
        """A column that a function makes on one worker, which has all columns for a moment.

        `function` gets them, and returns values, or None, and what else is to be told; where it
        fails, that is the error. The values go back to the partitions, and stay there as long as
        the column does.
        """
        make, cut = (dask.delayed(each, pure=False) for each in (_of_all, _cut_out))
        rows = [(first, first + length) for _, first, length in self.table.parts()]

        def tasks() -> list[Any]:
            key = f"{name}-{uuid4().hex}"
            parts = self.each(as_they_are, "rows-of-part")
            made = make(function, parts, dask_key_name=f"all-{key}")
            told = dask.delayed(_told, pure=False)(made, dask_key_name=f"told-{key}")
            own = [cut(made, *each, dask_key_name=(key, i)) for i, each in enumerate(rows)]
            return [made, told, *own]

        def work(executor: Executor) -> tuple[LazyColumn | None, Any]:
            made, told, *parts = tasks()
            held = executor.hold([made, told])
            ((found, is_there),) = executor.fetch(held[1:])
            if not is_there:
                return None, found
            column = self._as_column(lambda: tasks()[2:], stats, keeps=True)
            column.keep(
                [(part, last - first) for part, (first, last) in zip(parts, rows, strict=True)]
            )
            return column, found

        return run_with_retries([self.table.collection], work, stats)

    def _as_column(
        self, tasks: Callable[[], list[Any]], stats: FitStatistics, keeps: bool = False
    ) -> LazyColumn:
        """Tasks that make a value for each row of the partitions, as a column."""
        lengths = [length for _, _, length in self.table.parts()]

        def made() -> list[tuple[Any, int]]:
            return list(zip(tasks(), lengths, strict=True))

        return LazyColumn(made, self.table.n_rows, stats, keeps)

    def asked(
        self,
        function: Callable[..., Any],
        work: Callable[[Callable[..., list[Any]]], T],
        stats: FitStatistics,
        more: Sequence[Any] | None = None,
    ) -> T:
        """Do work that asks parts, which are what a function makes of the columns, as `each`.

        `work` gets a function of a function of a part, and of its other arguments: what that says
        of each part, which is small. Or what `join` makes of it, on one worker: a list of that, and
        what parts say may be long. Raises what tasks raise, and ClusterError as `run_with_retries`.
        """

        def in_session(executor: Executor) -> T:
            held = executor.hold(self.each(function, "rows-of-part", more))

            def ask(
                call: Callable[..., Any], *arguments: Any, join: Callable[..., Any] | None = None
            ) -> list[Any]:
                if join is None:
                    return executor.asked("ask-rows", held, partial(_said, call, arguments))
                make, own = dask.delayed(_said, pure=False), (call, _sent_once(arguments))
                parts, name = map(executor.as_argument, held), f"ask-rows-{uuid4().hex}"
                told = [make(*own, each, dask_key_name=(name, i)) for i, each in enumerate(parts)]
                joined = dask.delayed(join, pure=False)(told, dask_key_name=f"join-{name}")
                return executor.fetch(executor.hold([joined]))

            with executor.span():
                return work(ask)

        return run_with_retries([self.table.collection], in_session, stats)


def _cut(parts: Sequence[Any], ends: np.ndarray, rows: Sequence[tuple[int, int]]) -> list[Pieces]:
    """The pieces of some rows, first to last, of parts of a column that end at these rows."""
    found = []
    for first, last in rows:
        pieces: Pieces = []
        place, at = int(np.searchsorted(ends, first, side="right")), first
        while at < last:
            start = int(ends[place - 1]) if place > 0 else 0
            stop = min(int(ends[place]), last)
            part = parts[place]
            if isinstance(part, np.ndarray):  # what is sent is the piece
                pieces.append((part[at:stop], 0, stop - at))
            elif stop > at:
                pieces.append((part, at - start, stop - start))
            place, at = place + 1, stop
        found.append(pieces)
    return found


def _of_pieces(
    how: tuple[Callable[..., Any], Callable[..., Sequence[Any]] | None],
    columns: Sequence[Pieces],
    *others: Any,
) -> Any:
    function, change = how
    found = map(_joined, columns)
    return function(*(found if change is None else change(*found)), *others)


def as_they_are(*columns: Any) -> tuple[Any, ...]:
    """The columns of a partition, without the number of its first row."""
    return columns[:-1]


def _of_all(
    function: Callable[..., tuple[Any, Any]], parts: Sequence[tuple[Any, ...]]
) -> tuple[Any, Any]:
    """What a function makes of the columns of all rows; no task fails, which Dask would log."""
    columns = [
        None if column[0] is None else np.concatenate([np.asarray(each) for each in column])
        for column in zip(*parts, strict=True)
    ]
    try:
        return function(*columns)
    except Exception as error:
        return None, error


def _cut_out(made: tuple[Any, Any], first: int, last: int) -> Any:
    return made[0][first:last]


def _told(made: tuple[Any, Any]) -> tuple[Any, bool]:
    """What is told beside the values, and whether there are values."""
    return made[1], made[0] is not None


def _joined(pieces: Pieces) -> Any:
    """A column from its pieces; None: there is none."""
    found = []
    for part, first, last in pieces:
        if len(part) < last:
            raise ValueError(f"A part of a column has {len(part)} rows, of which {last} are asked.")
        if len(part) > last - first:
            part = part.iloc[first:last] if hasattr(part, "iloc") else part[first:last]
        found.append(row_values(part))
    if len(found) < 2:
        return found[0] if found else None
    if all(hasattr(each, "iloc") for each in found):  # nullable ones are no arrays of their type
        return sys.modules["pandas"].concat(found)
    return np.concatenate([np.asarray(each) for each in found])


def _sent_once(value: Any) -> Any:
    """A value, such as a function that knows much, as an argument of many tasks."""
    return dask.delayed(value, name=f"sent-once-{uuid4().hex}", traverse=False)


def _said(call: Callable[..., Any], arguments: Sequence[Any], part: Any) -> Any:
    return call(part, *arguments)
