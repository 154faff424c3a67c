"""Sizes of results of tasks: Dask asks for them, to know what to spill."""

from __future__ import annotations

from dask.sizeof import sizeof

from dtrees.core.stores.blocks.block import Block, GatheredRows
from dtrees.core.stores.blocks.messages import Counts

BESIDE_BLOCK = 0.6  # of the bytes of a block: its positions, and what a task makes of it


class StoredBlock(Block):
    """A block as the result of a task: a worker that unpickles it imports its size, too."""


@sizeof.register(StoredBlock)
def size_of_block(block: StoredBlock) -> int:
    """Bytes of a block, and of what goes with it.

    Positions and copies of rows are memory of the process, which Dask does not count with results.
    Where blocks alone fill the share of a worker that it gives to results, there is no room for
    them, and the worker is killed.
    """
    parts = block.coded, block.target, block.keys, block.cells
    return int((1 + BESIDE_BLOCK) * sum(map(sizeof, parts)))


@sizeof.register(GatheredRows)
def size_of_rows(rows: GatheredRows) -> int:
    """Bytes of gathered rows."""
    return sum(map(sizeof, (rows.coded, rows.target, rows.combination)))


@sizeof.register(Counts)
def size_of_counts(counts: Counts) -> int:
    """Bytes of counts."""
    return counts.nbytes
