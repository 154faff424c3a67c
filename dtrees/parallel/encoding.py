"""From the partitions of a Dask collection to codes, in two passes over the user's graph.

    pass 1   partition ──▶ summary ──┐                        types, distinct values, categories,
             partition ──▶ summary ──┼──▶ merged ──▶ book     sample of rows by their numbers
             partition ──▶ summary ──┘                │
    pass 2   partition ──▶ codes  ◀───────────────────┤       a byte per cell, as a rule
             partition ──▶ codes  ◀───────────────────┘
    client   codes of all rows, the book

Raw values stay where the scheduler computes them. Summaries are merged there too, `FAN_IN` at a
time and in the order of the rows, and what comes to the client is the book: at most ``max_codes``
values a column, or its distinct values where every one has a code, and the categories. The samples
of wide tables are more than a small worker should hold; so columns are merged in stretches::

    summaries of 8 partitions ──▶ columns 0..24 ──▶ merged ──▶ cuts ──┐
                              ──▶ columns 25..49 ─▶ merged ──▶ cuts ──┼──▶ book

Book and codes are the same, bit for bit, as those of the table in memory (`CodeBook.fit_encode`),
because both are made by the same summaries and cuts (`dtrees.coding`), which merge in any grouping.

Codes that are too many for one place stay where they are made (`CodedPartitions`): trees are grown
from them there (`dtrees.parallel.partitioned`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.utils import format_bytes, parse_bytes

from dtrees.coding.codebook import SAMPLE_ROWS, CodeBook, checked_rules
from dtrees.coding.coded import WIDTHS, CodedMatrix, storage_for
from dtrees.coding.kinds import categorical_mask
from dtrees.coding.ordered import CutRules
from dtrees.coding.row_digest import digest_of_rows
from dtrees.coding.sampling import hash_bound
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import Table, read_table
from dtrees.exceptions import TableTooLargeError
from dtrees.parallel.carriers import Carrier, carried
from dtrees.parallel.ledger import Ledger
from dtrees.parallel.partitions import PartitionedTable

FAN_IN = 8  # summaries that a task merges
STORED_BYTES = 8  # of a cell that a sparse column stores
COPIES = 2  # of the codes, while they are put together
PART_BYTES = 4 * 2**20  # of codes that are sent from here
ROOM_SHARE = 0.3  # of the memory of a worker, that the codes of the whole table may take
PROCESS_BYTES = 200 * 2**20  # of a worker that holds nothing yet
KILLED_SHARE = 0.95  # of the memory of a worker: what takes more is killed by Dask
READING = 3  # times the bytes of a partition, that reading it takes
PARTITION_SHARE = 1 / 4  # of what a worker has free, that a partition had better take
STRETCH_SHARE = 1 / 16  # of what a worker has free, for the samples of columns that are merged
SAMPLES_SHARE = 1 / 4  # and for the samples of all columns; beyond, fewer rows are looked at,
FEWER = 1.25  # times the sample
SAMPLED_BYTES = 8  # of a value of a sample

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Summarized:
    """What pass 1 yields.

    Attributes
    ----------
    book : CodeBook or None
        None: too few rows were sampled.
    n_stored : int or None
        Cells that a sparse table stores; None for a dense one.
    """

    book: CodeBook | None
    n_stored: int | None


@dataclass(frozen=True, eq=False)
class PartFacts:
    """What is known of some rows once they are coded.

    Attributes
    ----------
    has_missing : bool (n_columns,)
        Columns with missing values.
    digest : int
        As `dtrees.coding.row_digest.digest_of_rows`.
    """

    has_missing: np.ndarray
    digest: int

    @classmethod
    def of(cls, coded: CodedMatrix, first_row: int) -> PartFacts:
        """Those of some rows, by the number of the first."""
        has_missing = [coded.has_missing(column) for column in range(coded.n_columns)]
        return cls(np.array(has_missing, dtype=bool), digest_of_rows(coded, first_row))

    @classmethod
    def joined(cls, parts: Sequence[PartFacts]) -> PartFacts:
        """Those of all rows of some parts."""
        has_missing = np.logical_or.reduce([part.has_missing for part in parts])
        return cls(has_missing, sum(part.digest for part in parts) % 2**64)


class CodedPartitions:
    """A coded table whose codes are not here: made when they are asked for, where it suits.

    Parameters
    ----------
    n_codes, n_ordered : int64 (n_columns,)
        Of the columns.
    lengths : sequence of int
        Rows of each part, at least one.
    n_bytes : int
        Of all codes, about.
    parts : callable () -> list
        A `CodedMatrix` each: a task of Dask, or the matrix itself. Called as often as need be.
    reason : str
        Why they are not brought together.

    Attributes
    ----------
    n_rows, n_columns : int
    sample : CodedMatrix
        A row without values, whose columns are those of the table.
    """

    def __init__(
        self,
        n_codes: np.ndarray,
        n_ordered: np.ndarray,
        lengths: Sequence[int],
        n_bytes: int,
        parts: Callable[[], list[Any]],
        reason: str,
    ) -> None:
        self.n_codes, self.n_ordered = n_codes, n_ordered
        self.lengths = tuple(lengths)
        self.n_bytes = n_bytes
        self.reason = reason
        self._parts = parts
        self._facts: PartFacts | None = None

    @classmethod
    def cut(cls, coded: CodedMatrix, reason: str) -> CodedPartitions:
        """A table that is here, in parts that can be sent."""
        per_row = max(1, coded.nbytes // max(1, coded.n_rows))
        step = max(1, PART_BYTES // per_row)
        starts = range(0, coded.n_rows, step)
        lengths = [min(step, coded.n_rows - start) for start in starts]

        def parts() -> list[Any]:
            ends = [min(start + step, coded.n_rows) for start in starts]
            return [
                coded.take(np.arange(start, end)) for start, end in zip(starts, ends, strict=True)
            ]

        return cls(coded.n_codes, coded.n_ordered, lengths, coded.nbytes, parts, reason)

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
        """A row of missing values."""
        nothing = [np.zeros(1, dtype=np.uint8)] * self.n_columns
        return CodedMatrix.from_columns(nothing, self.n_codes, self.n_ordered)

    @property
    def facts(self) -> PartFacts:
        """What is known of all rows, once a growth has seen them, or `learn_rows`."""
        assert self._facts is not None
        return self._facts

    @property
    def is_known(self) -> bool:
        """Whether somebody has seen the codes."""
        return self._facts is not None

    def learn(self, facts: Sequence[PartFacts]) -> None:
        """Take note of what was found out of all parts."""
        self._facts = PartFacts.joined(facts)

    def each(self) -> list[Any]:
        """The parts: a task of Dask each, or the codes themselves."""
        return self._parts()

    def groups(self, n_rows: int) -> list[tuple[list[Any], int]]:
        """Parts that lie one behind the other, of about so many rows, and how many they have."""
        found: list[tuple[list[Any], int]] = []
        for part, length in zip(self.each(), self.lengths, strict=True):
            if found and found[-1][1] + length <= n_rows:
                found[-1] = [*found[-1][0], part], found[-1][1] + length
            else:
                found.append(([part], length))
        return found


def are_known(coded: CodedMatrix | CodedPartitions) -> bool:
    """Whether all is known of the rows of a table that `learn_rows` would find out."""
    return isinstance(coded, CodedMatrix) or coded.is_known


def learn_rows(coded: CodedMatrix | CodedPartitions, ledger: Ledger | None = None) -> None:
    """Find out what is to be known of rows that are not here, unless it is known; a pass over them.

    Parameters
    ----------
    coded : CodedMatrix or CodedPartitions
    ledger : Ledger or None, default=None
        As for `dtrees.parallel.carriers.carried`.

    Raises
    ------
    ClusterError
        A Dask cluster is in force and cannot be used, or loses results too often.
    """
    if are_known(coded):
        return
    assert isinstance(coded, CodedPartitions)
    parts, ledger = coded, Ledger() if ledger is None else ledger

    def work(carrier: Carrier) -> list[PartFacts]:
        look = dask.delayed(PartFacts.of, pure=False)
        name = f"facts-{uuid4().hex}"
        starts = np.cumsum([0, *parts.lengths[:-1]]).tolist()
        tasks = [
            look(codes, first, dask_key_name=(name, i))
            for i, (codes, first) in enumerate(zip(parts.each(), starts, strict=True))
        ]
        return carrier.fetch(carrier.hold(tasks))

    parts.learn(carried([dask.delayed(None)], work, ledger))
    ledger.counts["passes"] += 1


def encode_partitions(
    table: PartitionedTable,
    *,
    categorical_features: Any = "from_dtype",
    max_codes: int | None = None,
    unseen: str = "missing",
    seed: int = 0,
    sample_rows: int = SAMPLE_ROWS,
    regime: str | None = None,
    ledger: Ledger | None = None,
) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
    """Learn the codes of a table whose partitions are computed by Dask, and code it.

    Parameters
    ----------
    table : PartitionedTable
    categorical_features, max_codes, unseen, seed, sample_rows
        As for `CodeBook.fit_encode`.
    regime : {"local", "replicated", "partitioned"} or None, default=None
        Where trees are to be grown. Codes stay in their partitions, not made yet, where it is
        "partitioned", or None and they are more than a worker, or this process, should hold.
    ledger : Ledger or None, default=None
        As for `dtrees.parallel.carriers.carried`.

    Returns
    -------
    book : CodeBook
    coded : CodedMatrix or CodedPartitions

    Raises
    ------
    ValueError, TypeError
        As `CodeBook.fit_encode`, and where a partition has not the rows that it should have.
    TableTooLargeError
        The codes do not fit this process.
    ClusterError
        A Dask cluster is in force and cannot be used.

    Notes
    -----
    The graph of the collection is computed twice; ``persist`` it where that is dear and there is
    room for it.
    """
    rules = checked_rules(max_codes, unseen, seed, sample_rows)
    mask = categorical_mask(categorical_features, table.n_columns, table.names)

    def work(carrier: Carrier) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
        return code_partitions(table, mask, rules, unseen, regime, carrier)

    return carried([table.collection], work, ledger)


def code_partitions(
    table: PartitionedTable,
    mask: np.ndarray | None,
    rules: CutRules,
    unseen: str,
    regime: str | None,
    carrier: Carrier,
) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
    """The two passes; the second one later, where codes stay in their partitions."""
    parts = table.parts()
    room = carrier.room()
    check_partitions(table, room)
    bound = _bound(table.shape, rules, room)
    held, found = _summarized(table, parts, mask, rules, unseen, bound, carrier)
    if found.book is None:
        logger.info("many values are missing: rows are sampled once more")
        held, found = _summarized(table, parts, mask, rules, unseen, None, carrier)
    book = found.book
    assert book is not None
    n_bytes = size_of_codes(book, table.n_rows, found.n_stored)
    logger.info(
        "%d x %d cells in %d partitions: %s of codes",
        *table.shape,
        len(parts),
        format_bytes(n_bytes),
    )
    encode = dask.delayed(partial(_encode, columns=(table.n_columns, table.names)), pure=False)

    def tasks(leaf: Any) -> list[Any]:
        name = f"encode-rows-{uuid4().hex}"
        return [
            encode(part, length, summarized=leaf, dask_key_name=(name, i))
            for i, (part, _, length) in enumerate(parts)
        ]

    reason = stays(regime, n_bytes, carrier)
    if reason is not None:
        lengths = [length for _, _, length in parts]
        again = dask.delayed(found, name=f"codebook-{uuid4().hex}", traverse=False)
        make = partial(tasks, again)
        return book, CodedPartitions(book.n_codes, book.n_ordered, lengths, n_bytes, make, reason)
    check_room(n_bytes, table.shape)
    return book, book.stack_parts(carrier.fetch(carrier.hold(tasks(carrier.leaf(held)))))


def check_partitions(table: PartitionedTable, room: int | None) -> None:
    """Raise when a partition is more than a worker can hold, before workers die of it.

    Parameters
    ----------
    table : PartitionedTable
    room : int or None
        Bytes of the smallest worker; None: there is no limit. Less than a process takes that holds
        nothing is no limit, either: nobody keeps to it.

    Raises
    ------
    ValueError
        Says how to cut it.
    """
    if room is None or room <= PROCESS_BYTES:
        return
    per_row = _least_bytes_of_row(table.collection)
    n_rows = int(table.lengths.max())
    free = KILLED_SHARE * room - PROCESS_BYTES
    if READING * n_rows * per_row <= free:
        return
    most = max(1, int(PARTITION_SHARE * free / per_row))
    is_array = hasattr(table.collection, "rechunk")
    n_parts = -(-table.n_rows // most)
    cut = f"X.rechunk({{0: {most}}})" if is_array else f"X.repartition(npartitions={n_parts})"
    raise ValueError(
        f"A partition of X, {n_rows} rows, takes {format_bytes(n_rows * per_row)}, which is more "
        f"than a worker can work on: the smallest one of this Dask cluster has "
        f"{format_bytes(room)} of memory, of which its process takes "
        f"{format_bytes(PROCESS_BYTES)}. Make smaller partitions where X is made, or by {cut}, or "
        "start workers with a larger memory_limit."
    )


def _free(room: int) -> int:
    """Bytes of a worker beside its process, an eighth at least."""
    return max(room - PROCESS_BYTES, room // 8)


def _least_bytes_of_row(collection: Any) -> int:
    """Bytes of a row of a partition, as far as they are known before it is there."""
    types = getattr(collection, "dtypes", None)
    if types is None:
        is_dense = isinstance(collection._meta, np.ndarray)
        return int(is_dense) * collection.dtype.itemsize * int(collection.shape[1])
    return sum(int(getattr(each, "itemsize", 1)) for each in types)


def stays(regime: str | None, n_bytes: int, carrier: Carrier) -> str | None:
    """Why codes stay in their partitions; None: they are brought together."""
    if regime == "partitioned":
        return "asked for"
    if regime is not None:
        return None
    room = carrier.room()
    if room is not None and n_bytes > ROOM_SHARE * max(0, room - PROCESS_BYTES):
        return (
            f"the codes, {format_bytes(n_bytes)}, are more than {ROOM_SHARE:.0%} of the memory of "
            f"a worker, {format_bytes(room)}, without the {format_bytes(PROCESS_BYTES)} of its "
            "process"
        )
    return None


def size_of_codes(book: CodeBook, n_rows: int, n_stored: int | None) -> int:
    """Bytes of a coded table, from what is known before it is coded."""
    if n_stored is not None:
        return STORED_BYTES * n_stored
    widths = np.array([np.dtype(width).itemsize for width in WIDTHS])
    return n_rows * int(widths[storage_for(book.n_codes)].sum())


def check_room(n_bytes: int, shape: tuple[int, int]) -> None:
    """Raise when codes of so many bytes cannot be gathered in this process.

    There is room for what the machine has free, or ``dask.config.get("dtrees.client-memory")``.

    Raises
    ------
    TableTooLargeError
    """
    given = dask.config.get("dtrees.client-memory", None)
    if given is None:
        import psutil
        from distributed.system import MEMORY_LIMIT

        mine = psutil.Process().memory_info().rss
        room = min(psutil.virtual_memory().available, MEMORY_LIMIT - mine)
    else:
        room = parse_bytes(given)
    if COPIES * n_bytes > room:
        raise TableTooLargeError(
            f"The codes of X, {shape[0]} x {shape[1]} cells, take {format_bytes(n_bytes)}, and "
            f"twice that while they are put together, but this process has {format_bytes(room)} "
            "left. Fit where there is more memory, on fewer rows or columns, or with a smaller "
            "max_codes: at most 255 codes take a byte per cell."
        )


def _summarized(
    table: PartitionedTable,
    parts: Sequence[tuple[Any, int, int]],
    mask: np.ndarray | None,
    rules: CutRules,
    unseen: str,
    bound: int | None,
    carrier: Carrier,
) -> tuple[Any, Summarized]:
    """Pass 1: the result as it is held, and in this process."""
    hexes = uuid4().hex
    columns = table.n_columns, table.names
    summarize = dask.delayed(
        partial(_summarize, mask=mask, rules=rules, bound=bound, columns=columns), pure=False
    )
    tasks = [
        summarize(part, first, length, dask_key_name=(f"summarize-rows-{hexes}", i))
        for i, (part, first, length) in enumerate(parts)
    ]
    stretches = _stretches(table.shape, rules, bound, carrier.room())
    merge = dask.delayed(_merge, pure=False)
    merged = [(tasks, stretch) for stretch in stretches]
    level = 0
    while len(merged[0][0]) > FAN_IN or (level == 0 and len(stretches) > 1):
        level += 1
        key = f"merge-summaries-{hexes}", level
        merged = [
            (
                [
                    merge(of[i : i + FAN_IN], stretch, dask_key_name=(*key, number, i))
                    for i in range(0, len(of), FAN_IN)
                ],
                None,
            )
            for number, (of, stretch) in enumerate(merged)
        ]
    if len(stretches) == 1:
        tasks = merged[0][0]
    else:
        settle = dask.delayed(_settle, pure=False)
        tasks = [
            settle(of, dask_key_name=(f"cut-columns-{hexes}", number))
            for number, (of, _) in enumerate(merged)
        ]
    conclude = dask.delayed(
        partial(_conclude, names=table.names, unseen=unseen, is_parted=len(stretches) > 1),
        pure=False,
    )
    (held,) = carrier.hold([conclude(tasks, dask_key_name=f"codebook-{hexes}")])
    (found,) = carrier.fetch([held])
    return held, found


def _read(block: Any, n_rows: int, n_columns: int, names: np.ndarray | None) -> Table:
    """A partition as a table, which is what it was expected to be."""
    table = read_table(block)
    if (table.n_rows, table.n_columns) != (n_rows, n_columns):
        raise ValueError(
            f"A partition of X has the shape {(table.n_rows, table.n_columns)}, where "
            f"{(n_rows, n_columns)} was expected: its graph does not give the same rows each time, "
            "or the chunks of an array are not what they say. Persist X, or call "
            "X.compute_chunk_sizes()."
        )
    if names is not None and table.names is not None and np.any(names != table.names):
        raise ValueError(
            f"A partition of X has the columns {table.names.tolist()[:5]}, but X has "
            f"{names.tolist()[:5]}. Give all partitions the same columns."
        )
    return replace(table, names=names)


def _summarize(
    block: Any,
    first_row: int,
    n_rows: int,
    *,
    mask: np.ndarray | None,
    rules: CutRules,
    bound: int | None,
    columns: tuple[int, np.ndarray | None],
) -> TableSummary:
    """Pass 1 of a partition."""
    table = _read(block, n_rows, *columns)
    return TableSummary.of(table, mask, rules=rules, first_row=first_row, bound=bound)


def _bound(shape: tuple[int, int], rules: CutRules, room: int | None) -> int | None:
    """Hashes of rows that are looked at, fewer where all of them are much for a worker."""
    n_rows, n_columns = shape
    n_bytes = SAMPLED_BYTES * min(n_rows, 2 * rules.sample_rows) * n_columns
    is_much = room is not None and n_bytes > SAMPLES_SHARE * _free(room)
    return hash_bound(rules.sample_rows, n_rows, FEWER if is_much else 2.0)


def _stretches(
    shape: tuple[int, int], rules: CutRules, bound: int | None, room: int | None
) -> list[tuple[int, int] | None]:
    """Columns that are merged together, so that a worker has room for their samples."""
    n_rows, n_columns = shape
    if room is None or rules.max_codes is None:
        return [None]
    n_sampled = min(n_rows, rules.sample_rows)
    most = int(max(1, STRETCH_SHARE * _free(room) // (SAMPLED_BYTES * n_sampled)))
    ends = [*range(0, n_columns, most), n_columns]
    return [None] if len(ends) <= 2 else list(pairwise(ends))


def _merge(
    summaries: Sequence[TableSummary | None], columns: tuple[int, int] | None
) -> TableSummary | None:
    """The summary of some rows, of a stretch of columns if one is given.

    Sparse tables go with the first stretch; None stands for the others.
    """
    if columns is None:
        found = [summary for summary in summaries if summary is not None]
        return TableSummary.merge_all(found) if len(found) == len(summaries) else None
    there = [summary for summary in summaries if summary is not None]
    if any(summary.sparse is not None for summary in there):
        return TableSummary.merge_all(there) if columns[0] == 0 else None
    return TableSummary.merge_all([summary.of_columns(*columns) for summary in there])


def _settle(summaries: Sequence[TableSummary | None]) -> TableSummary | None:
    """The summary of all rows, of a stretch of columns, as small as can be."""
    summary = _merge(summaries, None)
    return None if summary is None else summary.settled()


def _conclude(
    summaries: Sequence[TableSummary | None],
    *,
    names: np.ndarray | None,
    unseen: str,
    is_parted: bool,
) -> Summarized:
    """The end of pass 1."""
    there = [summary for summary in summaries if summary is not None]
    is_parted &= there[0].sparse is None
    summary = TableSummary.beside(there) if is_parted else TableSummary.merge_all(there)
    book = None
    if summary.has_enough:
        book = CodeBook.from_summary(summary, feature_names=names, unseen=unseen)
    n_stored = None if summary.sparse is None else int(summary.sparse.n_stored.sum())
    return Summarized(book, n_stored)


def _encode(
    block: Any, n_rows: int, columns: tuple[int, np.ndarray | None], summarized: Summarized
) -> CodedMatrix:
    """Pass 2 of a partition."""
    assert summarized.book is not None
    return summarized.book.encode_part(_read(block, n_rows, *columns))
