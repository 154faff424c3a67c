"""From the partitions of a Dask collection to codes, in two passes over the user's graph.

    pass 1   partition ──▶ summary ──┐                        types, distinct values, categories,
             partition ──▶ summary ──┼──▶ merged ──▶ book     sample of rows by their numbers
             partition ──▶ summary ──┘                │
    pass 2   partition ──▶ codes  ◀───────────────────┤       a byte per cell, as a rule
             partition ──▶ codes  ◀───────────────────┘
    client   codes of all rows, the book

Raw values stay where the scheduler computes them. Summaries are merged there too, `FAN_IN` at a
time and in the order of the rows. The book comes to the client: categories, and at most
``max_bins`` values a column, or all where each has a code. The samples of wide tables are more than
a small worker should hold; so columns are merged in stretches::

    summaries of 8 partitions ──▶ columns 0..24 ──▶ merged ──▶ cuts ──┐
                              ──▶ columns 25..49 ─▶ merged ──▶ cuts ──┼──▶ book

Book and codes are the same, bit for bit, as those of the table in memory (`CodeBook.fit_encode`).
Both are made by the same summaries and cuts (`dtrees.coding`), which merge in any grouping.

Codes that are too many for one place stay where they are made (`CodedPartitions`): trees are grown
from them there (`dtrees.parallel.partitioned`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.utils import format_bytes

from dtrees.coding.codebook import SAMPLE_ROWS, CodeBook
from dtrees.coding.coded import WIDTHS, CodedMatrix, storage_for
from dtrees.coding.column_types import categorical_mask, with_finite_ends
from dtrees.coding.sampling import CutRules
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import Table, read_table
from dtrees.parallel.coded_partitions import CodedPartitions
from dtrees.parallel.executors import Executor, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.memory import (
    Least,
    check_growth,
    check_partitions,
    check_room,
    check_values,
    column_stretches,
    sample_bound,
    stored_cells,
)
from dtrees.parallel.partitions import PartitionedTable
from dtrees.parallel.regimes import choose_regime

FAN_IN = 8  # summaries that a task merges
EVERYTHING = 2**62  # bytes
STORED_BYTES = 8  # of a cell that a sparse column stores

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Coding:
    """How the columns of a table are coded; what tasks do with its partitions."""

    n_columns: int
    names: np.ndarray | None
    mask: np.ndarray | None  # which columns are categorical, as far as that is said
    rules: CutRules
    handle_unknown: str
    takes_infinities: bool

    def read(self, block: Any, n_rows: int) -> Table:
        """A partition as a table, which is what it was expected to be."""
        table = read_table(block)
        if (table.n_rows, table.n_columns) != (n_rows, self.n_columns):
            raise ValueError(
                f"A partition of X has the shape {(table.n_rows, table.n_columns)}, where "
                f"{(n_rows, self.n_columns)} was expected: its graph does not give the same rows "
                "each time, or the chunks of an array are not what they say. Persist X, or call "
                "X.compute_chunk_sizes()."
            )
        names = self.names
        if names is not None and table.names is not None and np.any(names != table.names):
            raise ValueError(
                f"A partition of X has the columns {table.names.tolist()[:5]}, but X has "
                f"{names.tolist()[:5]}. Give all partitions the same columns."
            )
        table = with_finite_ends(table) if self.takes_infinities else table
        return replace(table, names=names)

    def summarize(
        self,
        block: Any,
        first_row: int,
        n_rows: int,
        bound: int | None,
        weights: np.ndarray | None,
    ) -> TableSummary:
        """Pass 1 of a partition; hashes of the rows that are looked at are below `bound`."""
        table = self.read(block, n_rows)
        how: dict[str, Any] = {"rules": self.rules, "first_row": first_row, "bound": bound}
        return TableSummary.of(table, self.mask, **how, weights=weights)

    def conclude(
        self, summaries: Sequence[TableSummary | None], is_split: bool, room: int | None
    ) -> Summarized:
        """The end of pass 1; `is_split`: summaries are of stretches of columns."""
        there = [summary for summary in summaries if summary is not None]
        check_values(sum(map(getsizeof, there)), room)
        is_split &= there[0].sparse is None
        summary = TableSummary.beside(there) if is_split else TableSummary.merge_all(there)
        book = None
        if summary.has_enough:
            book = CodeBook.from_summary(
                summary,
                feature_names=self.names,
                handle_unknown=self.handle_unknown,
                takes_infinities=self.takes_infinities,
            )
        n_stored = None if summary.sparse is None else int(summary.sparse.n_stored.sum())
        return Summarized(book, n_stored)

    def encode(self, block: Any, n_rows: int, summarized: Summarized) -> CodedMatrix:
        """Pass 2 of a partition."""
        assert summarized.book is not None
        return summarized.book.encode_part(self.read(block, n_rows))


@dataclass(frozen=True, eq=False)
class Summarized:
    """What pass 1 yields."""

    book: CodeBook | None  # None: too few rows were sampled
    n_stored: int | None  # cells that a sparse table stores; None for a dense one


def encode_partitions(
    table: PartitionedTable,
    *,
    categorical_features: Any = "from_dtype",
    max_bins: int | None = None,
    handle_unknown: str = "missing",
    takes_infinities: bool = False,
    seed: int = 0,
    sample_rows: int = SAMPLE_ROWS,
    weights: Any = None,
    regime: str | None = None,
    stays: bool = False,
    least: Least | None = None,
    stats: FitStatistics | None = None,
) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
    """Learn the codes of a table whose partitions are computed by Dask, and code it.

    The graph of the collection is computed twice; ``persist`` it where that is dear and there is
    room for it. Arguments are as for `CodeBook.fit_encode`, `regime` as for `choose_regime`: codes
    stay in their partitions, not made yet, where that is "partitioned", and with `stays` on any
    cluster. `least` is as for `check_growth`; `stats` are as for `run_with_retries`.

    Raises ValueError and TypeError as `CodeBook.fit_encode`, and where a partition has not the rows
    that it should have; TableTooLargeError where the codes do not fit this process, or a growth
    does not fit the workers, before anything is read if it can be known; and
    ClusterError where a Dask cluster is in force and cannot be used.
    """
    rules = CutRules(max_bins=max_bins, sample_rows=sample_rows, seed=seed)
    mask = categorical_mask(categorical_features, table.n_columns, table.names)
    how = handle_unknown, takes_infinities
    coding = Coding(table.n_columns, table.names, mask, rules, *how)
    code = partial(
        code_partitions, table, coding, regime, weights=weights, stays=stays, least=least
    )
    return run_with_retries([table.collection], code, stats)


def kept_regimes(stays: bool) -> tuple[str, ...]:
    """Regimes in which codes stay in their partitions; `stays` as for `encode_partitions`."""
    return ("partitioned", "replicated") if stays else ("partitioned",)


def check_table(
    table: PartitionedTable,
    *,
    regime: str | None,
    stays: bool,
    least: Least | None,
    stats: FitStatistics | None = None,
) -> None:
    """Raise ValueError and TableTooLargeError as `encode_partitions` before anything is read."""
    check = partial(_check_table, table, regime, stays, least)
    run_with_retries([table.collection], check, stats)


def _check_table(
    table: PartitionedTable,
    regime: str | None,
    stays: bool,
    least: Least | None,
    executor: Executor,
) -> None:
    room = executor.room()
    check_partitions(table, room)
    n_cells = stored_cells(table.collection, table.n_rows)
    if choose_regime(regime, n_bytes=EVERYTHING, room=room).regime not in kept_regimes(stays):
        check_room(n_cells, table.shape)  # the codes will come here
    elif least and choose_regime(regime, n_bytes=n_cells, room=room).regime == "partitioned":
        check_growth(least, table.shape, n_cells, None, executor.machines())


def code_partitions(
    table: PartitionedTable,
    coding: Coding,
    regime: str | None,
    executor: Executor,
    weights: Any = None,
    stays: bool = False,
    least: Least | None = None,
) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
    """The two passes; the second one later, where codes stay in their partitions."""
    parts = table.parts()
    if isinstance(weights, np.ndarray):
        weights = [weights[first : first + length] for _, first, length in parts]
    room, kept = executor.room(), kept_regimes(stays)
    _check_table(table, regime, stays, least, executor)
    bound = sample_bound(table.shape, coding.rules, room)
    stretches = [(0, table.n_columns)]
    if room is not None and coding.rules.max_bins is not None:
        stretches = column_stretches(table.shape, coding.rules, room)
    held, found = _summarized(parts, coding, weights, bound, stretches, executor)
    if found.book is None:
        logger.info("many values are missing: rows are sampled once more")
        held, found = _summarized(parts, coding, weights, None, stretches, executor)
    book = found.book
    assert book is not None
    n_bytes = size_of_codes(book.n_codes, table.n_rows, found.n_stored)
    logger.info(
        "%d x %d cells in %d partitions: %s of codes",
        *table.shape,
        len(parts),
        format_bytes(n_bytes),
    )
    encode = dask.delayed(coding.encode, pure=False)

    def tasks(leaf: Any) -> list[Any]:
        name = f"encode-rows-{uuid4().hex}"
        return [
            encode(part, length, summarized=leaf, dask_key_name=(name, i))
            for i, (part, _, length) in enumerate(parts)
        ]

    choice = choose_regime(regime, n_bytes=n_bytes, room=room)
    if least and choice.regime == "partitioned":
        n_codes = int(book.n_codes.sum()) if found.n_stored is None else 0
        check_growth(least, table.shape, n_bytes, n_codes, executor.machines())
    if choice.regime in kept:
        lengths = tuple(length for _, _, length in parts)
        again = dask.delayed(found, name=f"codebook-{uuid4().hex}", traverse=False)
        make = partial(tasks, again)
        return book, CodedPartitions(
            book.n_codes,
            book.n_ordered,
            lengths,
            n_bytes,
            make,
            choice.reason,
            [table.collection],
            choice.regime,
        )
    check_room(n_bytes, table.shape)
    return book, book.stack_parts(executor.fetch(executor.hold(tasks(executor.as_argument(held)))))


def size_of_codes(n_codes: np.ndarray, n_rows: int, n_stored: int | None = None) -> int:
    """Bytes of a coded table, from what is known before it is coded; `n_stored`: it is sparse."""
    if n_stored is not None:
        return STORED_BYTES * n_stored
    widths = np.array([np.dtype(width).itemsize for width in WIDTHS])
    return n_rows * int(widths[storage_for(n_codes)].sum())


def _summarized(
    parts: Sequence[tuple[Any, int, int]],
    coding: Coding,
    weights: Sequence[Any] | None,
    bound: int | None,
    stretches: Sequence[tuple[int, int]],
    executor: Executor,
) -> tuple[Any, Summarized]:
    """Pass 1: the result as it is held, and in this process; `stretches` are of columns."""
    hexes = uuid4().hex
    summarize = dask.delayed(coding.summarize, pure=False)
    tasks = [
        summarize(
            part,
            first,
            length,
            bound,
            None if weights is None else weights[i],
            dask_key_name=(f"summarize-rows-{hexes}", i),
        )
        for i, (part, first, length) in enumerate(parts)
    ]
    room = executor.room() if coding.rules.max_bins is None else None
    merge = dask.delayed(_merge, pure=False)
    settle = dask.delayed(_settle, pure=False)
    is_split = len(stretches) > 1
    summaries = []
    for number, stretch in enumerate(stretches):
        merged, columns, level = tasks, stretch if is_split else None, 0
        while len(merged) > FAN_IN or columns is not None:
            level += 1
            key = f"merge-summaries-{hexes}", level, number
            merged = [
                merge(merged[i : i + FAN_IN], columns, room, dask_key_name=(*key, i))
                for i in range(0, len(merged), FAN_IN)
            ]
            columns = None
        if is_split:
            merged = [settle(merged, dask_key_name=(f"cut-columns-{hexes}", number))]
        summaries += merged
    conclude = dask.delayed(coding.conclude, pure=False)
    (held,) = executor.hold(
        [conclude(summaries, is_split, room, dask_key_name=f"codebook-{hexes}")]
    )
    (found,) = executor.fetch([held])
    return held, found


def _merge(
    summaries: Sequence[TableSummary | None],
    columns: tuple[int, int] | None,
    room: int | None = None,
) -> TableSummary | None:
    """The summary of some rows, of a stretch of columns if one is given.

    Sparse tables go with the first stretch; None stands for the others. Raises TableTooLargeError.
    """
    there = [summary for summary in summaries if summary is not None]
    check_values(sum(map(getsizeof, there)), room)
    if columns is None:
        return TableSummary.merge_all(there) if len(there) == len(summaries) else None
    if any(summary.sparse is not None for summary in there):
        return TableSummary.merge_all(there) if columns[0] == 0 else None
    return TableSummary.merge_all([summary.of_columns(*columns) for summary in there])


def _settle(summaries: Sequence[TableSummary | None]) -> TableSummary | None:
    """The summary of all rows, of a stretch of columns, as small as can be."""
    summary = _merge(summaries, None)
    return None if summary is None else summary.settled()
