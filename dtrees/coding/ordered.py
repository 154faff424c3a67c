"""Ordered columns of a dense table: numbers to codes, a tile at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dtrees.coding._codes import compact_values
from dtrees.coding._rank_columns import STATUS_TOO_MANY, rank_columns, scratch_bytes
from dtrees.coding.code_store import CodeStore, lazy_array
from dtrees.coding.sampling import CutRules, Sample
from dtrees.coding.tables import Numbers
from dtrees.coding.tiles import load, run_pieces, tile_bytes, tile_type, tiles
from dtrees.typing import Runner


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
    with (
        store.tiles.borrow(tile_bytes(block.values)) as buffer,
        store.scratch.borrow(scratch_bytes(store.n_rows)) as scratch,
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
        columns = part.columns
        side_by_side = len(columns) > 0 and columns[-1] - columns[0] == len(columns) - 1
        for k, column in enumerate(columns[:1] if side_by_side else columns):
            stop = inside[-1] if side_by_side else inside[k + 1]
            at = slice(offsets[column], offsets[column] + stop - inside[k])
            low[at] = part.low[inside[k] : stop]
            if high is not low:
                source = part.high if len(part.high) else part.low
                high[at] = source[inside[k] : stop]
    return offsets, low, high, exact
