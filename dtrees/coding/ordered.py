"""Ordered columns: numbers to codes, a tile of columns at a time.

A table of numbers is cut into *tiles*, a few columns each: a tile is copied to contiguous columns
(the only copy of the values that is ever made), ranked or cut, and forgotten. Peak memory above
the table and the codes is one tile and the sort's scratch per thread.

While columns are coded nobody knows how wide their codes will be. `CodeStore` sets address space
aside for every width, column p at place ``p * n_rows`` of each; pages that are never written take
no memory. When all columns are done they move together and what is left over is given back.

    u8    | col 0 |       | col 2 |        ->   | col 0 | col 2 |
    u32   |       | col 1 |       |        ->   | col 1 |

Distinct values are kept as float32 where the table has float32, otherwise as float64.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from dtrees.coding import _encode
from dtrees.coding.coded import SPARSE, U8, U16, U32, WIDTHS, CodedMatrix, storage_for
from dtrees.coding.sampling import bottom, quantile_codes, row_hashes
from dtrees.coding.tables import Numbers, Table
from dtrees.typing import Runner, serial

NARROW_TYPES = ("float32", "float16", "int8", "uint8", "int16", "uint16", "bool")
TILE_BYTES = 32 * 2**20
TILE_COLUMNS = 16
TASKS = 8
ORDER_BYTES = 64 * 2**20
LARGE_ROOM = 4 * 2**20  # bytes from which on numpy asks for huge pages
SMALL_TABLE = 50_000  # cells below which tasks cost more than they save


@dataclass(frozen=True, kw_only=True)
class CutRules:
    """How many codes, and which rows the cuts are read from.

    Parameters
    ----------
    max_bins : int or None, default=None
        None: one code per distinct value, always.
    sample_rows : int, default=200_000
    seed : int, default=0
    """

    max_bins: int | None = None
    sample_rows: int = 200_000
    seed: int = 0


class Rooms:
    """Memory that the tasks of a coding use one after the other, and that is gone with it.

    What a task gives back to the C library stays with that, for every thread as much as it used.
    """

    def __init__(self) -> None:
        self._spare: list[np.ndarray] = []

    @contextmanager
    def lend(self, n_bytes: int) -> Iterator[np.ndarray]:
        """At least so many bytes, uint8, for the length of a task."""
        try:
            room = self._spare.pop()
        except IndexError:
            room = np.empty(0, dtype=np.uint8)
        if len(room) < n_bytes:
            room = mapped(n_bytes)
        try:
            yield room
        finally:
            self._spare.append(room)


@dataclass(eq=False)
class CodeStore:
    """Room for the codes of columns whose widths are not known yet.

    Attributes
    ----------
    n_rows, n_columns : int
    blocks : uint8, uint16, uint32 (n_columns * n_rows,)
        Column p at ``p * n_rows``; empty where no column can need the width.
    order : uint32 (n_columns * n_rows,)
        Rows by (code, row), of columns of more than 65,535 codes; empty for tables for which it
        would take more than ``ORDER_BYTES``: growth then sorts the codes, for a few per cent of
        its time.
    n_codes, n_ordered : int64 (n_columns,)
    status : uint8 (n_columns,)
    cut : bool (n_columns,)
        Columns coded by cuts instead of by their distinct values.
    tiles, scratch : Rooms
        Where tiles are loaded and ranked.
    """

    n_rows: int
    n_columns: int
    largest: int
    with_order: bool = True
    blocks: list[np.ndarray] = field(init=False)
    order: np.ndarray = field(init=False)
    n_codes: np.ndarray = field(init=False)
    n_ordered: np.ndarray = field(init=False)
    status: np.ndarray = field(init=False)
    cut: np.ndarray = field(init=False)
    tiles: Rooms = field(init=False)
    scratch: Rooms = field(init=False)

    def __post_init__(self) -> None:
        cells = self.n_rows * self.n_columns
        needed = (True, self.largest > 255, self.largest > 65_535)
        self.blocks = [
            np.empty(cells if need else 0, dtype=width)
            for need, width in zip(needed, WIDTHS, strict=True)
        ]
        ordered = needed[2] and self.with_order and 4 * cells <= ORDER_BYTES
        self.order = np.empty(cells if ordered else 0, dtype=np.uint32)
        self.n_codes = np.zeros(self.n_columns, dtype=np.int64)
        self.n_ordered = np.zeros(self.n_columns, dtype=np.int64)
        self.status = np.zeros(self.n_columns, dtype=np.uint8)
        self.cut = np.zeros(self.n_columns, dtype=bool)
        self.tiles, self.scratch = Rooms(), Rooms()

    def place(self, column: int, largest: Any) -> np.ndarray:
        """The codes of a column whose codes go up to ``largest``: a view to read or write."""
        at = column * self.n_rows
        return self.blocks[int(storage_for(np.int64(largest)))][at : at + self.n_rows]

    def finish(self, largest: np.ndarray | None = None, coded: np.ndarray | None = None):
        """The coded matrix; the store must not be used any more.

        Parameters
        ----------
        largest : int64 (n_columns,), default=n_codes
            Greatest code that was allowed for when a column was written.
        coded : bool (n_columns,), default=all
            Columns that were written at all; the others take no memory.
        """
        largest = self.n_codes if largest is None else largest
        storage = storage_for(largest)
        if coded is not None:
            storage[~coded] = SPARSE
        shaped = []
        order32 = None
        for store in (U8, U16, U32):
            members = np.flatnonzero(storage == store)
            block = self.blocks[store]
            shaped.append(self._together(block, members))
            if store == U32 and len(members) and len(self.order):
                order32 = self._together(self.order, members)
        self.blocks = []
        return CodedMatrix.dense(
            self.n_rows, self.n_codes, self.n_ordered, storage, shaped, order32
        )

    def _together(self, block: np.ndarray, members: np.ndarray) -> np.ndarray:
        """The columns ``members`` of a block, moved to its front, as (n_rows, k), Fortran."""
        _encode.compact(block, members, self.n_rows)
        block.resize(len(members) * self.n_rows, refcheck=False)
        return block.reshape((self.n_rows, len(members)), order="F")


@dataclass(frozen=True, eq=False)
class OrderedValues:
    """Least and greatest value of every ordered code of some columns.

    Attributes
    ----------
    columns : int64 (k,)
    n_codes : int64 (k,)
    low, high : float (sum of n_codes,)
        One behind the other; the same array when every column is exact.
    exact : bool (k,)
    """

    columns: np.ndarray
    n_codes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exact: np.ndarray


def tile_type(dtype: np.dtype) -> type:
    """Float32 for types that it holds exactly, otherwise float64."""
    return np.float32 if dtype.name in NARROW_TYPES else np.float64


def tile_bytes(values: np.ndarray) -> int:
    """Size of the columns once they are loaded."""
    return values.size * np.dtype(tile_type(values.dtype)).itemsize


def load(values: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
    """Columns as contiguous rows of float32 or float64, -0.0 as 0.0: (k, n_rows).

    room : uint8 (at least tile_bytes(values),), where they go; None: to memory of their own.
    """
    if room is None:
        room = np.empty(tile_bytes(values), dtype=np.uint8)
    tile: np.ndarray = (
        room[: tile_bytes(values)].view(tile_type(values.dtype)).reshape(values.shape[::-1])
    )
    if values.dtype == bool:
        values = values.view(np.uint8)
    elif values.dtype.name == "float16" or values.dtype.itemsize > 8:  # of any byte order
        values = values.astype(tile.dtype)
    elif not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    _encode.load_columns(np.require(values, requirements="A"), tile)
    return tile


class Sample:
    """The rows that cuts are read from; found at the first column that needs them.

    Parameters
    ----------
    rules : CutRules
    n_rows : int
        Of the table.
    hashes : uint64 (n_kept,), default=None
        Of the rows that there are, in their order; None: all rows of the table.
    """

    hashes: np.ndarray | None
    rows: np.ndarray | None

    def __init__(self, rules: CutRules, n_rows: int, hashes: np.ndarray | None = None) -> None:
        self.rules = rules
        self.hashes = None
        self.rows = None
        if rules.max_bins is not None and n_rows > max(rules.max_bins, rules.sample_rows):
            self.hashes = row_hashes(0, n_rows, rules.seed) if hashes is None else hashes
            self.rows = bottom(self.hashes, rules.sample_rows)

    @cached_property
    def is_in(self) -> np.ndarray:
        """Whether each row is sampled in columns without missing values, bool."""
        assert self.hashes is not None
        is_in = np.zeros(len(self.hashes), dtype=bool)
        is_in[self.rows] = True
        return is_in

    def of(self, values: np.ndarray) -> np.ndarray:
        """The sampled values of a column, (n_rows,), ascending and without NaN."""
        sample = values if self.rows is None else values[self.rows]
        if self.hashes is not None and np.isnan(values).any():
            # a sample of the rows that have a value
            present = np.flatnonzero(~np.isnan(values))
            sample = values[present[bottom(self.hashes[present], self.rules.sample_rows)]]
        return _encode.sorted_values(sample)

    def of_sparse(
        self, values: np.ndarray, rows: np.ndarray, n_rows: int
    ) -> tuple[np.ndarray, int]:
        """The sampled values of those that a column stores, and how many zeros are beside them."""
        if self.hashes is None:
            return values[~np.isnan(values)], n_rows - len(rows)
        if not np.isnan(values).any():
            kept = values[self.is_in[rows]]
            return kept, int(np.count_nonzero(self.is_in)) - len(kept)
        present = np.ones(n_rows, dtype=bool)
        present[rows[np.isnan(values)]] = False
        chosen = np.flatnonzero(present)
        chosen = chosen[bottom(self.hashes[chosen], self.rules.sample_rows)]
        kept = values[np.isin(rows, chosen)]
        return kept, len(chosen) - len(kept)


def code_numbers(
    blocks: Sequence[Numbers], store: CodeStore, rules: CutRules, run: Runner
) -> list[OrderedValues]:
    """Codes of columns of numbers.

    Parameters
    ----------
    blocks : sequence of Numbers
    store : CodeStore
        Gets codes, ``n_codes``, ``n_ordered`` and ``status`` of the columns.
    rules : CutRules
    run : Runner
        Gets tasks of about equal size.

    Returns
    -------
    list of OrderedValues
    """
    sample = Sample(rules, store.n_rows)
    room = max(1, store.n_rows if rules.max_bins is None else min(store.n_rows, rules.max_bins))
    pieces: list[Callable[[], None]] = []
    sizes: list[int] = []
    flat: deque[tuple[np.ndarray, np.ndarray]] = deque()
    for block in blocks:
        k = len(block.columns)
        low = room_for_values(k * room, tile_type(block.values.dtype))
        high = low if rules.max_bins is None else room_for_values(len(low), low.dtype)
        flat.append((low, high))
        for places in tiles(block):
            tile = slice(places[0], places[-1] + 1)
            pieces.append(
                partial(
                    _code_tile,
                    block,
                    tile,
                    store,
                    sample,
                    low.reshape(k, room)[tile],
                    high.reshape(k, room)[tile],
                )
            )
            sizes.append(store.n_rows * len(places))
    run_pieces(pieces, sizes, run)
    del pieces
    values = []
    for block in blocks:
        low, high = flat.popleft()  # freed when its values are copied
        n_codes = store.n_codes[block.columns]
        exact = ~store.cut[block.columns]
        start = np.arange(len(n_codes), dtype=np.int64) * room
        total = _encode.compact_values(low, start, n_codes)
        low = low[:total].copy()
        if exact.all():
            high = low[:0]
        else:
            _encode.compact_values(high, start, n_codes)
            high = high[:total].copy()
        values.append(OrderedValues(block.columns, n_codes, low, high, exact))
    return values


def room_for_values(size: int, dtype: Any) -> np.ndarray:
    """An array most of which may never be written, and then takes no memory.

    numpy asks for huge pages, of which a few values per column would write every one: a table of
    100,000 columns of few values would take as much for its values as for all of its cells.
    """
    return mapped(size * np.dtype(dtype).itemsize).view(dtype)


def mapped(n_bytes: int) -> np.ndarray:
    """Bytes, uint8 (n_bytes,): many of them in pages of their own, that are gone with the array."""
    if n_bytes < LARGE_ROOM or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(n_bytes, dtype=np.uint8)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel that knows no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint8)


def tiles(block: Numbers) -> list[np.ndarray]:
    """Places within the block of the columns of each tile; tiles are of about equal size."""
    n_rows, k = block.values.shape
    bytes_per_column = max(1, n_rows * np.dtype(tile_type(block.values.dtype)).itemsize)
    width = min(TILE_COLUMNS, max(1, TILE_BYTES // bytes_per_column))
    n_tiles = -(-k // width)
    if n_rows * k > SMALL_TABLE:
        n_tiles = min(k, max(n_tiles, TASKS))
    return np.array_split(np.arange(k), max(1, n_tiles))


def run_pieces(pieces: Sequence[Callable], sizes: Sequence[int], run: Runner) -> list:
    """Run pieces of work as a few tasks of about equal size; results in the order of the pieces."""
    total = sum(sizes)
    n_tasks = 1 if total <= SMALL_TABLE else min(len(pieces), max(TASKS, total // (4 * 2**20)))
    if n_tasks <= 1:
        return [piece() for piece in pieces]
    ends = np.searchsorted(np.cumsum(sizes), np.arange(1, n_tasks + 1) * (total / n_tasks) - 0.5)
    bounds = np.unique(np.concatenate([[0], ends[:-1] + 1, [len(pieces)]]))
    groups = [pieces[a:b] for a, b in pairwise(bounds)]
    results = run([partial(serial, group) for group in groups])
    return [result for group in results for result in group]


def _code_tile(
    block: Numbers,
    places: slice,
    store: CodeStore,
    sample: Sample,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Ranks or cuts the columns of one tile; low, high: (k, room), OUT."""
    values = block.values[:, places]
    columns = block.columns[places]
    with store.tiles.lend(tile_bytes(values)) as room:
        _code_loaded(load(values, room), columns, store, sample, low, high)


def _code_loaded(
    tile: np.ndarray,
    columns: np.ndarray,
    store: CodeStore,
    sample: Sample,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    limit = low.shape[1]
    with store.scratch.lend(_encode.scratch_bytes(store.n_rows)) as scratch:
        _encode.rank_columns(
            tile,
            limit,
            columns,
            scratch,
            *store.blocks,
            store.order,
            low,
            store.n_codes,
            store.status,
        )
    for k, column in enumerate(columns):
        if store.status[column] != _encode.STATUS_TOO_MANY:
            if high is not low:
                high[k, : store.n_codes[column]] = low[k, : store.n_codes[column]]
            continue
        least, greatest = quantile_codes(sample.of(tile[k]), limit)
        low[k, : len(least)] = least
        high[k, : len(greatest)] = greatest
        store.n_codes[column] = len(greatest)
        store.status[column] = 0
        store.cut[column] = True
        _encode.cut_column(tile[k], greatest[:-1], store.place(column, len(greatest)))
    store.n_ordered[columns] = store.n_codes[columns]


def code_sparse(
    matrix: scipy.sparse.csc_array, rules: CutRules, run: Runner
) -> tuple[CodedMatrix, OrderedValues, np.ndarray]:
    """Codes of the columns of a canonical CSC matrix of float32 or float64.

    Only stored values are touched; all rows that are not stored hold zero.

    Returns
    -------
    coded : CodedMatrix
    values : OrderedValues
    status : uint8 (n_columns,)
    """
    n_rows, n_columns = matrix.shape
    data = matrix.data
    indptr = matrix.indptr.astype(np.int64)
    limit = n_rows if rules.max_bins is None else min(n_rows, rules.max_bins)
    codes = np.empty(len(data), dtype=np.uint32)
    low = np.empty(len(data) + n_columns, dtype=data.dtype)
    n_codes = np.zeros(n_columns, dtype=np.int64)
    fill = np.zeros(n_columns, dtype=np.uint32)
    status = np.zeros(n_columns, dtype=np.uint8)
    work = indptr + np.arange(n_columns + 1)
    n_tasks = 1 if work[-1] <= SMALL_TABLE else TASKS
    bounds = np.unique(np.searchsorted(work, np.linspace(0, work[-1], n_tasks + 1)))
    bounds[-1] = n_columns

    def block(first: int, last: int) -> None:
        _encode.rank_sparse(
            data, indptr, first, last, n_rows, limit, codes, low, n_codes, fill, status
        )

    tasks = [partial(block, a, b) for a, b in pairwise(bounds)]
    if len(tasks) > 1:
        run(tasks)
    else:
        block(0, n_columns)
    start = indptr[:-1] + np.arange(n_columns)
    exact = status != _encode.STATUS_TOO_MANY
    if exact.all():
        total = _encode.compact_values(low, start, n_codes)
        values = OrderedValues(np.arange(n_columns), n_codes, low[:total], low[:0], exact)
    else:
        values = _cut_sparse(matrix, indptr, Sample(rules, n_rows), low, start, codes, n_codes,
                             fill, status)  # fmt: skip
    coded = CodedMatrix.sparse(n_rows, indptr, matrix.indices, codes, n_codes, n_codes, fill)
    return coded, values, status


def _cut_sparse(
    matrix: scipy.sparse.csc_array,
    indptr: np.ndarray,
    sample: Sample,
    low: np.ndarray,
    start: np.ndarray,
    codes: np.ndarray,
    n_codes: np.ndarray,
    fill: np.ndarray,
    status: np.ndarray,
) -> OrderedValues:
    """Cuts the columns of too many values; the same cuts as of the equal dense column."""
    exact = status != _encode.STATUS_TOO_MANY
    lows = [low[a : a + c] for a, c in zip(start, n_codes, strict=True)]
    highs = list(lows)
    n_rows = matrix.shape[0]
    for j in np.flatnonzero(~exact):
        stored = slice(indptr[j], indptr[j + 1])
        values = matrix.data[stored] + matrix.data.dtype.type(0)
        rows = matrix.indices[stored]
        kept, n_zeros = sample.of_sparse(values, rows, n_rows)
        status[j] = 0
        limit = min(n_rows, sample.rules.max_bins or n_rows)
        lows[j], highs[j] = quantile_codes(np.sort(kept), limit, n_zeros)
        n_codes[j] = len(highs[j])
        column = np.empty(len(values), dtype=np.uint32)
        _encode.cut_column(values, highs[j][:-1], column)
        codes[stored] = column
        fill[j] = 1 + np.searchsorted(highs[j][:-1], 0.0) if len(rows) < n_rows else 0
    return OrderedValues(
        np.arange(matrix.shape[1]), n_codes, np.concatenate(lows), np.concatenate(highs), exact
    )


def join_values(
    parts: Sequence[OrderedValues], n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values of all columns in the order of the table.

    Returns
    -------
    offsets : int64 (n_columns + 1,)
    low, high : float32 (when every part is) or float64 (offsets[-1],)
        The same array when every column is exact.
    exact : bool (n_columns,)
    """
    counts = np.zeros(n_columns, dtype=np.int64)
    exact = np.ones(n_columns, dtype=bool)
    for part in parts:
        counts[part.columns] = part.n_codes
        exact[part.columns] = part.exact
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if len(parts) == 1 and len(parts[0].columns) == n_columns and exact.all():
        return offsets, parts[0].low, parts[0].low, exact
    narrow = bool(parts) and all(part.low.dtype == np.float32 for part in parts)
    low = np.empty(offsets[-1], dtype=np.float32 if narrow else np.float64)
    high = low if exact.all() else np.empty_like(low)
    for part in parts:
        inside = np.concatenate([[0], np.cumsum(part.n_codes)])
        whole = _in_one_piece(part.columns)
        for k, column in enumerate(part.columns[:1] if whole else part.columns):
            stop = inside[-1] if whole else inside[k + 1]
            at = slice(offsets[column], offsets[column] + stop - inside[k])
            low[at] = part.low[inside[k] : stop]
            if high is not low:
                source = part.high if len(part.high) else part.low
                high[at] = source[inside[k] : stop]
    return offsets, low, high, exact


def _in_one_piece(columns: np.ndarray) -> bool:
    """Whether columns stand side by side in the table."""
    return len(columns) > 0 and columns[-1] - columns[0] == len(columns) - 1


def read_sparse(table: Table) -> scipy.sparse.csc_array:
    """The sparse block of a table, as float32 or float64."""
    matrix = table.sparse
    assert matrix is not None
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(tile_type(matrix.dtype))
    return matrix
