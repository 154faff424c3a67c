"""Tiles: a few columns of a table at a time, and the tasks that code them.

A tile is copied to contiguous columns (the only copy of the values that is ever made), ranked or
cut, and forgotten. Peak memory above the table and the codes is one tile and the sort's scratch
per thread. Float32 stays float32 where the table has it; all else is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from dtrees.coding._cells import load_columns
from dtrees.coding.tables import Numbers
from dtrees.typing import Runner, serial

NARROW_TYPES = ("float32", "float16", "int8", "uint8", "int16", "uint16", "bool")
TILE_BYTES = 8 * 2**20
TILE_COLUMNS = 16
TILE_CELLS = 2**15  # of short columns, so many that a tile takes longer than to begin one
TASKS = 8
LEAST_TASKS = 4  # so that those of cheap columns and dear ones take turns
SMALL_TABLE = 50_000  # cells below which tasks cost more than they save


def tile_type(dtype: np.dtype) -> type:
    """Float32 for types that it holds exactly, otherwise float64."""
    return np.float32 if dtype.name in NARROW_TYPES else np.float64


def tile_bytes(values: np.ndarray) -> int:
    """Size of the columns once they are loaded."""
    return values.size * np.dtype(tile_type(values.dtype)).itemsize


def load(values: np.ndarray, buffer: np.ndarray | None = None) -> np.ndarray:
    """Columns as contiguous rows of float32 or float64, -0.0 as 0.0: (k, n_rows).

    They go to ``buffer``, uint8, of at least `tile_bytes`; None: to memory of their own.
    """
    if buffer is None:
        buffer = np.empty(tile_bytes(values), dtype=np.uint8)
    tile: np.ndarray = (
        buffer[: tile_bytes(values)].view(tile_type(values.dtype)).reshape(values.shape[::-1])
    )
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
