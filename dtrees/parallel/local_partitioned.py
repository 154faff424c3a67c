"""Trees grown in rounds from blocks of rows: what they are grown from, and how on threads.

Without a cluster the blocks are stretches of a table in this process, each a task of a round. The
model is that of the partitioned regime on machines. It is there to be compared with the others, and
saves no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from dask.system import CPU_COUNT

from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.local_blocks import LocalBlocks
from dtrees.core.grow.round_spec import RoundSpec
from dtrees.core.grow.rounds import grow_in_rounds
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks.block import Block, Common, Draws
from dtrees.parallel.block_tasks import facts_of_codes, make_codes, room_of_positions
from dtrees.parallel.coded_partitions import CodedPartitions
from dtrees.parallel.executors import computed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.kept_tables import KeptTable
from dtrees.parallel.local import LocalRunner
from dtrees.parallel.memory import (
    bytes_of_open_row,
    even_stretches,
    gather_rows_of,
    histogram_budget,
    resolution_of,
    trees_at_once,
)

BLOCKS_PER_THREAD = 2


@dataclass(frozen=True, eq=False)
class PartitionedGrowth:
    """What trees are grown from: codes in partitions, in place of those of `growth`."""

    growth: ForestGrowth
    parts: CodedPartitions
    resampling: Resampling

    @property
    def keys(self) -> np.ndarray | None:
        """Key of every row in its bags; None: its number, or there are no bags."""
        bags = self.growth.bags
        return None if bags is None or bags.by_row else bags.row_id

    def common(self) -> Common:
        """What all blocks know."""
        growth, sets = self.growth, self.resampling
        draws = None
        if growth.bags is not None:
            means = growth.bags.means
            heaviest = None if means is None else float(means.max())
            draws = Draws(growth.bags.seed, growth.bags.rate, heaviest)
        masks = None
        if not sets.is_plain:
            numbers = np.arange(sets.n_sets, dtype=np.uint64)
            has = (sets.mix[:].T > 0).astype(np.uint64)
            masks = (has << numbers).sum(axis=1, dtype=np.uint64)
        return Common(growth.rules, draws, masks, resolution_of(self.parts.n_rows))

    def round_spec(self) -> RoundSpec:
        """What the driver grows from."""
        growth, sets = self.growth, self.resampling
        live = growth.target.has_weight
        n_rows = np.array([growth.target.n_live]) if sets.is_plain else sets.totals(live)
        bags = growth.bags
        may_be_empty = bags is not None and (
            bags.rate * int(n_rows.min()) < 1000 or not bags.by_row or bags.means is not None
        )
        return RoundSpec(
            self.common(),
            self.parts.sample,
            growth.target.take(np.zeros(1, dtype=np.intp)),
            growth.thresholds,
            sets.n_sets,
            n_rows,
            shares=growth.shares,
            may_be_empty=may_be_empty,
            values=growth.values,
            histogram_budget=histogram_budget(),
            gather_rows=gather_rows_of(self.parts.n_rows),
            n_stored=self.parts.facts.n_stored,
            class_weights=sets.class_weights,
        )

    def tree_batches(
        self, numbers: Sequence[int], room: int, n_threads: int
    ) -> list[Sequence[int]]:
        """Trees that grow together; `room` are bytes for the rows of open nodes."""
        common = self.common()
        share = 1.0 if common.draws is None else -math.expm1(-common.draws.rate)
        most = trees_at_once(
            share * self.parts.n_rows,
            common.rules.max_features or self.parts.n_columns,
            room,
            bytes_of_open_row(common.draws is not None, common.masks is not None),
            n_threads,
        )
        batches = even_stretches(len(numbers), -(-len(numbers) // most))
        return [numbers[start:end] for start, end in batches]


def _blocks_here(whole: PartitionedGrowth, kept: KeptTable, n_threads: int) -> list[Block]:
    """The blocks of a growth, from codes that stay for the next one."""
    parts = whole.parts
    if not kept.blocks:
        groups = parts.groups(max(1, -(-parts.n_rows // (BLOCKS_PER_THREAD * n_threads))))
        coded = iter(computed(*chain.from_iterable(codes for codes, _ in groups)))
        kept.lengths = [length for _, length in groups]
        kept.blocks = [make_codes([next(coded) for _ in codes]) for codes, _ in groups]
    blocks, facts = [], []
    first = 0
    for codes, length in zip(kept.blocks, kept.lengths, strict=True):
        rows = slice(first, first + length)
        own = (
            each if each is None else each[rows] for each in (whole.keys, whole.resampling.cells)
        )
        blocks.append(Block(codes.coded, whole.growth.target.take(rows), first, *own))
        facts.append(facts_of_codes(codes, first))
        first += length
    if not parts.is_known:
        parts.learn(facts)
    return blocks


def grow_here(
    whole: PartitionedGrowth,
    kept: KeptTable,
    numbers: Sequence[int],
    run: LocalRunner,
    stats: FitStatistics,
) -> Iterator[tuple[int, list[Tree]]]:
    """Grow trees in rounds, on threads of this process; yields numbers and trees by set."""
    growth = whole.growth
    blocks = _blocks_here(whole, kept, run.n_threads)

    def hear(what: str, depth: int) -> None:
        stats.see(what)

    spec = replace(whole.round_spec(), run=run)
    local = LocalBlocks(blocks, growth.values, run, stats.counts)
    stats.expect_rounds()
    with stats.phase("rounds"):
        for batch in whole.tree_batches(numbers, room_of_positions(None, CPU_COUNT), run.n_threads):
            for number, trees in grow_in_rounds(spec, batch, local, hear, stats.counts):
                yield number, [growth.pruned(tree) for tree in trees]
