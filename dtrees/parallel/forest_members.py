"""Forests that grow between workers, without the client: rounds, and then subtrees.

Each worker with blocks is a member of an epoch (`dtrees.parallel.epochs`). The trees of a batch are
dealt out: a member decides on the splits of its own, and counts its rows for all of them. So in a
round every member tells all others what its trees ask for, and gets what all rows add up to in the
nodes of its trees; histograms are added up and searched once, however many members there are::

    member 0   ask ═╪═ update, count own blocks, nodes of all trees ═╪═ search trees 0, 2, 4 ...
    member 1   ask ═╪═ update, count own blocks, nodes of all trees ═╪═ search trees 1, 3, 5 ...
                 gather                                          sum_parts

In the end there are nodes of few rows left. Members deal them out, the largest first, each to the
thread that has the fewest rows so far. Then rows go straight to the member that finishes their
node, in portions that fit the memory of all::

    member 0   rows of own blocks ═╪═ subtrees of nodes 0, 3 ...
    member 1   rows of own blocks ═╪═ subtrees of nodes 1, 2 ...
                                 deal

Codes stay results of tasks, which Dask may have on disk. A member takes them up block by block, and
remembers positions (`dtrees.parallel.block_tasks`). After about a second the client hears of the
trees so far, or of subtrees, which is what the next epoch begins with.

Where each tree follows from those before, as in AdaBoost, all members know all trees, and what
their own rows weigh in the next one (`MemberOfSequence`)::

    member 0   tree of all rows ── leaves of own rows ═╪═ own weights ── tree of all rows ...
                                                     gather
"""

from __future__ import annotations

import math
import pickle
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.gathered import GatheredNode, each_node, grow_gathered
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_spec import Roots, RoundSpec
from dtrees.core.grow.rounds import grow_in_rounds
from dtrees.core.grow.tree_batch import Asked, TreeBatch
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.core.stores.blocks.block import BlockOfRows, Common, GatheredRows, PositionIndex
from dtrees.core.stores.blocks.messages import (
    Counts,
    Root,
    SplitUpdate,
    add_up,
    joined,
    merge_bags,
)
from dtrees.parallel.block_tasks import PositionCache, Work, block_of, room_of_positions
from dtrees.parallel.distributed_apply import aligned
from dtrees.parallel.exchange import Epoch, Exchange
from dtrees.parallel.placed_blocks import PlaceOfBlock
from dtrees.parallel.tasks import TaskRunner
from dtrees.parallel.threads import LocalRunner
from dtrees.typing import T

U = TypeVar("U")


class Slice(NamedTuple):
    """What a member has done in a slice."""

    packed: dict[int, bytes]  # its batches by number (`TreeBatch.packed`)
    pack_seconds: float
    is_last: bool  # whether all nodes have grown
    updates: list[SplitUpdate]  # of the first member
    heard: Counter[str]  # of the first member, as `grow_in_rounds` tells it


@dataclass(frozen=True, eq=False)
class ForestSoFar:
    """What an epoch begins with."""

    spec: RoundSpec
    packed: Sequence[bytes]  # batches of trees (`TreeBatch.packed`)
    updates: Sequence[SplitUpdate]
    finished: frozenset[int]  # nodes of few rows whose subtrees have grown
    rows_at_once: int  # of such nodes, that a member takes out of its blocks

    def member(self, members: Exchange, places: Sequence[PlaceOfBlock]) -> MemberOfForest:
        """A member, as the epoch begins."""
        return MemberOfForest.of(members, places, self)


@dataclass(eq=False)
class MemberOfForest:
    """The trees of a member, and what it knows of all others."""

    own: dict[int, TreeBatch]
    member_of: list[int]  # of each batch
    so_far: ForestSoFar
    updates: list[SplitUpdate]  # so far
    places: Sequence[PlaceOfBlock]
    worker: Any
    run: LocalRunner
    positions: PositionCache
    left: list[GatheredNode] | None = None  # nodes of few rows; None: others still grow
    threads: list[int] = field(default_factory=list)  # the member of each
    here: np.ndarray = field(default_factory=partial(np.zeros, 0))  # their rows in own blocks
    arena: Arena = field(default_factory=Arena)
    work: Work = field(default_factory=Work)  # in this slice
    targets: Sequence[Target] = ()  # of the blocks, where they are not those that these have

    @classmethod
    def of(
        cls,
        members: Exchange,
        places: Sequence[PlaceOfBlock],
        so_far: ForestSoFar,
    ) -> Self:
        """From the batches of all members and the updates so far."""
        from distributed import get_worker

        worker = get_worker()
        run = LocalRunner(max(1, worker.state.nthreads))
        spec = replace(so_far.spec, run=run)
        member_of = [k % members.n_members for k in range(len(so_far.packed))]
        own = {
            k: TreeBatch.unpacked(spec, so_far.packed[k])
            for k, member in enumerate(member_of)
            if member == members.rank
        }
        room = room_of_positions(worker.memory_manager.memory_limit, run.n_threads)
        positions = PositionCache(worker.address, room)
        return cls(own, member_of, so_far, list(so_far.updates), places, worker, run, positions)

    def grow_slice(self, members: Exchange, seconds: float, task: TaskRunner) -> Slice:
        """Grow nodes that are spread for so many seconds, by the clock of the first member."""
        began, n_before = time.monotonic(), len(self.updates)
        heard, is_late = Counter[str](), False
        while True:
            if task.cancelled.is_set():
                raise CancelledError
            asked = {k: batch.ask(is_late) for k, batch in self.own.items()}
            told = members.gather((asked, time.monotonic() > began + seconds))
            of_all = {k: own for each, _ in told for k, own in sorted(each.items()) if own}
            if not of_all:
                break
            is_late |= told[0][1]
            heard.update({what for each in of_all.values() for what, _ in each.heard[:1]})
            heard["pass"] += 1
            heard["code request"] += sum(len(each.heard) - 1 for each in of_all.values())
            parts: list[dict[int, Counts]] = [{} for _ in told]
            for k, counts in self._count(of_all).items():
                parts[self.member_of[k]][k] = counts
            for k, counts in members.sum_parts(parts, add_batches).items():
                self.own[k].hear(counts)
        packing = time.monotonic()
        packed = {k: batch.packed() for k, batch in self.own.items()}
        pack_seconds = time.monotonic() - packing
        is_last = not any(batch.frontier for batch in self.own.values())
        return Slice(packed, pack_seconds, is_last, self.updates[n_before:], heard)

    def _count(self, asked: Mapping[int, Asked]) -> dict[int, Counts]:
        """What the rows of the member add up to, by batch."""
        updates = [each.update for each in asked.values() if each.update is not None]
        if updates:
            self.updates.append(joined(updates))
        requests = [each.requests for each in asked.values()]
        together = [request for some in requests for request in some]

        def count(rows: BlockOfRows, positions: PositionIndex) -> Counts:
            return rows.count(positions, together)

        counts = add_up(self._of_threads(count, add_up))
        return dict(zip(asked, counts.split(requests), strict=True))

    def _of_threads(
        self,
        of_block: Callable[[BlockOfRows, PositionIndex], T],
        join: Callable[[Iterable[T]], U],
    ) -> list[U]:
        """What the blocks of each thread come to, which looks at one after the other."""

        def of_blocks(numbers: np.ndarray, own: Work) -> Iterator[T]:
            for number in numbers:
                place = self.places[number]
                codes, other = place.halves(self.worker)
                block = block_of(codes, other, self.targets[number] if self.targets else None)
                rows = BlockOfRows(block, self.so_far.spec.common)
                yield of_block(rows, self.positions.after(self.updates, place.number, rows, own))

        n_threads = min(self.run.n_threads, len(self.places))
        groups = np.array_split(np.arange(len(self.places)), n_threads)
        works = [Work() for _ in groups]
        some = map(of_blocks, groups, works)
        found = self.run([partial(join, each) for each in some])
        for own in works:
            self.work.update(own)
        return found

    # ---------------------------------------------------------------------------------------------
    # nodes of few rows

    def finish_slice(self, members: Exchange, seconds: float, task: TaskRunner) -> bytes:
        """Finish nodes of few rows for so many seconds.

        Returns the pickle of those of this member, and their subtrees, one for each set. Dask sends
        it in one piece, however many arrays there are.
        """
        began, is_late = time.monotonic(), False
        grown: list[tuple[int, Any]] = []
        if self.left is None:
            self._begin_nodes(members)
        while self.left and not is_late:
            if task.cancelled.is_set():
                raise CancelledError
            dealt = self._next_nodes(members)
            is_late = time.monotonic() > began + seconds
            told = members.deal([(is_late, own) for own in self._rows_of(dealt)])
            is_late = told[0][0]
            of_blocks = [of_block for _, of_member in told for of_block in of_member]
            some = zip(dealt[members.rank], zip(*of_blocks, strict=True), strict=True)
            for subtrees, done in self.run([partial(self._grow, *each, task) for each in some]):
                grown += subtrees
                self.work.update(done)
        pickled = pickle.dumps(grown, protocol=5)
        self.work["bytes_moved"] += len(pickled)
        return pickled

    def _grow(
        self, nodes: Sequence[GatheredNode], rows: Sequence[GatheredRows], task: TaskRunner
    ) -> tuple[list[tuple[int, Any]], Work]:
        """The subtrees of nodes from their rows in all blocks, on one thread."""
        work = Work()
        about = self.so_far.spec.values, self.arena, task, work
        some = zip(nodes, each_node(rows), strict=True)
        return [(node.node, grow_gathered(own, node, *about)) for node, own in some], work

    def _begin_nodes(self, members: Exchange) -> None:
        """Learn which nodes are to be finished, tree by tree, and take the last update."""
        batches = self.own.values()
        update = joined([batch.take_update() for batch in batches])
        own = [node for batch in batches for node in batch.gathered]
        told = members.gather((update, own, self.run.n_threads))
        self.updates.append(joined([update for update, *_ in told]))
        self.threads = [rank for rank, (*_, n) in enumerate(told) for _ in range(n)]
        nodes = [node for _, own, _ in told for node in own]
        nodes = [node for node in nodes if node.node not in self.so_far.finished]
        nodes.sort(key=lambda node: (node.number, -node.n, node.node))

        def n_rows(_: BlockOfRows, positions: PositionIndex) -> np.ndarray:
            return np.array([float(len(positions[node.node].rows)) for node in nodes])

        self.left, self.here = nodes, _sum(self._of_threads(n_rows, _sum))

    def _next_nodes(self, members: Exchange) -> list[list[list[GatheredNode]]]:
        """The nodes that are next, by member and by the thread of it that finishes them.

        No member takes too many rows out of its blocks, or gets too many, unless it is one node.
        """
        assert self.left is not None
        most, n_members = self.so_far.rows_at_once, members.n_members
        n_rows = np.cumsum([node.n for node in self.left])
        window = max(1, int(np.searchsorted(n_rows, most * n_members, "right")))
        here = np.cumsum(self.here[:window])
        members.largest(here)
        n = max(1, int(np.searchsorted(here, most, "right")))
        some, self.left, self.here = self.left[:n], self.left[n:], self.here[n:]
        loads = [(0, thread) for thread in range(len(self.threads))]
        of_threads: list[list[GatheredNode]] = [[] for _ in loads]
        for node in sorted(some, key=lambda node: -node.n):
            load, thread = heappop(loads)
            of_threads[thread].append(node)
            heappush(loads, (load + node.n, thread))
        dealt: list[list[list[GatheredNode]]] = [[] for _ in range(n_members)]
        for member, nodes in zip(self.threads, of_threads, strict=True):
            dealt[member] += [nodes] if nodes else []
        return dealt

    def _rows_of(
        self, dealt: Sequence[Sequence[Sequence[GatheredNode]]]
    ) -> list[list[list[GatheredRows]]]:
        """For each member the rows of each block, by thread."""
        groups = [[node.node for node in nodes] for own in dealt for nodes in own]

        def gather(rows: BlockOfRows, positions: PositionIndex) -> list[GatheredRows]:
            return rows.gather(positions, groups)

        found = [own for some in self._of_threads(gather, list) for own in some]
        bounds = pairwise([0, *np.cumsum([len(own) for own in dealt]).tolist()])
        return [[own[first:end] for own in found] for first, end in bounds]


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    return np.sum(list(arrays), axis=0)


def add_batches(one: dict[int, Counts], other: dict[int, Counts]) -> dict[int, Counts]:
    """The counts of two members for some batches."""
    return {k: add_up([counts, other[k]]) for k, counts in one.items()}


def grow_as_member(
    epoch: Epoch,
    rank: int,
    grow: Callable[[MemberOfForest, Exchange, float, TaskRunner], T],
    seconds: float,
    places: Sequence[PlaceOfBlock] = (),
    sent: Any = None,
) -> tuple[T, Work]:
    """What the task of a member does: `grow` for some seconds with the others; and its work.

    `places` and `sent` are there in the first task of an epoch.
    """
    task = TaskRunner()
    with epoch.joined(rank, task.cancelled.is_set) as members:
        if sent is not None:
            members.state["forest"] = sent.value.member(members, places)
        state: MemberOfForest = members.state["forest"]
        state.work = Work(cache_hits=0, rebuilds=0)
        try:
            found = grow(state, members, seconds, task)
            del members.work["rounds"]  # those of the trees count
            state.work.update(members.work)
            return found, state.work
        except BaseException:
            state.positions.end()
            raise


# -------------------------------------------------------------------------------------------------
# trees of which each follows from those before


class Follow(Protocol):
    """Of rows, and of the first trees: each tree, or None for these, and what is told of it."""

    @property
    def n_estimators(self) -> int:
        """Trees at most."""

    def __call__(self, rows: Any, trees: Sequence[Tree]) -> Generator[tuple[Tree | None, Any]]:
        """Grow them."""


@dataclass(frozen=True, eq=False)
class SequenceSoFar(ForestSoFar):
    """What an epoch begins with, where each tree follows from those before."""

    growth: ForestGrowth  # without rows
    follow: Follow
    trees: Sequence[Tree]
    n_told: int  # of these, of which the client has heard all

    def member(self, members: Exchange, places: Sequence[PlaceOfBlock]) -> MemberOfSequence:
        """A member, as the epoch begins."""
        found = MemberOfSequence.of(members, places, self)
        found.targets = [place.halves(found.worker)[1].target for place in places]
        found.members, found.member_of = members, [0]
        members.state["trees"] = islice(self.follow(found, self.trees), self.n_told, None)
        return found


class MemberOfSequence(MemberOfForest):
    """A member of those that grow one tree after the other, all of them each.

    It is the rows of `Follow`, and, as `Blocks`, those of all members.
    """

    so_far: SequenceSoFar
    members: Exchange
    is_late: bool

    def grow_sequence(
        self, members: Exchange, seconds: float, task: TaskRunner
    ) -> tuple[bytes, bool]:
        """Grow trees for so many seconds; the pickle of those, of the first member, and the end."""
        self.task, self.end, self.is_late = task, time.monotonic() + seconds, False
        found = []
        for each in members.state["trees"]:
            found.append(each)
            if self.is_late:
                break
        return pickle.dumps(None if members.rank else found, protocol=5), not self.is_late

    def gather(self, own: list[T]) -> list[T]:
        """What all blocks say, from what those of the member do."""
        told = self.members.gather((own, time.monotonic() > self.end))
        self.is_late = told[0][1]
        return [each for some, _ in told for each in some]

    def leaves(self, tree: Tree) -> list[np.ndarray]:
        """Leaf of every row of each block, intp (n,)."""

        def of_block(place: PlaceOfBlock) -> np.ndarray:
            coded = aligned(place.halves(self.worker)[0].coded)
            return CodedRows(coded).leaves(tree, np.arange(coded.n_rows))

        return self.run([partial(of_block, place) for place in self.places])

    def tree(self, number: int, targets: Sequence[Target]) -> Tree:
        """Grow a tree from other targets of the blocks."""
        self.targets, heaviest = targets, None
        means = [own.means for own in targets if own.means is not None]
        if means:
            heaviest = max(self.gather([float(own.max()) for own in means]))
        spec = replace(self.so_far.spec.weighed(targets[0].sample, heaviest), run=self.run)
        self.so_far = replace(self.so_far, spec=spec)
        ((_, (tree,)),) = grow_in_rounds(spec, [number], self)
        return self.so_far.growth.pruned(tree)

    def begin(self, common: Common) -> None:
        """Begin a tree."""
        self.updates, self.left = [], None
        self.positions.forget()

    def bags(self, roots: Sequence[Root], n_sets: int) -> list[tuple[Counts, list[int]]]:
        """What bags add up to."""

        def of_block(rows: BlockOfRows, _: PositionIndex) -> list[tuple[Counts, list[int]]]:
            return rows.bags(roots, n_sets)

        self._see({"pass": 1})
        return merge_bags(self.gather(self._of_threads(of_block, merge_bags)))

    def grow(
        self, spec: RoundSpec, numbers: Sequence[int], begin: Roots, heard: Any
    ) -> list[TreeBatch]:
        """Grow the nodes that are spread, on which the first member decides."""
        batches = [TreeBatch(spec, numbers, begin) for _ in "ab"]
        self.own = {} if self.members.rank else {0: batches.pop()}
        if spec.is_small:
            return batches[:1]
        found = self.grow_slice(self.members, math.inf, self.task)
        self._see(found.heard)
        return [TreeBatch.unpacked(spec, self.members.gather(found.packed)[0][0])]

    def finish(
        self, update: SplitUpdate, nodes: Sequence[GatheredNode]
    ) -> Iterator[tuple[int, tuple[PartialTree, ...]]]:
        """The subtrees of some nodes, of which each member finishes some."""
        places = {node.node: place for place, node in enumerate(nodes)}
        if nodes:
            self._see({"pass": 1})
            own = self.finish_slice(self.members, math.inf, self.task)
            for pickled in self.members.gather(own):
                for node, trees in pickle.loads(pickled):
                    yield places[node], trees

    def _see(self, heard: Mapping[str, int]) -> None:
        if self.members.rank == 0:
            names = {"pass": "passes"}
            for what, n in heard.items():
                self.work[names.get(what, f"{what.replace(' ', '_')}s")] += n
