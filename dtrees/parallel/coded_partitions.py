"""Coded tables that stay where they are: in their partitions, and on a cluster between growths.

A search grows many times from one coded table, and so does a cross-validation whose training sides
count in several units. What is large is brought to the workers once::

    with tables_kept():            one scope for all growths; an inner one is part of it
        growth 1      codes ──▶ workers (or: partitions are coded there), targets ──▶
        growth 2                                                          targets ──▶
        ...
                      the end: nothing is left on the cluster

A growth without such a scope is its own. What is lost with workers is made again from the graph
that the scheduler has; after a restart of the cluster it is brought once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask
import numpy as np

from dtrees.coding.coded import SPARSE, WIDTHS, CodedMatrix, digest_of_rows, storage_for
from dtrees.parallel.client import release
from dtrees.parallel.executors import Executor, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.memory import even_stretches, gather_rows_of

if TYPE_CHECKING:
    from distributed import Client, Future


PART_BYTES = 4 * 2**20  # of codes that are sent from here
WHOLE_BYTES = 16 * 2**20  # of a table of few rows, which is not cut


@dataclass(frozen=True, eq=False)
class PartFacts:
    """What is known of some rows once they are coded."""

    has_missing: np.ndarray  # bool (n_columns,)
    digest: int  # as `dtrees.coding.coded.digest_of_rows`
    fill: np.ndarray  # int64 (n_columns,), code of cells that are not stored; dense columns: -1
    n_stored: int = 0  # cells of sparse columns

    @classmethod
    def of(cls, coded: CodedMatrix, first_row: int) -> PartFacts:
        """Those of some rows, by the number of the first."""
        is_sparse = coded.storage == SPARSE
        fill = np.full(coded.n_columns, -1, dtype=np.int64)
        fill[is_sparse] = coded.fill_code[coded.slot[is_sparse]]
        digest = digest_of_rows(coded, first_row)
        return cls(coded.missing_columns(), digest, fill, len(coded.sparse_rows))

    @classmethod
    def joined(cls, parts: Sequence[PartFacts]) -> PartFacts:
        """Those of all rows of some parts."""
        has_missing = np.logical_or.reduce([part.has_missing for part in parts])
        digest = sum(part.digest for part in parts) % 2**64
        return cls(has_missing, digest, parts[0].fill, sum(part.n_stored for part in parts))


@dataclass(eq=False)
class CodedPartitions:
    """A coded table whose codes are not here: made when they are asked for, where it suits."""

    n_codes: np.ndarray  # int64 (n_columns,)
    n_ordered: np.ndarray  # int64 (n_columns,)
    lengths: tuple[int, ...]  # rows of each partition, at least one
    n_bytes: int  # of all codes, about
    # a `CodedMatrix` each: a task of Dask, or the matrix itself; called as often as need be
    each: Callable[[], list[Any]]
    reason: str  # why they are not brought together
    collections: list[Any]  # of Dask, which say where the parts are made
    # `PartFacts` of all rows, once a growth has seen them, or `learn_rows`
    facts: Any = field(default=None, init=False, repr=False)
    regime: str = "partitioned"  # of the growth; "replicated": workers bring them together

    @classmethod
    def cut(cls, coded: CodedMatrix, reason: str, regime: str = "partitioned") -> CodedPartitions:
        """A table that is here, in partitions that can be sent."""
        per_row = max(1, coded.nbytes // max(1, coded.n_rows))
        step = max(1, PART_BYTES // per_row)
        if coded.n_rows <= gather_rows_of(coded.n_rows) and coded.nbytes <= WHOLE_BYTES:
            step = max(1, coded.n_rows)  # whose rows would come together again
        starts = range(0, coded.n_rows, step)
        lengths = tuple(min(step, coded.n_rows - start) for start in starts)

        def each() -> list[Any]:
            if len(lengths) == 1:
                return [coded]
            rows = zip(starts, lengths, strict=True)
            return list(coded.take_each(np.arange(start, start + n) for start, n in rows))

        anywhere = [dask.delayed(None)]
        columns = coded.n_codes, coded.n_ordered
        return cls(*columns, lengths, coded.nbytes, each, reason, anywhere, regime)

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(self.lengths)

    @property
    def n_columns(self) -> int:
        """Columns of the table."""
        return len(self.n_codes)

    @property
    def sample(self) -> CodedMatrix:
        """A row of missing values; of a growth that has seen the rows, also which are sparse."""
        is_sparse = np.zeros(self.n_columns, dtype=bool)
        if self.facts is not None:
            is_sparse = self.facts.fill >= 0
        storage = np.where(is_sparse, SPARSE, storage_for(self.n_codes)).astype(np.uint8)
        blocks = [
            np.zeros((1, np.count_nonzero(storage == store)), dtype=width, order="F")
            for store, width in enumerate(WIDTHS)
        ]
        sample = CodedMatrix.dense(1, self.n_codes, self.n_ordered, storage, blocks)
        if not is_sparse.any():
            return sample
        return replace(sample, fill_code=self.facts.fill[is_sparse].astype(np.uint32))

    def groups(self, n_rows: int, longest: int | None = None) -> list[tuple[list[Any], int]]:
        """Neighbouring partitions, of about so many rows, and how many rows they have.

        One of more than the `longest` is split, unless its rows would come together again.
        """
        found: list[tuple[list[Any], int]] = []
        most = self.n_rows if longest is None else max(longest, self.rows_together)
        cut, name, numbers = dask.delayed(cut_rows, pure=False), f"cut-rows-{uuid4().hex}", count()
        for part, length in zip(self.each(), self.lengths, strict=True):
            n_pieces = -(-length // n_rows) if length > most else 1
            for start, stop in even_stretches(length, n_pieces):
                some = slice(start, stop)
                piece = part
                if n_pieces > 1:
                    is_here = isinstance(part, CodedMatrix)
                    key = name, next(numbers)
                    piece = cut_rows(part, some) if is_here else cut(part, some, dask_key_name=key)
                if found and found[-1][1] + stop - start <= n_rows:
                    found[-1] = [*found[-1][0], piece], found[-1][1] + stop - start
                else:
                    found.append(([piece], stop - start))
        return found

    @property
    def rows_together(self) -> int:
        """Rows that one worker may as well have: those of a node that is gathered."""
        per_row = max(1, self.n_bytes // max(1, self.n_rows))
        return min(gather_rows_of(self.n_rows), WHOLE_BYTES // per_row)


def cut_rows(part: Any, rows: slice) -> Any:
    """Some rows of a partition: of codes, of a target, of an array, or of arrays by name."""
    if isinstance(part, dict):
        return {name: values[rows] for name, values in part.items()}
    if isinstance(part, np.ndarray):
        return part[rows]
    return part.take(np.arange(rows.start, rows.stop) if isinstance(part, CodedMatrix) else rows)


def learn_rows(parts: CodedPartitions, stats: FitStatistics | None = None) -> None:
    """Find out what is to be known of rows that are not here, unless it is known; a pass over them.

    Raises ClusterError where a Dask cluster is in force and cannot be used, or loses results too
    often.
    """
    if parts.facts is not None:
        return
    stats = FitStatistics() if stats is None else stats

    def work(executor: Executor) -> list[PartFacts]:
        look = dask.delayed(PartFacts.of, pure=False)
        name = f"facts-{uuid4().hex}"
        starts = np.cumsum([0, *parts.lengths[:-1]]).tolist()
        tasks = [
            look(codes, first, dask_key_name=(name, i))
            for i, (codes, first) in enumerate(zip(parts.each(), starts, strict=True))
        ]
        return executor.fetch(executor.hold(tasks))

    parts.facts = PartFacts.joined(run_with_retries(parts.collections, work, stats))
    stats.counts["passes"] += 1


@dataclass(eq=False)
class KeptTable:
    """A coded table, as growths have brought it to where they grow."""

    coded: CodedMatrix | CodedPartitions
    client: Client | None = None  # None: it stays in this process
    whole: Future | None = None  # all codes, of which every worker has a copy
    parts: CodedPartitions | None = None  # the table in partitions
    blocks: list[Any] = field(default_factory=list)  # codes of rows one behind the other, or tasks
    lengths: list[int] = field(default_factory=list)  # rows of each
    rows_of_block: int = 0  # that they were to have at most

    @property
    def is_lost(self) -> bool:
        """Whether a cluster has lost some of it."""
        brought = self.blocks if self.whole is None else [self.whole]
        states = () if self.client is None else (each.status for each in brought)
        return any(state not in ("pending", "finished") for state in states)

    def forget(self) -> None:
        """Bring it again the next time: what there was may be lost."""
        if self.client is not None:
            release(self.client, [*self.blocks, *([] if self.whole is None else [self.whole])])
        self.whole, self.blocks, self.lengths = None, [], []


_scope: ContextVar[dict[tuple[int, int], KeptTable] | None] = ContextVar(
    "kept_tables", default=None
)


@contextmanager
def tables_kept() -> Iterator[None]:
    """Growths in this context bring a table to a cluster once."""
    if _scope.get() is not None:
        yield
        return
    tables: dict[tuple[int, int], KeptTable] = {}
    token = _scope.set(tables)
    try:
        yield
    finally:
        _scope.reset(token)
        for table in tables.values():
            table.forget()


@contextmanager
def kept_table(coded: Any, client: Client | None = None) -> Iterator[KeptTable]:
    """The table of a growth; without a scope it is let go of when the growth is over."""
    tables = _scope.get()
    if tables is None:
        table = KeptTable(coded, client)
        try:
            yield table
        finally:
            table.forget()
        return
    table = tables.setdefault((id(coded), id(client)), KeptTable(coded, client))  # which holds both
    if table.is_lost:
        table.forget()
    yield table


def blocks_at_hand(coded: Any, client: Client | None) -> list[tuple[Any, int]]:
    """Blocks that growths of the scope have brought, and how many rows each has; or none."""
    table = (_scope.get() or {}).get((id(coded), id(client)))
    if table is None or table.is_lost:
        return []
    return list(zip(table.blocks, table.lengths, strict=True))
