"""Blocks of rows in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.gathered import GatheredNode, grow_gathered
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, PositionIndex
from dtrees.core.stores.blocks.messages import (
    Counts,
    HistogramRequest,
    Root,
    SplitUpdate,
    add_up,
    merge_bags,
)
from dtrees.typing import Runner, serial

AT_ONCE = 64  # nodes whose rows are gathered at a time


class LocalBlocks:
    """Blocks in this process, as `dtrees.core.grow.round_spec.Blocks`.

    Parameters
    ----------
    blocks : sequence of Block
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, for random splits.
    run : Runner, default=serial
        A block is a task in a round, and so is a node that is finished.
    work : Counter or None, default=None
        Told what training sets have shared in nodes that were finished.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        values: tuple[np.ndarray, np.ndarray] | None = None,
        run: Runner = serial,
        work: Counter[str] | None = None,
    ) -> None:
        self._given = blocks
        self._blocks: list[BlockOfRows] = []
        self._positions: list[PositionIndex] = []
        self._values = values
        self._run = run
        self._work = Counter() if work is None else work
        self._arena = Arena()

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        self._blocks = [BlockOfRows(block, common) for block in self._given]
        self._positions = [{} for _ in self._given]

    def bags(self, roots: Sequence[Root], n_sets: int) -> list[tuple[Counts, list[int]]]:
        """Sums of bags."""
        return merge_bags(self._run([partial(block.bags, roots, n_sets) for block in self._blocks]))

    def count(self, update: SplitUpdate | None, requests: Sequence[HistogramRequest]) -> Counts:
        """Sums and histograms of some nodes."""

        def of_block(number: int) -> Counts:
            if update is not None:
                self._advance(number, update)
            return self._blocks[number].count(self._positions[number], requests)

        return add_up(self._run([partial(of_block, i) for i in range(len(self._blocks))]))

    def finish(
        self, update: SplitUpdate, nodes: Sequence[GatheredNode]
    ) -> Iterator[tuple[int, tuple[PartialTree, ...]]]:
        """The subtrees of some nodes."""
        self._run([partial(self._advance, number, update) for number in range(len(self._blocks))])
        for first in range(0, len(nodes), AT_ONCE):
            some = nodes[first : first + AT_ONCE]
            finished = self._run([partial(self._finish, node) for node in some])
            for number, (pieces, work) in enumerate(finished, first):
                self._work.update(work)
                yield number, pieces

    def _advance(self, number: int, update: SplitUpdate) -> None:
        self._positions[number] = self._blocks[number].advance(self._positions[number], update)

    def _finish(self, node: GatheredNode) -> tuple[tuple[PartialTree, ...], Counter[str]]:
        gathered = [
            block.gather(positions, [node.node])[0]
            for block, positions in zip(self._blocks, self._positions, strict=True)
        ]
        work: Counter[str] = Counter()
        return grow_gathered(gathered, node, self._values, self._arena, work=work), work
