"""Growth in rounds: trees whose rows are in several places.

A round takes open nodes, of all trees of a wave and of all training sets, asks every
block of rows for what they add up to, searches the sums, and tells the blocks how the nodes part
([SK] 3)::

    driver    open nodes --requests--> blocks --counts--> sum --search--> splits --step--> blocks
              (small, knows no row)    (hold the rows, know no split but those of the steps)

    round 0   roots of all trees
    round 1   their children ...
    the end   nodes that have few rows: these are brought to one place, and finished there

The last line is ours: a node is spread only as long as it is large, so what is sent grows with the
rows and not with 2^depth. How many bytes a round sends is bounded by a budget, beyond which nodes
of one depth take several rounds; a node whose draw of columns is to be extended takes one more.

Where all columns are searched and both children of a node are spread, the smaller one is counted,
and the larger one is the parent less the smaller one: integers, exact.

Training sets go together as long as their tests look at the same column
(`dtrees.core.stores.blocks.block`), as in `dtrees.core.grow._shared`; those that differ part. A
set's tree is that of its own fit, bit for bit: its scores are read from the same integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from dtrees._random import BOOTSTRAP, keyed_largest
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale, scale_of_sums
from dtrees.core.grow._arena import Arena
from dtrees.core.grow._round_search import RoundSearch, child_path
from dtrees.core.grow.assembly import Thresholds, join, trees_of
from dtrees.core.grow.frontier import Frontier, GrowingTree, OpenNode, Pair
from dtrees.core.grow.gathered import Unfinished, grow_brought
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.membership.shares import Shares
from dtrees.core.model.tree import Tree
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._block import CLASS_0, HIGHEST, LOWEST, MOMENT, TARGET, WEIGHT, N
from dtrees.core.stores.blocks.block import Block, BlockOfRows, Common, Places
from dtrees.core.stores.blocks.messages import (
    Counts,
    FoundSplit,
    Parting,
    Request,
    Root,
    Step,
    Sums,
    add_up,
)
from dtrees.typing import Runner, serial

HISTOGRAM_BUDGET = 256 * 2**20
GATHER_ROWS = 65_536
ROOT_PATH = 0
AT_ONCE = 64  # nodes whose rows are brought together at a time


class Blocks(Protocol):
    """All rows, wherever they are."""

    def begin(self, common: Common) -> None:
        """Begin a growth; the places of the one before are forgotten."""

    def bags(self, roots: Sequence[Root]) -> list[tuple[Counts, list[int]]]:
        """For each tree what its bag adds up to, and the key of the largest draw of each block."""

    def count(self, step: Step, requests: Sequence[Request]) -> Counts:
        """Take a step; then what some nodes add up to."""

    def finish(
        self, step: Step, nodes: Sequence[Unfinished]
    ) -> Iterable[tuple[int, tuple[PartialTree, ...]]]:
        """Take the last step; then the subtrees of some nodes, by their place, in any order."""


class BlocksHere:
    """Blocks in this process.

    Parameters
    ----------
    blocks : sequence of Block
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, for random splits.
    run : Runner, default=serial
        A block is a task in a round, and so is a node that is finished.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        values: tuple[np.ndarray, np.ndarray] | None = None,
        run: Runner = serial,
    ) -> None:
        self._given = blocks
        self._blocks: list[BlockOfRows] = []
        self._places: list[Places] = []
        self._values = values
        self._run = run
        self._pool = Arena()

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        self._blocks = [BlockOfRows(block, common) for block in self._given]
        self._places = [{} for _ in self._given]

    def bags(self, roots: Sequence[Root]) -> list[tuple[Counts, list[int]]]:
        """What bags add up to."""
        return merge_bags(self._run([partial(block.bags, roots) for block in self._blocks]))

    def count(self, step: Step, requests: Sequence[Request]) -> Counts:
        """What some nodes add up to."""

        def of_block(place: int) -> Counts:
            self._advance(place, step)
            return self._blocks[place].count(self._places[place], requests)

        return add_up(self._run([partial(of_block, i) for i in range(len(self._blocks))]))

    def finish(
        self, step: Step, nodes: Sequence[Unfinished]
    ) -> Iterator[tuple[int, tuple[PartialTree, ...]]]:
        """The subtrees of some nodes."""
        self._run([partial(self._advance, place, step) for place in range(len(self._blocks))])
        for first in range(0, len(nodes), AT_ONCE):
            some = range(first, min(first + AT_ONCE, len(nodes)))
            yield from zip(
                some, self._run([partial(self._finish, nodes[i]) for i in some]), strict=True
            )

    def _advance(self, place: int, step: Step) -> None:
        self._places[place] = self._blocks[place].advance(self._places[place], step)

    def _finish(self, node: Unfinished) -> tuple[PartialTree, ...]:
        brought = [
            block.bring(places, [node.node])[0]
            for block, places in zip(self._blocks, self._places, strict=True)
        ]
        return grow_brought(brought, node, self._values, self._pool)


def merge_bags(
    of_blocks: Sequence[Sequence[tuple[Counts, list[int]]]],
) -> list[tuple[Counts, list[int]]]:
    """What `BlockOfRows.bags` says of several blocks, as one."""
    return [
        (add_up([counts for counts, _ in of_tree]), [key for _, keys in of_tree for key in keys])
        for of_tree in zip(*of_blocks, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Seed:
    """What trees are grown from in rounds.

    Attributes
    ----------
    common : Common
    sample : CodedMatrix
        At least one row of the table, whose columns are those of all.
    target : Target
        Of the same rows.
    thresholds : callable
        `CodeBook.thresholds`.
    n_sets : int
    n_rows : int64 (n_sets,)
        Rows of positive weight of each training set.
    shares : Shares, default=Shares()
    may_be_empty : bool, default=False
        Whether a bag could have no rows that count.
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, for random splits.
    histogram_budget : int
        Bytes of the histograms of a round.
    gather_rows : int
        Nodes of at most so many rows are brought together.
    """

    common: Common
    sample: CodedMatrix
    target: Target
    thresholds: Thresholds
    n_sets: int
    n_rows: np.ndarray
    shares: Shares = field(default_factory=Shares)
    may_be_empty: bool = False
    values: tuple[np.ndarray, np.ndarray] | None = None
    histogram_budget: int = HISTOGRAM_BUDGET
    gather_rows: int = GATHER_ROWS

    @property
    def is_apart(self) -> bool:
        """Whether what rows add depends on the set that they are in."""
        draws = self.common.draws
        return self.common.rules.criterion == "poisson" or (draws is not None and draws.balanced)

    def only(self, number: int) -> Seed:
        """The same for one of the sets."""
        assert self.common.masks is not None
        own = (self.common.masks >> np.uint64(number)) & np.uint64(1)
        common = replace(self.common, masks=own)
        n_rows = self.n_rows[number : number + 1]
        return replace(self, common=common, n_sets=1, n_rows=n_rows, may_be_empty=True)


def grow_in_rounds(
    seed: Seed,
    numbers: Sequence[int],
    blocks: Blocks,
    heard: Callable[[str, int], object] = lambda what, n: None,
) -> Generator[tuple[int, list[Tree]]]:
    """Grow the trees of a wave.

    Parameters
    ----------
    seed : Seed
    numbers : sequence of int
        Of the trees.
    blocks : Blocks
    heard : callable
        Called with "round" and the least depth of its nodes before each of them.

    Yields
    ------
    number : int
    trees : list of Tree
        By training set, as soon as all of them are complete, in any order.
    """
    if seed.n_sets > 1 and seed.is_apart:
        yield from _set_by_set(seed, numbers, blocks, heard)
        return
    blocks.begin(seed.common)
    wave = Wave(seed, numbers, blocks)
    wave.open_roots()
    while wave.frontier:
        batch = wave.next_batch()
        heard("round", min(node.depth for node in batch))
        wave.take(batch, blocks.count(wave.take_step(), wave.requests(batch)))
    missing = [0] * len(numbers)
    for node in wave.unfinished:
        missing[node.tree] += 1
    empty: dict[int, list[int]] = defaultdict(list)  # sets without a row in the bag of a tree
    for tree, number in wave.empty:
        empty[tree].append(number)
    ready = [tree for tree, count in enumerate(missing) if count == 0]
    yield from ((numbers[tree], wave.trees(tree)) for tree in ready if tree not in empty)
    for place, pieces in blocks.finish(wave.take_step(), wave.unfinished):
        tree = wave.graft(place, pieces)
        missing[tree] -= 1
        if missing[tree] == 0 and tree not in empty:
            yield numbers[tree], wave.trees(tree)
    for tree, alone in empty.items():  # growths of their own, when this one is over
        trees = wave.trees(tree)
        for number in alone:
            ((_, (trees[number],)),) = grow_in_rounds(seed.only(number), [numbers[tree]], blocks)
        yield numbers[tree], trees


def _set_by_set(
    seed: Seed,
    numbers: Sequence[int],
    blocks: Blocks,
    heard: Callable[[str, int], object],
) -> Generator[tuple[int, list[Tree]]]:
    """The same, where sets have nothing in common."""
    found = [
        dict(grow_in_rounds(seed.only(number), numbers, blocks, heard))
        for number in range(seed.n_sets)
    ]
    for tree in numbers:
        yield tree, [of_set[tree][0] for of_set in found]


class Wave:
    """Trees that grow in the same rounds.

    Parameters
    ----------
    seed, numbers, blocks
        As for `grow_in_rounds`.
    """

    def __init__(self, seed: Seed, numbers: Sequence[int], blocks: Blocks) -> None:
        self._seed = seed
        self._numbers = list(numbers)
        self._blocks = blocks
        rules = seed.common.rules
        n_columns = seed.sample.n_columns
        most = n_columns if rules.max_features is None else rules.max_features
        self._n_drawn = min(most, n_columns)
        self._all_columns = np.arange(n_columns, dtype=np.int32)
        self.frontier = Frontier()
        self.unfinished: list[Unfinished] = []
        self.empty: list[tuple[int, int]] = []  # bags of trees that have no row of a set
        self._placeholders: list[dict[int, int]] = []
        n_statistics = seed.target.n_statistics
        self._trees = [
            [GrowingTree(n_statistics) for _ in range(seed.n_sets)] for _ in self._numbers
        ]
        scale = Scale(1.0, 1.0)
        target = self._target_of(Root(0, 0))
        self._drawers = [self._round_search(target, number, rules, scale) for number in numbers]
        self._cells = self._drawers[0].histogram_sizes()
        self._targets: list[Target] = []
        self._searchers: list[dict[int, Searcher]] = [{} for _ in self._numbers]
        self._n_nodes = 0
        self._columns: dict[int, np.ndarray] = {}  # that were asked for, by node
        self._roots: list[Root] = []
        self._partings: list[Parting] = []
        self._done: list[int] = []

    def _round_search(
        self, target: Target, number: int, rules: GrowthRules, scale: Scale
    ) -> RoundSearch:
        rules = replace(rules, tree=number)
        return RoundSearch(Dataset(self._seed.sample, target, rules, scale, self._seed.values))

    def _new_node(self) -> int:
        self._n_nodes += 1
        return self._n_nodes - 1

    # ---------------------------------------------------------------------------------------------
    # roots

    def open_roots(self) -> None:
        """Open a node for each tree, once it is known what its bag needs to know of itself."""
        roots = [Root(self._new_node(), number) for number in self._numbers]
        if self._looks_at_bags():
            roots = self._with_bags(roots)
        self._roots = roots
        self._targets = [self._target_of(root) for root in roots]
        sets = tuple(range(self._seed.n_sets))
        n = int(self._seed.n_rows.max(initial=0))
        self.frontier.extend(
            OpenNode(root.node, tree, sets, 0, ROOT_PATH, {}, n) for tree, root in enumerate(roots)
        )

    def _looks_at_bags(self) -> bool:
        """Whether bags are summed up before they are counted.

        They have to be, to be balanced, for the scale of a deviance, or as they may be empty.
        """
        draws = self._seed.common.draws
        if self._seed.n_sets > 1:  # it is seen when they are counted
            return False
        if self._seed.common.rules.criterion == "poisson":
            return True
        return draws is not None and (draws.balanced or self._seed.may_be_empty)

    def _with_bags(self, roots: Sequence[Root]) -> list[Root]:
        n_classes = self._seed.target.n_classes
        facts = self._blocks.bags(roots)
        empty = []
        for place, (counts, keys) in enumerate(facts):
            if counts.sums[0, N] == 0:
                empty.append((place, keys))
        found = list(roots)
        draws = self._seed.common.draws
        if empty:
            assert draws is not None
            for place, keys in empty:
                candidates = np.array(sorted(set(keys)), dtype=np.uint64)
                number = roots[place].number
                key = int(keyed_largest(draws.seed, BOOTSTRAP, number, candidates))
                found[place] = replace(found[place], key=key)
            again = self._blocks.bags([found[place] for place, _ in empty])
            for (place, _), fact in zip(empty, again, strict=True):
                facts[place] = fact
        for place, (counts, _) in enumerate(facts):
            sums = sums_of(counts.sums[0], n_classes)
            found[place] = self._adjusted(found[place], sums)
        return found

    def _adjusted(self, root: Root, sums: Sums) -> Root:
        """A root that knows what its bag adds up to."""
        target, draws = self._seed.target, self._seed.common.draws
        criterion = self._seed.common.rules.criterion
        if draws is not None and draws.balanced:
            assert sums.classes is not None
            multiplier, exponent = target.balanced_multipliers(sums.classes.tolist())
            root = replace(root, class_multiplier=multiplier, class_exponent=exponent)
        if criterion == "poisson":
            largest = max(1, sums.highest)
            scale = scale_of_sums(sums.weight, largest, target.weight_unit, criterion)
            root = replace(root, fixed_point=scale.fixed_point)
        return root

    def _target_of(self, root: Root) -> Target:
        """Some rows of the target of a bag, for its units."""
        target = self._seed.target
        if self._seed.common.draws is not None:
            target = target.bagged(np.ones(target.n_rows, dtype=np.uint16))
        if root.class_multiplier is not None:
            target = replace(
                target,
                class_multiplier=root.class_multiplier,
                class_exponent=root.class_exponent,
            )
        return target

    def _searcher(self, tree: int, number: int, sums: Sums) -> Searcher:
        """What searches the nodes of a tree of a set, which begins with these sums."""
        seed, target = self._seed, self._targets[tree]
        rules = seed.common.rules
        scale = scale_of_sums(
            sums.weight, max(1, sums.highest), target.weight_unit, rules.criterion
        )
        weight = sums.weight * target.weight_unit
        rules = seed.shares.applied(rules, int(seed.n_rows[number]), weight)
        rules = replace(rules, tree=self._numbers[tree])
        return Searcher(rules, scale, self._round_search(target, rules.tree, rules, scale))

    # ---------------------------------------------------------------------------------------------
    # a round

    def next_batch(self) -> list[OpenNode]:
        """The nodes of the next round."""
        if self._n_drawn == len(self._all_columns):
            cells = int(self._cells.sum())
        else:
            cells = int(np.sort(self._cells)[-self._n_drawn :].sum())
        batch = self.frontier.next_batch(8 * cells, self._seed.histogram_budget)
        return sorted(batch, key=lambda node: node.tree)

    def take_step(self) -> Step:
        """What has changed since the last one."""
        step = Step(tuple(self._roots), tuple(self._partings), tuple(self._done))
        self._roots, self._partings, self._done = [], [], []
        return step

    def requests(self, batch: Sequence[OpenNode]) -> list[Request]:
        """What the blocks are asked for."""
        found = []
        for node in batch:
            columns = self._columns_of(node)
            self._columns[node.node] = columns
            asked = columns
            if node.pair is not None and node.pair.large == node.node:
                asked = columns[:0]
            n_numbers = len(node.sets) * int(self._cells[asked].sum())
            found.append(Request(node.node, node.members, asked, n_numbers))
        return found

    def _columns_of(self, node: OpenNode) -> np.ndarray:
        """Columns that are searched next; none where the node is a leaf whatever it adds up to."""
        depth = self._seed.common.rules.max_depth
        if depth is not None and node.depth >= depth:
            return self._all_columns[:0]
        if self._n_drawn == len(self._all_columns):
            return self._all_columns
        drawer = self._drawers[node.tree]
        if node.first == 0:
            return np.sort(drawer.columns_at(node.path, 0, self._n_drawn))
        return drawer.columns_at(node.path, node.first, self._n_drawn)

    def take(self, batch: Sequence[OpenNode], counts: Counts) -> None:
        """Search what the blocks have counted, and open the children."""
        opened: list[OpenNode] = []
        sums_at = cells_at = 0
        of_nodes: dict[int, dict[int, np.ndarray]] = {}
        requests = []
        for node in batch:
            is_large = node.pair is not None and node.pair.large == node.node
            columns = self._columns.pop(node.node)
            n_cells = 0 if is_large else int(self._cells[columns].sum())
            rows = counts.sums[sums_at : sums_at + len(node.sets)]
            sums_at += len(node.sets)
            of_sets = {}
            for number in node.sets:
                of_sets[number] = counts.histogram[cells_at : cells_at + n_cells]
                cells_at += n_cells
            of_nodes[node.node] = of_sets
            requests.append((node, columns, rows))
        for node, columns, rows in requests:
            of_sets = of_nodes[node.node]
            pair = node.pair
            if pair is not None and pair.large == node.node:
                small = of_nodes[pair.small]
                of_sets = {number: pair.histograms[number] - small[number] for number in node.sets}
            opened += self._search(node, columns, rows, of_sets)
        self.frontier.extend(opened)

    def _search(
        self,
        node: OpenNode,
        columns: np.ndarray,
        rows: np.ndarray,
        histograms: dict[int, np.ndarray],
    ) -> list[OpenNode]:
        """Search a node for each of its sets; returns what is open next."""
        found: dict[int, FoundSplit] = {}
        again: list[int] = []
        for place, number in enumerate(node.sets):
            if number not in node.records and not self._record(node, number, rows[place]):
                continue
            if len(columns) == 0:
                continue
            searcher = self._searchers[node.tree][number].search
            split, can_be_split = searcher.search(
                histograms[number], columns, node.sums[number], node.path, node.first > 0
            )
            if split is not None:
                found[number] = split
            elif not can_be_split and node.first + len(columns) < len(self._all_columns):
                again.append(number)
        opened = []
        by_column: dict[int, list[int]] = defaultdict(list)
        for number, split in found.items():
            by_column[split.column].append(number)
        for column in sorted(by_column):
            opened += self._part(node, column, by_column[column], found, histograms)
        if again:
            rest = replace(node, sets=tuple(again), first=node.first + len(columns), pair=None)
            return [rest, *opened]
        self._done.append(node.node)
        return opened

    def _record(self, node: OpenNode, number: int, row: np.ndarray) -> bool:
        """Record a node of a set; whether it is to be searched."""
        sums = sums_of(row, self._seed.target.n_classes)
        if sums.n == 0:
            assert node.depth == 0
            self.empty.append((node.tree, number))
            self._trees[node.tree][number].add(sums)
            return False
        searchers = self._searchers[node.tree]
        if number not in searchers:
            searchers[number] = self._searcher(node.tree, number, sums)
        impurity, is_leaf = searchers[number].search.describe(sums, node.depth)
        tree = self._trees[node.tree][number]
        record = tree.add(sums, impurity)
        if number in node.parents:
            parent, is_left = node.parents[number]
            tree.link(parent, is_left, record)
        if is_leaf:
            return False
        node.records[number], node.sums[number] = record, sums
        return True

    def _part(
        self,
        node: OpenNode,
        column: int,
        sets: list[int],
        found: dict[int, FoundSplit],
        histograms: dict[int, np.ndarray],
    ) -> list[OpenNode]:
        """Write the tests of sets that go on together; their children, where they stay open."""
        most = {True: 0, False: 0}
        total = {True: 0, False: 0}
        for number in sets:
            split = found[number]
            self._trees[node.tree][number].split(node.records[number], split)
            n_right = node.sums[number].n - split.n_left
            for is_left, n_side in ((True, split.n_left), (False, n_right)):
                most[is_left] = max(most[is_left], n_side)
                total[is_left] += n_side
        left, right = self._new_node(), self._new_node()
        tests = tuple((number, found[number]) for number in sets)
        self._partings.append(Parting(node.node, left, right, column, tests))
        opened = []
        for child, is_left in ((left, True), (right, False)):
            parents = {number: (node.records[number], is_left) for number in sets}
            path = child_path(node.path, is_left)
            new = OpenNode(
                child, node.tree, tuple(sets), node.depth + 1, path, parents, most[is_left]
            )
            if self._is_gathered(new):
                self._leave(new)
            else:
                opened.append(new)
        if len(opened) == 2 and len(self._columns_of(opened[0])) == len(self._all_columns):
            small, large = (left, right) if total[True] <= total[False] else (right, left)
            pair = Pair(small, large, {number: histograms[number] for number in sets})
            for new in opened:
                new.pair = pair
        return opened

    # ---------------------------------------------------------------------------------------------
    # the end

    def _is_gathered(self, node: OpenNode) -> bool:
        """Whether the rows of a node are brought together: few, and it may still be split."""
        depth = self._seed.common.rules.max_depth
        is_last = depth is not None and node.depth >= depth
        return node.n <= self._seed.gather_rows and not is_last

    def _leave(self, node: OpenNode) -> None:
        """Put a node off until all of its tree that is spread has grown."""
        searchers = self._searchers[node.tree]
        places = {}
        for number in node.sets:
            tree = self._trees[node.tree][number]
            places[number] = tree.add(None)
            parent, is_left = node.parents[number]
            tree.link(parent, is_left, places[number])
        self._placeholders.append(places)
        self.unfinished.append(
            Unfinished(
                node.node,
                node.tree,
                self._numbers[node.tree],
                node.sets,
                node.depth,
                node.path,
                node.n,
                tuple(searchers[number].rules for number in node.sets),
                tuple(searchers[number].scale for number in node.sets),
            )
        )

    def graft(self, place: int, pieces: Sequence[PartialTree]) -> int:
        """Take the finished subtrees of a node, one for each of its sets; returns the tree."""
        node = self.unfinished[place]
        for number, piece in zip(node.sets, pieces, strict=True):
            record = self._placeholders[place][number]
            self._trees[node.tree][number].graft(record, piece)
        return node.tree

    def trees(self, tree: int) -> list[Tree]:
        """The trees of all sets, complete; their records are given up."""
        pieces = [join(growing.pieces()) for growing in self._trees[tree]]
        self._trees[tree] = []
        seed = self._seed
        return trees_of(
            pieces,
            self._targets[tree],
            seed.sample.n_codes,
            seed.thresholds,
            replace(seed.common.rules, tree=self._numbers[tree]),
        )


@dataclass(frozen=True, eq=False)
class Searcher:
    """What searches the nodes of one tree of one set.

    Attributes
    ----------
    rules : GrowthRules
    scale : Scale
    search : RoundSearch
    """

    rules: GrowthRules
    scale: Scale
    search: RoundSearch


def sums_of(row: np.ndarray, n_classes: int) -> Sums:
    """Sums as `dtrees.core.stores.blocks._block.count` writes them."""
    high, middle, low = row[MOMENT : MOMENT + 3].tolist()
    return Sums(
        n=int(row[N]),
        weight=int(row[WEIGHT]),
        target=int(row[TARGET]),
        moment=(high << 64) + (middle << 32) + low,
        lowest=int(row[LOWEST]),
        highest=int(row[HIGHEST]),
        classes=row[CLASS_0:].copy() if n_classes > 0 else None,
    )
