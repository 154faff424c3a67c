"""Dense tables to codes: learned from the table (`code_dense`), or by a book (`encode_dense`).

A *tile* is a few columns of the table. It is copied to contiguous columns (the only copy of the
values that is ever made), ranked or cut, and forgotten. Peak memory above the table and the codes
is one tile and the sort's scratch per thread. Float32 stays float32 where the table has it; all
else is float64.

Widths of codes are not known before a column is ranked. So address space is set aside for every
width, column p at ``p * n_rows`` of each; pages that are never written take no memory. When all
columns are done they move together, and what is left over is given back::

    u8    | col 0 |       | col 2 |        ->   | col 0 | col 2 |
    u32   |       | col 1 |       |        ->   | col 1 |
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding._binning import (
    STATUS_INFINITE,
    STATUS_TOO_MANY,
    cut_column,
    rank_columns,
    scratch_bytes,
)
from dtrees.coding._cells import compact, compact_values, load_columns
from dtrees.coding.coded import SPARSE, U8, U16, U32, WIDTHS, CodedMatrix, storage_for
from dtrees.coding.column_types import Categories, Columns, category_array, refuse_columns
from dtrees.coding.sampling import CutRules, Sample
from dtrees.coding.tables import Numbers, Table
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

ORDER_BYTES = 64 * 2**20
LARGE_BUFFER = 4 * 2**20  # bytes from which on numpy asks for huge pages
MOST_WASTE = 2**25  # bytes that may be written in huge pages for a few values
NARROW_TYPES = ("float32", "float16", "int8", "uint8", "int16", "uint16", "bool")
TILE_BYTES = 8 * 2**20
TILE_COLUMNS = 16
TILE_CELLS = 2**15  # of short columns, so many that a tile takes longer than to begin one
TASKS = 8
LEAST_TASKS = 4  # so that those of cheap columns and dear ones take turns
SMALL_TABLE = 50_000  # cells below which tasks cost more than they save
MANY_CUTS = 16  # per row, from which on rows are sorted instead of looking at every cut


@contextmanager
def borrowed(spare: list[np.ndarray], n_bytes: int) -> Iterator[np.ndarray]:
    """At least so many bytes, uint8, for the length of a task; then they are spare again.

    What a task gives back to the C library stays with that, for every thread as much as it used.
    So the tasks of a coding use buffers one after the other, which are gone with it.
    """
    try:
        buffer = spare.pop()
    except IndexError:
        buffer = np.empty(0, dtype=np.uint8)
    if len(buffer) < n_bytes:
        buffer = lazy_array(n_bytes, np.uint8, LARGE_BUFFER)
    try:
        yield buffer
    finally:
        spare.append(buffer)


class CodeStore:
    """Codes of a dense table while it is coded; ``largest`` is the largest code to expect.

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
    is_binned : bool (n_columns,)
        Columns coded by cuts instead of by their distinct values.
    tiles, scratch : list of arrays
        Spare buffers where tiles are loaded and ranked (`borrowed`).
    """

    def __init__(self, n_rows: int, n_columns: int, largest: int, with_order: bool = True) -> None:
        self.n_rows, self.n_columns = n_rows, n_columns
        cells = n_rows * n_columns
        needed = (True, largest > 255, largest > 65_535)
        self.blocks = [
            np.empty(cells if need else 0, dtype=width)
            for need, width in zip(needed, WIDTHS, strict=True)
        ]
        ordered = needed[2] and with_order and 4 * cells <= ORDER_BYTES
        self.order = np.empty(cells if ordered else 0, dtype=np.uint32)
        self.n_codes = np.zeros(n_columns, dtype=np.int64)
        self.n_ordered = np.zeros(n_columns, dtype=np.int64)
        self.status = np.zeros(n_columns, dtype=np.uint8)
        self.is_binned = np.zeros(n_columns, dtype=bool)
        self.tiles: list[np.ndarray] = []
        self.scratch: list[np.ndarray] = []

    def codes_of(self, column: int, largest: Any) -> np.ndarray:
        """The codes of a column whose codes go up to ``largest``: a view to read or write."""
        at = column * self.n_rows
        return self.blocks[int(storage_for(np.int64(largest)))][at : at + self.n_rows]

    def order_rows(self, column: int, largest: Any) -> None:
        """Sets `order` of a column that was not coded by its rank, if it has one."""
        if largest > 65_535 and len(self.order):
            at = column * self.n_rows
            codes = self.codes_of(column, largest)
            self.order[at : at + self.n_rows] = np.argsort(codes, kind="stable")

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
        ordered = len(self.order) > 0 and bool((storage == U32).any())
        blocks = [*self.blocks, self.order] if ordered else self.blocks  # the order last
        moved = []
        for store, block in zip((U8, U16, U32, U32), blocks, strict=False):
            members = np.flatnonzero(storage == store)
            compact(block, members, self.n_rows)
            block.resize(len(members) * self.n_rows, refcheck=False)
            moved.append(block.reshape((self.n_rows, len(members)), order="F"))
        self.blocks = []
        found = self.n_codes, self.n_ordered, storage
        return CodedMatrix.dense(self.n_rows, *found, moved[:3], *moved[3:])


def lazy_array(size: int, dtype: Any, most: int = MOST_WASTE) -> np.ndarray:
    """An array of more bytes than `most` in pages of its own, which are gone with the array.

    Pages that are never written take no memory. numpy asks for huge pages, of which a few values
    per column would write every one: a table of 100,000 columns of few values would take as much
    for its values as for all of its cells. Small arrays are written faster in huge pages.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes <= most or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(size, dtype=dtype)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel that knows no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=dtype)


def tile_type(dtype: np.dtype) -> type:
    """Float32 for types that it holds exactly, otherwise float64."""
    return np.float32 if dtype.name in NARROW_TYPES else np.float64


def load(values: np.ndarray, buffer: np.ndarray | None = None) -> np.ndarray:
    """Columns as contiguous rows of float32 or float64, -0.0 as 0.0: (k, n_rows).

    They go to ``buffer``, uint8, of at least as many bytes; None: to memory of their own.
    """
    kind = np.dtype(tile_type(values.dtype))
    n_bytes = values.size * kind.itemsize
    if buffer is None:
        buffer = np.empty(n_bytes, dtype=np.uint8)
    tile: np.ndarray = buffer[:n_bytes].view(kind).reshape(values.shape[::-1])
    if values.dtype == bool:
        values = values.view(np.uint8)
    elif values.dtype.name == "float16" or values.dtype.itemsize > 8:  # of any byte order
        values = values.astype(tile.dtype)
    elif not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    load_columns(np.require(values, requirements="A"), tile)
    return tile


def tiles(block: Numbers, n_threads: int | None = None) -> list[slice]:
    """Columns of each tile, within the block; tiles are of about equal size.

    Each tile reads all lines of a table whose rows lie one after the other: few threads have few
    of them. None: `TASKS`.
    """
    n_tasks = TASKS if n_threads is None else min(max(LEAST_TASKS, 2 * n_threads), TASKS)
    n_rows, k = block.values.shape
    bytes_per_column = max(1, n_rows * np.dtype(tile_type(block.values.dtype)).itemsize)
    width = min(
        max(TILE_COLUMNS, TILE_CELLS // max(1, n_rows)), max(1, TILE_BYTES // bytes_per_column)
    )
    n_tiles = -(-k // width)
    if n_rows * k > SMALL_TABLE:
        n_tiles = min(k, max(n_tiles, n_tasks))
    ends = np.cumsum([len(part) for part in np.array_split(np.arange(k), max(1, n_tiles))])
    return [slice(a, b) for a, b in pairwise([0, *ends.tolist()])]


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


def code_numbers(
    blocks: Sequence[Numbers],
    store: CodeStore,
    rules: CutRules,
    run: Runner,
    weights: np.ndarray | None = None,
) -> list[OrderedValues]:
    """Codes of columns of numbers into the store; their values, block by block."""
    sample = Sample(rules, store.n_rows, weights)
    room = max(1, store.n_rows if rules.max_bins is None else min(store.n_rows, rules.max_bins))
    pieces: list[Callable[[], None]] = []
    sizes: list[int] = []
    flat: deque[tuple[np.ndarray, np.ndarray]] = deque()
    for block in blocks:
        k = len(block.columns)
        low = lazy_array(k * room, tile_type(block.values.dtype))
        high = low if rules.max_bins is None else lazy_array(len(low), low.dtype)
        flat.append((low, high))
        for tile in tiles(block, getattr(run, "n_threads", 1)):
            part = Numbers(block.columns[tile], block.values[:, tile])
            pieces.append(
                partial(
                    _code_tile,
                    part,
                    store,
                    sample,
                    low.reshape(k, room)[tile],
                    high.reshape(k, room)[tile],
                )
            )
            sizes.append(part.values.size)
    run_pieces(pieces, sizes, run)
    del pieces
    found = []
    for block in blocks:
        low, high = flat.popleft()  # freed when its values are copied
        n_codes = store.n_codes[block.columns]
        exact = ~store.is_binned[block.columns]
        start = np.arange(len(n_codes), dtype=np.int64) * room
        total = compact_values(low, start, n_codes)
        low = low[:total].copy()
        if exact.all():
            high = low[:0]
        else:
            compact_values(high, start, n_codes)
            high = high[:total].copy()
        found.append(OrderedValues(block.columns, n_codes, low, high, exact))
    return found


def _code_tile(
    block: Numbers, store: CodeStore, sample: Sample, low: np.ndarray, high: np.ndarray
) -> None:
    """Ranks or cuts the columns of one tile; low, high: (k, room), OUT."""
    limit = low.shape[1]
    found = store.n_codes, store.status, store.is_binned.view(np.uint8)
    tile_bytes = block.values.size * np.dtype(tile_type(block.values.dtype)).itemsize
    with (
        borrowed(store.tiles, tile_bytes) as buffer,
        borrowed(store.scratch, scratch_bytes(store.n_rows)) as scratch,
    ):
        tile = load(block.values, buffer)
        how = scratch, (*store.blocks, store.order)
        out = low, high, *found
        cut = sample.rows, sample.weights, sample.rows is None
        rank_columns(tile, limit, block.columns, *how, *out, *cut)
        # samples of the rows that have a value
        for k in np.flatnonzero(store.status[block.columns] == STATUS_TOO_MANY).tolist():
            one = slice(k, k + 1)
            out = low[one], high[one], *found
            rows = sample.rows_of(tile[k])
            rank_columns(tile[one], limit, block.columns[one], *how, *out, rows, sample.weights)
    columns = block.columns
    for column in columns[store.is_binned[columns] & (store.n_codes[columns] > 65_535)].tolist():
        store.order_rows(column, store.n_codes[column])
    store.n_ordered[columns] = store.n_codes[columns]


def join_values(
    parts: Sequence[OrderedValues], offsets: np.ndarray, exact: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest values of all codes in the order of the table, whose columns begin there.

    Float32 when every part is; the same array when every column is exact.
    """
    narrow = bool(parts) and all(part.low.dtype == np.float32 for part in parts)
    low = np.empty(offsets[-1], dtype=np.float32 if narrow else np.float64)
    high = low if exact.all() else np.empty_like(low)
    for part in parts:
        inside = np.concatenate([[0], np.cumsum(part.n_codes)])
        columns = part.columns
        side_by_side = len(columns) > 0 and columns[-1] - columns[0] == len(columns) - 1
        for k, column in enumerate(columns[:1] if side_by_side else columns):
            stop = inside[-1] if side_by_side else inside[k + 1]
            at = slice(offsets[column], offsets[column] + stop - inside[k])
            low[at] = part.low[inside[k] : stop]
            if high is not low:
                source = part.high if len(part.high) else part.low
                high[at] = source[inside[k] : stop]
    return low, high


def code_dense(
    table: Table, columns: Columns, rules: CutRules, run: Runner, weights: np.ndarray | None = None
) -> tuple[CodedMatrix, list[OrderedValues], dict[int, np.ndarray]]:
    """Codes of a dense table: numbers first, then the categories above them."""
    n_rows = table.n_rows
    plain = rules.max_bins is not None and not columns.numeric_categories and not columns.categories
    largest = min(n_rows, rules.max_bins) if plain and rules.max_bins is not None else n_rows
    store = CodeStore(n_rows, table.n_columns, largest)
    parts = code_numbers(columns.ordered, store, rules, run, weights)
    named = code_numbers(columns.numeric_categories, store, CutRules(), run)
    if (store.status == STATUS_INFINITE).any():
        refuse_columns(table, store.status == STATUS_INFINITE)
    categories: dict[int, np.ndarray] = {}
    dtypes = table.dtypes() if columns.numeric_categories or columns.categories else []
    for part in named:
        bounds = np.cumsum(part.n_codes)[:-1]
        for column, values in zip(part.columns.tolist(), np.split(part.low, bounds), strict=True):
            store.n_ordered[column] = 0
            if len(values):
                categories[column] = category_array(values, dtypes[column])
    pieces = [partial(_code_categories, found, store) for found in columns.categories]
    run_pieces(pieces, [n_rows] * len(pieces), run)
    for found in columns.categories:
        j = found.labels.column
        categories[j] = category_array(found.values, dtypes[j])
    return store.finish(), parts, categories


def _code_categories(found: Categories, store: CodeStore) -> None:
    """Codes of the categories of one column, above those of its numbers."""
    j = found.labels.column
    n_ordered = int(store.n_ordered[j])
    n_codes = n_ordered + len(found.values)
    ordered = store.codes_of(j, n_ordered).copy() if n_ordered else None
    table = np.where(found.rank > 0, found.rank + n_ordered, 0)
    codes = store.codes_of(j, n_codes)
    found.labels.write_codes(table, codes)
    if ordered is not None:
        np.copyto(codes, ordered, where=codes == 0)
    store.n_codes[j] = n_codes
    store.order_rows(j, n_codes)


def encode_dense(book: CodeBook, table: Table, wanted: np.ndarray, run: Runner) -> CodedMatrix:
    """Codes of the wanted columns, bool (n_columns,), by a book."""
    largest = book.n_codes.copy()
    if book.handle_unknown == "majority":
        largest[list(book.categories)] += 1
    store = CodeStore(table.n_rows, book.n_columns, int(largest.max(initial=0)), False)
    pieces, sizes = [], []
    for block in table.numbers:
        for is_wanted, part in block.split(wanted):
            for some in tiles(part) if is_wanted else ():
                tile = Numbers(part.columns[some], part.values[:, some])
                pieces.append(partial(_encode_tile, book, tile, store, largest))
                sizes.append(tile.values.size)
    run_pieces(pieces, sizes, run)
    for column in table.labels:
        j = column.column
        if wanted[j]:
            codes, _ = book.read_labels(column, table.name(j))
            column.write_codes(codes, store.codes_of(j, largest[j]))
    store.n_codes[wanted] = book.n_codes[wanted]
    store.n_ordered[wanted] = book.n_ordered[wanted]
    return store.finish(largest, wanted)


def _encode_tile(book: CodeBook, tile: Numbers, store: CodeStore, largest: np.ndarray) -> None:
    values = load(tile.values)
    for k, j in enumerate(tile.columns):
        codes = store.codes_of(j, largest[j])
        if book.n_ordered[j] == 0:
            codes[:] = 0
            continue
        cuts = book.cuts(j)
        if cuts.dtype != values.dtype:
            cuts = _lowered(cuts, values.dtype)
        if len(cuts) > MANY_CUTS * len(codes):
            _cut_few_rows(values[k], cuts, codes)
        else:
            cut_column(values[k], cuts, codes)


def _cut_few_rows(values: np.ndarray, cuts: np.ndarray, codes: np.ndarray) -> None:
    """`cut_column` in O(rows log cuts)."""
    order = np.argsort(values)
    codes[order] = np.searchsorted(cuts, values[order]) + 1
    codes[np.isnan(values)] = 0


def _lowered(cuts: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cuts in a narrower type that no value of that type tells from the given ones."""
    narrow = cuts.astype(dtype)
    return np.where(narrow > cuts, np.nextafter(narrow, dtype.type(-np.inf)), narrow)
