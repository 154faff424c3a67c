"""Growth in rounds: trees whose rows are in several places.

A round takes open nodes, of all trees of a batch and of all training sets, asks every block of
rows for their histograms, searches the sums, and tells the blocks how the nodes are split
([SK] 3)::

    driver    open nodes --requests--> blocks --counts--> sum --search--> splits --update--> blocks
              (small, has no rows)     (hold the rows, know the splits of the updates only)

    round 0   roots of all trees
    round 1   their children ...
    the end   nodes of few rows: their rows are gathered in one place, and finished there

The last line is ours: a node is spread only as long as it is large, so what is sent grows with the
rows and not with 2^depth. How many bytes a round sends is bounded by a budget, beyond which nodes
of one depth take several rounds; a node whose draw of columns is to be extended takes one more.

Columns of many codes send a histogram of intervals of codes. The driver bounds what a split in each
interval can gain, and asks in a second request for the codes of those that may hold the best one:
of one column, rarely two, of a node. So the split is exact, however many codes there are::

    driver    open nodes --requests--> blocks --intervals--> bounds --requests--> blocks --codes-->

Where all columns are searched and both children of a node are spread, the smaller one is counted,
and the larger one is the parent less the smaller one: integers, exact.

Training sets go together as long as their tests look at the same column
(`dtrees.core.stores.blocks.block`), as in `_shared_growth`; those that differ go apart. A
set's tree is that of its own fit, bit for bit: its scores are read from the same integers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial

import numpy as np

from dtrees.core.data.criteria import OF_USERS
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.gathered import GatheredNode, grow_gathered, stacked
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_spec import Blocks, Roots, RoundSpec, roots_of, sets_of_scales
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, PositionIndex
from dtrees.core.stores.blocks.messages import (
    Counts,
    HistogramRequest,
    Root,
    SplitUpdate,
    add_up,
    joined,
    merge_bags,
)
from dtrees.typing import Runner, serial


def grow_in_rounds(
    spec: RoundSpec,
    numbers: Sequence[int],
    blocks: Blocks,
    heard: Callable[[str, int], object] = lambda what, n: None,
    work: Counter[str] | None = None,
) -> Generator[tuple[int, list[Tree]]]:
    """Grow the trees of a batch; yields numbers and trees by training set, in any order.

    They come as soon as the trees of all sets are complete. `heard` is called with "round" and the
    least depth of its nodes before each of them; with "code round" before a second request, and
    with "code request" for each node and column of it. `work` is told in how many nodes, and of how
    many rows, several sets were searched together: of each node the rows of its largest set. What
    `blocks` finish is not part of it.
    """
    rules = spec.common.rules
    if rules.criterion in OF_USERS:
        raise ValueError(
            "Trees of a criterion of your own need all rows in one place: replicate them, or "
            "choose another criterion."
        )
    blocks.begin(spec.common)
    begin = roots_of(spec, numbers, blocks)
    groups = sets_of_scales(spec, begin) if spec.is_poisson else []
    if len(groups) > 1:
        of_set: dict[int, dict[int, Tree]] = {tree: {} for tree in numbers}
        for group in groups:
            for tree, own in grow_in_rounds(spec.some(group), numbers, blocks, heard, work):
                of_set[tree].update(zip(group, own, strict=True))
        yield from ((tree, [own[s] for s in range(spec.n_sets)]) for tree, own in of_set.items())
        return
    batches = blocks.grow(spec, numbers, begin, heard)
    batch_of = {number: batch for batch in batches for number in batch.numbers}
    place_of = {number: place for batch in batches for place, number in enumerate(batch.numbers)}
    empty: dict[int, list[int]] = defaultdict(list)  # sets without a row in the bag of a tree
    for batch in batches:
        for place, number in batch.empty:
            empty[batch.numbers[place]].append(number)
        if work is not None:
            work.update(batch.shared)
    gathered = [(batch, index) for batch in batches for index in range(len(batch.gathered))]
    nodes = [batch.gathered[index] for batch, index in gathered]
    missing = Counter(node.number for node in nodes)

    def complete(number: int) -> dict[int, Tree]:
        return batch_of[number].trees(place_of[number])

    ready = [number for number in numbers if number not in missing and number not in empty]
    yield from ((number, list(complete(number).values())) for number in ready)
    update = joined([batch.take_update() for batch in batches])
    for place, pieces in blocks.finish(update, nodes):
        batch, index = gathered[place]
        number = batch.numbers[batch.graft(index, pieces)]
        missing[number] -= 1
        if missing[number] == 0 and number not in empty:
            yield number, list(complete(number).values())
    for number, alone in empty.items():  # growths of their own, when this one is over
        trees = complete(number)
        for each in alone:
            ((_, (trees[each],)),) = grow_in_rounds(spec.some([each]), [number], blocks)
        yield number, [trees[each] for each in range(spec.n_sets)]


AT_ONCE = 64  # nodes whose rows are gathered at a time


class LocalBlocks:
    """Blocks in this process, as `dtrees.core.grow.round_spec.Blocks`.

    `values` are `CodeBook.code_values`, for random splits. A block is a task of `run` in a round,
    and so is a node that is finished. `work` is told what training sets have shared in these nodes.
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

    def grow(
        self,
        spec: RoundSpec,
        numbers: Sequence[int],
        begin: Roots,
        heard: Callable[[str, int], object],
    ) -> list[TreeBatch]:
        """Grow the nodes that are spread."""
        batch = TreeBatch(spec, numbers, begin)
        while (asked := batch.ask()) is not None:
            for what in asked.heard:
                heard(*what)
            batch.hear(self.count(asked.update, asked.requests))
        return [batch]

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
            block.gather(positions, [[node.node]])[0]
            for block, positions in zip(self._blocks, self._positions, strict=True)
        ]
        work: Counter[str] = Counter()
        rows = stacked(gathered)
        return grow_gathered(rows, node, self._values, self._arena, work=work), work
