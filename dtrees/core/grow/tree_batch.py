"""Trees that grow in the same rounds: their open nodes, what is asked of blocks, and the splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dtrees.core.grow._round_tree import RoundNode, RoundTree
from dtrees.core.grow.assembly import join, trees_of
from dtrees.core.grow.frontier import Frontier, OpenNode, Pair
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_roots import columns_of, roots_of, target_of, tree_of
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks._histogram_store import drawn_columns, histogram_sizes
from dtrees.core.stores.blocks.messages import (
    Counts,
    FoundSplit,
    HistogramRequest,
    NodeSplit,
    SplitUpdate,
    Sums,
)


class _Split(NamedTuple):
    """A node of a training set that is split."""

    number: int
    test: FoundSplit
    left: RoundNode
    right: RoundNode


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
        self._columns = [columns_of(spec, number) for number in numbers]
        self._cells = histogram_sizes(self._columns[0])
        self._roots = roots_of(spec, numbers, blocks)
        self._n_nodes = len(self._roots)
        self._targets = [target_of(spec, root) for root in self._roots]
        self._trees: list[dict[int, RoundTree]] = [{} for _ in numbers]
        self._splits: list[NodeSplit] = []
        self._done: list[int] = []
        self._put_off: list[OpenNode] = []
        self.gathered: list[GatheredNode] = []
        self.empty: list[tuple[int, int]] = []
        self.frontier = Frontier()
        n = int(spec.n_rows.max(initial=0))
        self.frontier.extend(
            OpenNode(root.node, tree, {number: RoundNode() for number in range(spec.n_sets)}, n)
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
            n_numbers = len(node.of_sets) * int(self._cells[asked].sum())
            found.append(HistogramRequest(node.node, node.members, asked, n_numbers))
        return found

    def _columns_of(self, node: OpenNode) -> np.ndarray:
        """Columns that are searched next; none where the node is a leaf whatever it adds up to."""
        if self._is_last(node):
            return self._all_columns[:0]
        if self._n_drawn == len(self._all_columns):
            return self._all_columns
        drawn: np.ndarray = drawn_columns(
            self._columns[node.tree], node.path, node.first, self._n_drawn
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
            n_sets = len(node.of_sets)
            n_cells = 0 if node.is_large else int(self._cells[node.columns].sum())
            sums[node.node] = counts.sums[sums_at : sums_at + n_sets]
            own = counts.histogram[cells_at : cells_at + n_sets * n_cells]
            histograms[node.node] = dict(
                zip(node.of_sets, own.reshape(n_sets, n_cells), strict=True)
            )
            sums_at += n_sets
            cells_at += n_sets * n_cells
        opened: list[OpenNode] = []
        for node in nodes:
            of_sets, pair = histograms[node.node], node.pair
            if pair is not None and node.is_large:
                small = histograms[pair.small]
                of_sets = {number: pair.histograms[number] - own for number, own in small.items()}
            opened += self._search(node, sums[node.node], of_sets)
        self.frontier.extend(opened)

    def _search(
        self, node: OpenNode, rows: np.ndarray, histograms: dict[int, np.ndarray]
    ) -> list[OpenNode]:
        """Search a node for each of its sets; returns what is open next."""
        again: dict[int, RoundNode] = {}
        by_column: dict[int, list[_Split]] = defaultdict(list)
        searched = node.first + len(node.columns)
        for (number, own), row in zip(node.of_sets.items(), rows, strict=True):
            is_leaf = node.first == 0 and self._record(node, number, row)
            if is_leaf or len(node.columns) == 0:
                continue
            tree = self._trees[node.tree][number]
            children, can_be_split = tree.split(
                own, histograms[number], node.columns, node.first > 0
            )
            if children is not None:
                test = tree.test_of(own)
                by_column[test.column].append(_Split(number, test, *children))
            elif not can_be_split and searched < len(self._all_columns):
                again[number] = own
        opened = []
        for _, splits in sorted(by_column.items()):
            opened += self._open_children(node, splits, histograms)
        if again:
            return [replace(node, of_sets=again, first=searched, pair=None), *opened]
        self._done.append(node.node)
        return opened

    def _record(self, node: OpenNode, number: int, row: np.ndarray) -> bool:
        """Record a node of a set; whether it stays a leaf."""
        sums = Sums.of(row, self._spec.target.n_classes)
        trees = self._trees[node.tree]
        if sums.n == 0:
            assert node.depth == 0
            self.empty.append((node.tree, number))
            return True
        if number not in trees:
            target = self._targets[node.tree]
            trees[number] = tree_of(self._spec, self._numbers[node.tree], number, target, sums)
        is_leaf: bool = trees[number].record(node.of_sets[number], sums)
        return is_leaf

    def _open_children(
        self, node: OpenNode, splits: list[_Split], histograms: dict[int, np.ndarray]
    ) -> list[OpenNode]:
        """Children of sets that go on together; those that stay open."""
        left, right = self._n_nodes, self._n_nodes + 1
        self._n_nodes += 2
        tests = tuple((split.number, split.test) for split in splits)
        self._splits.append(NodeSplit(node.node, left, right, tests[0][1].column, tests))
        n_left = [split.left.n for split in splits]
        n_right = [split.right.n for split in splits]
        opened = []
        for new in (
            OpenNode(left, node.tree, {each.number: each.left for each in splits}, max(n_left)),
            OpenNode(right, node.tree, {each.number: each.right for each in splits}, max(n_right)),
        ):
            if new.n <= self._spec.gather_rows and not self._is_last(new):
                self._gather(new)
            else:
                opened.append(new)
        if len(opened) == 2 and len(self._columns_of(opened[0])) == len(self._all_columns):
            small, large = (left, right) if sum(n_left) <= sum(n_right) else (right, left)
            pair = Pair(small, large, {each.number: histograms[each.number] for each in splits})
            for new in opened:
                new.pair = pair
        return opened

    # ---------------------------------------------------------------------------------------------
    # the end

    def _gather(self, node: OpenNode) -> None:
        """Put a node off until all of its tree that is spread has grown."""
        trees = [self._trees[node.tree][number] for number in node.of_sets]
        for tree, own in zip(trees, node.of_sets.values(), strict=True):
            tree.reserve(own)
        self._put_off.append(node)
        self.gathered.append(
            GatheredNode(
                node.node,
                node.tree,
                self._numbers[node.tree],
                tuple(node.of_sets),
                node.depth,
                node.path,
                node.n,
                tuple(tree.rules for tree in trees),
                tuple(tree.scale for tree in trees),
            )
        )

    def graft(self, place: int, pieces: Sequence[PartialTree]) -> int:
        """Take the finished subtrees of a node, one for each of its sets; returns the tree."""
        node = self._put_off[place]
        for (number, own), piece in zip(node.of_sets.items(), pieces, strict=True):
            self._trees[node.tree][number].graft(own, piece)
        return node.tree

    def trees(self, tree: int) -> dict[int, Tree]:
        """By set, complete; sets without a row have none. Their records are given up."""
        growing, self._trees[tree] = self._trees[tree], {}
        pieces = [join(each.pieces()) for each in growing.values()]
        spec = self._spec
        rules = replace(spec.common.rules, tree=self._numbers[tree])
        trees = trees_of(pieces, self._targets[tree], spec.sample.n_codes, spec.thresholds, rules)
        return dict(zip(growing, trees, strict=True))
