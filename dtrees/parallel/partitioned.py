"""Trees grown from a table that no worker holds: the partitioned regime.

The codes stay where they are made, in *blocks* of partitions; the workers run the rounds of
`dtrees.core.grow.rounds` among themselves (`dtrees.parallel.forest_members`), and the client never
sees a row::

    blocks    partitions of codes and targets, results of the user's graph     on the workers
    rounds    members of an epoch: updates, counts, splits; the client hears of them once a second
    the end   rows of small nodes: members ──▶ one of them, which finishes each ──▶ subtrees

Where a worker dies, its blocks are computed again from the user's graph, their positions from the
updates so far, and rounds go on in another epoch (`dtrees.parallel.epochs`). The model so far is
the checkpoint: it is never on a worker only (DESIGN 3.8).

Without a cluster the blocks are stretches of a table in this process, each a task of a round
(`grow_here`). The model is the one of a cluster. It is there to be compared, and saves no memory.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.system import CPU_COUNT

from dtrees.coding.target import SpreadTarget
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_spec import HISTOGRAM_BUDGET, Roots, RoundSpec
from dtrees.core.grow.rounds import LocalBlocks, grow_in_rounds
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.membership.resampling import CellsElsewhere, KeysElsewhere, Resampling
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks.block import Block, Common, Draws
from dtrees.core.stores.blocks.messages import (
    Counts,
    Root,
    SplitUpdate,
    merge_bags,
)
from dtrees.parallel.block_tasks import (
    facts_of_codes,
    make_codes,
    make_rows,
    room_of_positions,
    sum_bags,
)
from dtrees.parallel.client import machines
from dtrees.parallel.coded_partitions import CodedPartitions, KeptTable, PartFacts
from dtrees.parallel.cost import GrowthSize
from dtrees.parallel.epochs import Epochs, slice_seconds
from dtrees.parallel.executors import computed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.forest_members import (
    Follow,
    ForestSoFar,
    MemberOfForest,
    MemberOfSequence,
    SequenceSoFar,
    grow_as_member,
)
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.memory import (
    BESIDE_CODES,
    BLOCKS_PER_THREAD,
    bytes_of_open_row,
    bytes_of_portion,
    configured_bytes,
    gather_rows_of,
    resolution_of,
    trees_at_once,
)
from dtrees.parallel.placed_blocks import PlacedBlocks
from dtrees.parallel.replicated import SharedArrays
from dtrees.parallel.tasks import Call, Tasks
from dtrees.parallel.threads import LocalRunner
from dtrees.typing import T

if TYPE_CHECKING:
    from distributed import Client


NODES_OF_BATCH = 40  # bits of the numbers of the nodes of a batch of trees
ELSEWHERE = SpreadTarget | KeysElsewhere | CellsElsewhere  # made where the codes are
PACKS_APART = 20  # times as many seconds as to pack the trees so far, between two

logger = logging.getLogger(__name__)


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
        if (bags := growth.bags) is not None:
            heaviest = None if bags.means is None else float(bags.means.max())
            draws = Draws(bags.seed, bags.rate, heaviest, bags.pasted)
        masks = None
        if not sets.is_plain:
            numbers = np.arange(sets.n_sets, dtype=np.uint64)
            has = (sets.mix[:].T > 0).astype(np.uint64)
            masks = (has << numbers).sum(axis=1, dtype=np.uint64)
        return Common(growth.rules, draws, masks, resolution_of(self.parts.n_rows))

    def round_spec(self) -> RoundSpec:
        """What the driver grows from."""
        growth, sets = self.growth, self.resampling
        n_rows = np.array([growth.target.n_live])
        if not sets.is_plain:
            n_rows = sets.totals(growth.target.has_weight)
        bags, common = growth.bags, self.common()
        is_few = bags is not None and (bags.rate * int(n_rows.min()) < 1000 or not bags.by_row)
        spec = RoundSpec(
            common,
            self.parts.sample,
            growth.target.sample,
            growth.thresholds,
            sets.n_sets,
            n_rows,
            shares=growth.shares,
            may_be_empty=is_few,
            values=growth.values,
            histogram_budget=configured_bytes("dtrees.histogram-budget", HISTOGRAM_BUDGET),
            gather_rows=gather_rows_of(self.parts.n_rows),
            n_stored=self.parts.facts.n_stored,
            class_weights=sets.class_weights,
        )
        return spec.weighed(spec.target, None if common.draws is None else common.draws.heaviest)

    def tree_batches(self, numbers: Sequence[int], room: int, n_threads: int) -> list[list[int]]:
        """Trees that grow together; `room` are bytes for the rows of open nodes."""
        common = self.common()
        share = 1.0 if common.draws is None else common.draws.share
        most = trees_at_once(
            share * self.parts.n_rows,
            common.rules.max_features or self.parts.n_columns,
            room,
            bytes_of_open_row(common.draws is not None, common.masks is not None),
            n_threads,
        )
        return [batch.tolist() for batch in np.array_split(numbers, -(-len(numbers) // most))]


@interrupts_deferred_inside
def grow_partitioned(
    whole: PartitionedGrowth,
    kept: KeptTable,
    numbers: Sequence[Any],
    client: Client,
    stats: FitStatistics,
    follow: Follow | None = None,
) -> Generator[tuple[Any, Any]]:
    """Grow trees from partitions on the workers of a cluster; the client is synchronous.

    Yields numbers and trees by training set, as soon as they are complete, in any order. Where
    trees `follow` from those before, `numbers` are the first trees. Closing the iterator ends the
    growth and leaves nothing on the cluster. Close it (`contextlib.closing`). Raises
    WorkerLostError, SchedulerLostError, ClusterError.
    """
    tasks = Tasks(client, stats, collections=whole.parts.collections)
    n_trees = len(numbers), 1  # together, and one after the other
    if follow is not None:
        n_trees = 1, max(1, follow.n_estimators - len(numbers))
    blocks = BlocksOnWorkers(tasks, whole, kept, n_trees)
    stats.counts.update(rounds=0)  # also where there is none
    with blocks.made():
        if follow is not None:
            yield from blocks.sequence(follow, numbers)
            return
        spec, there, n_threads = whole.round_spec(), machines(client), sum(blocks.members.values())
        room = sum(room_of_positions(*there[each]) for each in blocks.members if each in there)
        for batch in whole.tree_batches(numbers, room, n_threads):
            with closing(grow_in_rounds(spec, batch, blocks, blocks.hear, stats.counts)) as grown:
                for number, trees in grown:
                    yield number, [whole.growth.pruned(tree) for tree in trees]


class BlocksOnWorkers(PlacedBlocks):
    """Blocks of rows on the workers of a cluster, as `dtrees.core.grow.round_spec.Blocks`."""

    def __init__(
        self, tasks: Tasks, growth: PartitionedGrowth, kept: KeptTable, n_trees: tuple[int, int]
    ) -> None:
        own = growth.growth.target, growth.keys, growth.resampling.cells
        spread = [each.each for each in own if isinstance(each, ELSEWHERE)]
        there = (lambda: [task for make in spread for task in make()]) if spread else None
        super().__init__(tasks, growth.parts, kept, there)
        self._growth, self._n_trees = growth, n_trees
        self._updates: list[SplitUpdate] = []
        self._common: Common
        self._epochs: Epochs = Epochs(tasks)
        self._spec: RoundSpec  # of the trees that grow
        self._packed: list[bytes]  # these trees, as they were heard of,
        self._pack_seconds = 0.0  # what a member has spent on that,
        self._finished: set[int]  # and nodes of few rows whose subtrees were
        self._sequence: tuple[Follow, list[Tree], int] | None = None  # as of `SequenceSoFar`

    def _size(self) -> GrowthSize:
        growth, parts = self._growth.growth, self._parts
        rules, n_classes = growth.rules, growth.target.n_classes
        has_bounds = CRITERIA[rules.criterion].has_bounds and n_classes <= 64
        return GrowthSize(
            n_rows=parts.n_rows,
            n_columns=parts.n_columns,
            n_trees=self._n_trees[0],
            n_sequence=self._n_trees[1],
            depth=rules.max_depth,
            bytes_per_row=parts.n_bytes / max(1, parts.n_rows),
            columns_drawn=rules.max_features,
            n_codes=int(parts.n_codes.mean()),
            has_bounds=has_bounds and not rules.random_splits,
            has_sums=CRITERIA[rules.criterion].has_sums,
            n_classes=n_classes,
            n_sets=self._growth.resampling.n_sets,
            bootstrap=growth.bags is not None,
        )

    def _call_for_rows(self, rows: slice, workers: tuple[str, ...]) -> Call:
        """What a block knows of its rows: their targets, keys and training sets."""
        of_all = (
            self._growth.growth.target,
            self._growth.keys,
            self._growth.resampling.cells,
        )
        number = count()  # of those that are elsewhere
        targets, keys, cells = (
            self._rows_there(rows, next(number))
            if isinstance(values, ELSEWHERE)
            else self._sent_rows(values, rows)
            for values in of_all
        )
        return Call("block-rows", make_rows, (targets, rows.start, keys, cells), workers)

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        self._epochs.end_epoch()  # of the growth before
        self._common, self._updates = common, []
        self._tasks.run(self._spread, self.make_again)  # also to workers that have joined

    def hear(self, what: str, depth: int) -> None:
        """Take note of a round."""
        self._stats.see(what)

    def bags(self, roots: Sequence[Root], n_sets: int) -> list[tuple[Counts, list[int]]]:
        """What bags add up to."""

        def work() -> list[list[tuple[Counts, list[int]]]]:
            about = self._common, roots, n_sets
            halves = zip(self._kept.blocks, self._rows, strict=True)
            calls = [Call("sum-bags", sum_bags, (*block, *about)) for block in halves]
            return self._tasks.all_results(calls)

        with self._stats.phase("bags"):
            found = self._tasks.run(work, self.make_again)
        self._stats.see_pass(len(roots) * n_sets)
        return merge_bags(found)

    def grow(
        self,
        spec: RoundSpec,
        numbers: Sequence[int],
        begin: Roots,
        heard: Callable[[str, int], object],
    ) -> list[TreeBatch]:
        """Grow the nodes that are spread, on the workers, each of which decides on some trees."""
        n_batches = min(len(numbers), len(self._threads()))
        places = np.array_split(np.arange(len(numbers)), n_batches)
        spec = replace(spec, histogram_budget=max(1, spec.histogram_budget // len(places)))
        batches = []
        for k, some in enumerate(places):
            roots = Roots(
                [begin.roots[i] for i in some],
                None if begin.sums is None else [begin.sums[i] for i in some],
            )
            first = len(numbers) + (k << NODES_OF_BATCH)
            batches.append(TreeBatch(spec, [numbers[i] for i in some], roots, first))
        self._spec, self._packed = spec, [batch.packed() for batch in batches]
        self._finished = set()
        if is_last := spec.is_small:
            return batches
        while not is_last:
            with self._stats.phase("rounds"):
                go_on = partial(self._go_on, "grow-rounds", MemberOfForest.grow_slice)
                slices = self._tasks.run(go_on, self.make_again)
            is_last = all(each.is_last for each in slices)
            for each in slices:
                for k, packed in each.packed.items():
                    self._packed[k] = packed
            self._pack_seconds = max(each.pack_seconds for each in slices)
            self._updates += slices[0].updates
            for what in slices[0].heard.elements():
                if what == "pass":
                    self._stats.see_pass()
                else:
                    heard(what, 0)
            logger.info("%d rounds of a forest", len(self._updates))
        return [TreeBatch.unpacked(spec, packed) for packed in self._packed]

    def _go_on(self, name: str, grow: Callable[..., T]) -> list[T]:
        """What members do in a slice, in this epoch or the next ones."""
        seconds = max(slice_seconds(len(self.members)), PACKS_APART * self._pack_seconds)
        call = Call(name, grow_as_member, (grow, seconds), about="some of a forest")
        found = self._epochs.results(self._begin, call, self._threads)
        for _, work in found:
            self._stats.counts.update(work)
        return [each for each, _ in found]

    def _begin(self) -> tuple[dict[str, list[Any]], Any]:
        """The blocks of each member, and what has grown so far, as it is sent."""
        places = self.settle()
        per_row = max(1, self._parts.n_bytes // max(1, self._parts.n_rows)) + BESIDE_CODES
        n_threads = max(self.members.values())
        rows_at_once = bytes_of_portion(len(places), n_threads, self._tasks.room()) // per_row
        forest = self._spec, self._packed, self._updates, frozenset(self._finished), rows_at_once
        so_far = ForestSoFar(*forest)
        if self._sequence is not None:
            growth = replace(self._growth.growth, coded=None, target=self._spec.target, bags=None)
            so_far = SequenceSoFar(*forest, growth, *self._sequence)
        return places, self._tasks.send("forest-so-far", SharedArrays(so_far))

    def sequence(self, follow: Follow, trees: Sequence[Tree]) -> Generator[tuple[Tree | None, Any]]:
        """Trees each of which follows from those before, as `grow_sequence`."""
        self._spec, self._packed, self._finished = self._growth.round_spec(), [], set()
        there, n_told, is_last = list(trees), 0, False
        while not is_last:
            self._sequence = follow, there, n_told
            with self._stats.phase("rounds"):
                go_on = partial(self._go_on, "grow-sequence", MemberOfSequence.grow_sequence)
                pickled, is_last = self._tasks.run(go_on, self.make_again)[0]
            found = pickle.loads(pickled)
            there += [tree for tree, _ in found if tree is not None]
            n_told += len(found)
            yield from found

    def finish(
        self, update: SplitUpdate, nodes: Sequence[GatheredNode]
    ) -> Iterator[tuple[int, tuple[PartialTree, ...]]]:
        """The subtrees of some nodes; members know of the update."""
        if nodes:
            self._stats.see_pass(len({(node.number, own) for node in nodes for own in node.sets}))
        places = {node.node: place for place, node in enumerate(nodes)}
        while len(self._finished) < len(nodes):
            with self._stats.phase("subtrees"):
                go_on = partial(self._go_on, "finish-nodes", MemberOfForest.finish_slice)
                found = self._tasks.run(go_on, self.make_again)
            for pickled in found:
                for node, trees in pickle.loads(pickled):
                    self._finished.add(node)
                    yield places[node], trees


def _blocks_here(whole: PartitionedGrowth, kept: KeptTable, n_threads: int) -> list[Block]:
    """The blocks of a growth, from codes that stay for the next one."""
    parts = whole.parts
    if not kept.blocks:
        groups = parts.groups(max(1, -(-parts.n_rows // (BLOCKS_PER_THREAD * n_threads))))
        coded = iter(computed(*chain.from_iterable(codes for codes, _ in groups)))
        kept.lengths = [length for _, length in groups]
        kept.blocks = [make_codes([next(coded) for _ in codes]) for codes, _ in groups]
    if parts.facts is None:
        firsts = np.cumsum([0, *kept.lengths[:-1]]).tolist()
        parts.facts = PartFacts.joined(list(map(facts_of_codes, kept.blocks, firsts)))
    keys, cells = whole.keys, whole.resampling.cells
    blocks: list[Block] = []
    first = 0
    for codes, length in zip(kept.blocks, kept.lengths, strict=True):
        rows = slice(first, first + length)
        own = (each if each is None else each[rows] for each in (keys, cells))
        blocks.append(Block(codes.coded, whole.growth.target.take(rows), first, *own))
        first += length
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
        if what != "code request":
            stats.see_pass()

    spec = replace(whole.round_spec(), run=run)
    local = LocalBlocks(blocks, growth.values, run, stats.counts)
    stats.counts.update(rounds=0)
    with stats.phase("rounds"):
        for batch in whole.tree_batches(numbers, room_of_positions(None, CPU_COUNT), run.n_threads):
            for number, trees in grow_in_rounds(spec, batch, local, hear, stats.counts):
                yield number, [growth.pruned(tree) for tree in trees]
