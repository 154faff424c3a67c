"""Sizes of results of tasks: Dask asks for them, to know what to spill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from dask.sizeof import sizeof

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import GatheredRows
from dtrees.core.stores.blocks.messages import Counts

BESIDE_BLOCK = 0.6  # of the bytes of a block: its positions, and what a task makes of it


@dataclass(frozen=True, eq=False)
class StoredCodes:
    """Codes of a block as the result of a task: a worker that unpickles it imports its size, too.

    They outlive the growths that read them, which bring the rest of each block.
    """

    coded: CodedMatrix


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rest of a block, as the attributes of `Block`."""

    target: Target
    first_row: int
    keys: np.ndarray | None
    cells: np.ndarray | None


@sizeof.register(StoredCodes)
def size_of_codes(codes: StoredCodes) -> int:
    """Bytes of codes, and of what goes with them.

    Positions and copies of rows are memory of the process, which Dask does not count with results.
    Where blocks alone fill the share of a worker that it gives to results, there is no room for
    them, and the worker is killed.
    """
    return int((1 + BESIDE_BLOCK) * sizeof(codes.coded))


@sizeof.register(StoredRows)
def size_of_rest(rows: StoredRows) -> int:
    """Bytes of what else there is of a block, and of what goes with it."""
    return int((1 + BESIDE_BLOCK) * sum(map(sizeof, (rows.target, rows.keys, rows.cells))))


@sizeof.register(GatheredRows)
def size_of_rows(rows: GatheredRows) -> int:
    """Bytes of gathered rows."""
    return sum(map(sizeof, (rows.coded, rows.target, rows.combination)))


@sizeof.register(Counts)
def size_of_counts(counts: Counts) -> int:
    """Bytes of counts."""
    return counts.nbytes
