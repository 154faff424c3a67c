"""Trees that grow in the same rounds: their open nodes, what is asked of blocks, and the splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dtrees.core.grow._round_search import child_path
from dtrees.core.grow.assembly import join, trees_of
from dtrees.core.grow.frontier import Frontier, GrowingTree, OpenNode, Pair
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_roots import Searcher, drawer_of, roots_of, searcher_of, target_of
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks.messages import (
    Counts,
    FoundSplit,
    HistogramRequest,
    NodeSplit,
    SplitUpdate,
    Sums,
)

ROOT_PATH = 0


class TreeBatch:
    """Trees that grow in the same rounds.

    Parameters
    ----------
    spec, numbers, blocks
        As for `dtrees.core.grow.rounds.grow_in_rounds`.

    Attributes
    ----------
    frontier : Frontier
    gathered : list of GatheredNode
        Nodes of few rows, which are finished at the end.
    empty : list of (int, int)
        Trees, and sets that have no row in their bags.
    """

    def __init__(self, spec: RoundSpec, numbers: Sequence[int], blocks: Blocks) -> None:
        self._spec = spec
        self._numbers = list(numbers)
        n_columns = spec.sample.n_columns
        most = spec.common.rules.max_features
        self._n_drawn = n_columns if most is None else min(most, n_columns)
        self._all_columns = np.arange(n_columns, dtype=np.int32)
        self._drawers = [drawer_of(spec, number) for number in numbers]
        self._cells = self._drawers[0].histogram_sizes()
        self._roots = roots_of(spec, numbers, blocks)
        self._n_nodes = len(self._roots)
        self._targets = [target_of(spec, root) for root in self._roots]
        self._searchers: list[dict[int, Searcher]] = [{} for _ in numbers]
        n_statistics = spec.target.n_statistics
        self._trees = [[GrowingTree(n_statistics) for _ in range(spec.n_sets)] for _ in numbers]
        self._splits: list[NodeSplit] = []
        self._done: list[int] = []
        self._placeholders: list[dict[int, int]] = []
        self.gathered: list[GatheredNode] = []
        self.empty: list[tuple[int, int]] = []
        self.frontier = Frontier()
        sets, n = tuple(range(spec.n_sets)), int(spec.n_rows.max(initial=0))
        self.frontier.extend(
            OpenNode(root.node, tree, sets, 0, ROOT_PATH, {}, n)
            for tree, root in enumerate(self._roots)
        )

    # ---------------------------------------------------------------------------------------------
    # a round

    def next_nodes(self) -> list[OpenNode]:
        """The nodes of the next round."""
        cells = int(np.sort(self._cells)[-self._n_drawn :].sum())
        nodes = self.frontier.next_nodes(8 * cells, self._spec.histogram_budget)
        return sorted(nodes, key=lambda node: node.tree)

    def take_update(self) -> SplitUpdate:
        """What has changed since the last one."""
        update = SplitUpdate(tuple(self._roots), tuple(self._splits), tuple(self._done))
        self._roots, self._splits, self._done = [], [], []
        return update

    def requests(self, nodes: Sequence[OpenNode]) -> list[HistogramRequest]:
        """What the blocks are asked for."""
        found = []
        for node in nodes:
            node.columns = self._columns_of(node)
            asked = node.columns[:0] if node.is_large else node.columns
            n_numbers = len(node.sets) * int(self._cells[asked].sum())
            found.append(HistogramRequest(node.node, node.members, asked, n_numbers))
        return found

    def _columns_of(self, node: OpenNode) -> np.ndarray:
        """Columns that are searched next; none where the node is a leaf whatever it adds up to."""
        if self._is_last(node):
            return self._all_columns[:0]
        if self._n_drawn == len(self._all_columns):
            return self._all_columns
        drawn: np.ndarray = self._drawers[node.tree].columns_at(
            node.path, node.first, self._n_drawn
        )
        return np.sort(drawn) if node.first == 0 else drawn

    def _is_last(self, node: OpenNode) -> bool:
        depth = self._spec.common.rules.max_depth
        return depth is not None and node.depth >= depth

    def take(self, nodes: Sequence[OpenNode], counts: Counts) -> None:
        """Search what the blocks have counted, and open the children."""
        histograms: dict[int, dict[int, np.ndarray]] = {}
        sums: dict[int, np.ndarray] = {}
        sums_at = cells_at = 0
        for node in nodes:
            n_sets = len(node.sets)
            n_cells = 0 if node.is_large else int(self._cells[node.columns].sum())
            sums[node.node] = counts.sums[sums_at : sums_at + n_sets]
            own = counts.histogram[cells_at : cells_at + n_sets * n_cells]
            histograms[node.node] = dict(zip(node.sets, own.reshape(n_sets, n_cells), strict=True))
            sums_at += n_sets
            cells_at += n_sets * n_cells
        opened: list[OpenNode] = []
        for node in nodes:
            of_sets, pair = histograms[node.node], node.pair
            if pair is not None and node.is_large:
                small = histograms[pair.small]
                of_sets = {number: pair.histograms[number] - small[number] for number in node.sets}
            opened += self._search(node, sums[node.node], of_sets)
        self.frontier.extend(opened)

    def _search(
        self, node: OpenNode, rows: np.ndarray, histograms: dict[int, np.ndarray]
    ) -> list[OpenNode]:
        """Search a node for each of its sets; returns what is open next."""
        found: dict[int, FoundSplit] = {}
        again: list[int] = []
        by_column: dict[int, list[int]] = defaultdict(list)
        searched = node.first + len(node.columns)
        for number, row in zip(node.sets, rows, strict=True):
            if number not in node.records and not self._record(node, number, row):
                continue
            if len(node.columns) == 0:
                continue
            split, can_be_split = self._searchers[node.tree][number].search.search(
                histograms[number], node.columns, node.sums[number], node.path, node.first > 0
            )
            if split is not None:
                found[number] = split
                by_column[split.column].append(number)
            elif not can_be_split and searched < len(self._all_columns):
                again.append(number)
        opened = []
        for _, sets in sorted(by_column.items()):
            splits = {number: found[number] for number in sets}
            opened += self._split(node, splits, histograms)
        if again:
            return [replace(node, sets=tuple(again), first=searched, pair=None), *opened]
        self._done.append(node.node)
        return opened

    def _record(self, node: OpenNode, number: int, row: np.ndarray) -> bool:
        """Record a node of a set; whether it is to be searched."""
        sums = Sums.of(row, self._spec.target.n_classes)
        tree, searchers = self._trees[node.tree][number], self._searchers[node.tree]
        if sums.n == 0:
            assert node.depth == 0
            self.empty.append((node.tree, number))
            tree.add(sums)
            return False
        if number not in searchers:
            target = self._targets[node.tree]
            of_tree = self._numbers[node.tree]
            searchers[number] = searcher_of(self._spec, of_tree, number, target, sums)
        impurity, is_leaf = searchers[number].search.describe(sums, node.depth)
        record = tree.add(sums, impurity)
        if number in node.parents:
            tree.link(*node.parents[number], record)
        if not is_leaf:
            node.records[number], node.sums[number] = record, sums
        return not is_leaf

    def _split(
        self, node: OpenNode, splits: dict[int, FoundSplit], histograms: dict[int, np.ndarray]
    ) -> list[OpenNode]:
        """Write the tests of sets that go on together; their children, where they stay open."""
        for number, split in splits.items():
            self._trees[node.tree][number].split(node.records[number], split)
        n_left = [split.n_left for split in splits.values()]
        n_right = [node.sums[number].n - split.n_left for number, split in splits.items()]
        left, right = self._n_nodes, self._n_nodes + 1
        self._n_nodes += 2
        column = next(iter(splits.values())).column
        self._splits.append(NodeSplit(node.node, left, right, column, tuple(splits.items())))
        opened = []
        for child, is_left, n_rows in ((left, True, n_left), (right, False, n_right)):
            parents = {number: (node.records[number], is_left) for number in splits}
            path = child_path(node.path, is_left)
            new = OpenNode(
                child, node.tree, tuple(splits), node.depth + 1, path, parents, max(n_rows)
            )
            if new.n <= self._spec.gather_rows and not self._is_last(new):
                self._gather(new)
            else:
                opened.append(new)
        if len(opened) == 2 and len(self._columns_of(opened[0])) == len(self._all_columns):
            small, large = (left, right) if sum(n_left) <= sum(n_right) else (right, left)
            pair = Pair(small, large, {number: histograms[number] for number in splits})
            for new in opened:
                new.pair = pair
        return opened

    # ---------------------------------------------------------------------------------------------
    # the end

    def _gather(self, node: OpenNode) -> None:
        """Put a node off until all of its tree that is spread has grown."""
        searchers = [self._searchers[node.tree][number] for number in node.sets]
        places = {}
        for number in node.sets:
            tree = self._trees[node.tree][number]
            places[number] = tree.add(None)
            tree.link(*node.parents[number], places[number])
        self._placeholders.append(places)
        self.gathered.append(
            GatheredNode(
                node.node,
                node.tree,
                self._numbers[node.tree],
                node.sets,
                node.depth,
                node.path,
                node.n,
                tuple(searcher.rules for searcher in searchers),
                tuple(searcher.scale for searcher in searchers),
            )
        )

    def graft(self, place: int, pieces: Sequence[PartialTree]) -> int:
        """Take the finished subtrees of a node, one for each of its sets; returns the tree."""
        node = self.gathered[place]
        for number, piece in zip(node.sets, pieces, strict=True):
            record = self._placeholders[place][number]
            self._trees[node.tree][number].graft(record, piece)
        return node.tree

    def trees(self, tree: int) -> list[Tree]:
        """The trees of all sets, complete; their records are given up."""
        pieces = [join(growing.pieces()) for growing in self._trees[tree]]
        self._trees[tree] = []
        spec = self._spec
        rules = replace(spec.common.rules, tree=self._numbers[tree])
        return trees_of(pieces, self._targets[tree], spec.sample.n_codes, spec.thresholds, rules)
