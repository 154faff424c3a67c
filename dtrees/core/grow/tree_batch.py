"""Trees that grow in the same rounds: their open nodes, what is asked of blocks, and the splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dtrees.coding.coded import SPARSE
from dtrees.core.grow._round_tree import RoundNode, RoundTree
from dtrees.core.grow.assembly import join, trees_of
from dtrees.core.grow.frontier import Frontier, OpenNode, Pair
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_roots import columns_of, roots_of, target_of, tree_of
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks._histogram_store import histogram_sizes
from dtrees.core.stores.blocks._node_counts import N
from dtrees.core.stores.blocks.messages import (
    NUMBER_BYTES,
    Counts,
    FoundSplit,
    Histogram,
    HistogramRequest,
    NodeSplit,
    SplitUpdate,
)
from dtrees.core.stores.sampled._sampled_columns import drawn_columns

Split = tuple[FoundSplit, RoundNode, RoundNode]  # the test, and the children


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
    shared : Counter
        ``shared_nodes`` that were searched for several sets, and ``shared_rows`` of the largest
        set of each.
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
        self._first = np.concatenate([[0], np.cumsum(self._cells)])
        self._is_dense = spec.sample.storage != SPARSE
        self._dense_columns = np.flatnonzero(self._is_dense).astype(np.int32)
        self._n_numbers = int(self._cells[self._is_dense].sum())  # of all dense columns,
        self._n_places = int(self._cells.sum()) - self._n_numbers  # and of all others
        self._most_numbers = self._most_of_draw()
        self._roots = roots_of(spec, numbers, blocks)
        self._n_nodes = len(self._roots)
        self._targets = [target_of(spec, root) for root in self._roots]
        self._trees: list[dict[int, RoundTree]] = [{} for _ in numbers]
        self._splits: list[NodeSplit] = []
        self._done: list[int] = []
        self._put_off: list[OpenNode] = []
        self.gathered: list[GatheredNode] = []
        self.empty: list[tuple[int, int]] = []
        self.shared: Counter[str] = Counter()
        self.frontier = Frontier()
        n = int(spec.n_rows.max(initial=0))
        self._n_rows = max(1, n)
        self.frontier.extend(
            OpenNode(root.node, tree, {number: RoundNode() for number in range(spec.n_sets)}, n)
            for tree, root in enumerate(self._roots)
        )

    # ---------------------------------------------------------------------------------------------
    # a round

    def next_nodes(self) -> list[OpenNode]:
        """The nodes of the next round."""
        nodes = self.frontier.next_nodes(self._bytes_of, self._spec.histogram_budget)
        return sorted(nodes, key=lambda node: node.tree)

    def _most_of_draw(self) -> int:
        """Most numbers that the dense columns of a draw have."""
        dense = np.sort(self._cells[self._is_dense])
        return int(dense[-self._n_drawn :].sum())

    def _bytes_of(self, node: OpenNode) -> int:
        """Bytes of the histograms of a node, about; of its dense columns, at most."""
        of_set = 8 * self._most_numbers + NUMBER_BYTES * self._n_stored(node, self._n_drawn)
        return of_set * len(node.of_sets)

    def _n_stored(self, node: OpenNode, n_columns: int) -> int:
        """Numbers of the sparse ones among so many columns, of a set, about."""
        share = node.n / self._n_rows * n_columns / len(self._all_columns)
        n_words = int(self._cells[0]) // (int(self._spec.sample.n_codes[0]) + 1)
        most = n_columns * self._n_places // len(self._all_columns)
        return int(min(share * self._spec.n_stored * min(3, n_words), most))

    def take_update(self) -> SplitUpdate:
        """What has changed since the last one."""
        update = SplitUpdate(tuple(self._roots), tuple(self._splits), tuple(self._done))
        self._roots, self._splits, self._done = [], [], []
        return update

    def requests(self, nodes: Sequence[OpenNode]) -> list[HistogramRequest]:
        """What the blocks are asked for."""
        for node in nodes:
            node.columns = self._columns_of(node)
        return [self._request(node) for node in nodes]

    def _request(self, node: OpenNode) -> HistogramRequest:
        n_sets, columns = len(node.of_sets), node.columns
        asked = columns[:0] if node.is_large else columns
        n_stored = n_sets * self._n_stored(node, len(asked))
        if asked is self._all_columns:
            n_numbers = n_sets * self._n_numbers
            return HistogramRequest(node.node, node.members, None, n_numbers, n_stored)
        n_numbers = n_sets * int(self._cells[asked[self._is_dense[asked]]].sum())
        return HistogramRequest(node.node, node.members, asked, n_numbers, n_stored)

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
        n_sums = np.cumsum([len(node.of_sets) for node in nodes])
        n_cells = np.cumsum([self._request(node).n_numbers for node in nodes])
        sums = np.split(counts.sums, n_sums[:-1])
        stored = counts.stored_lists()
        histograms = {
            node.node: {
                number: Histogram(dense, *next(stored))
                for number, dense in zip(
                    node.of_sets, own.reshape(len(node.of_sets), -1), strict=True
                )
            }
            for node, own in zip(nodes, np.split(counts.histogram, n_cells[:-1]), strict=True)
        }
        opened: list[OpenNode] = []
        for node, rows in zip(nodes, sums, strict=True):
            of_sets, pair = histograms[node.node], node.pair
            if pair is not None and node.is_large:
                small = histograms[pair.small]
                whole = pair.histograms
                of_sets = {number: whole[number].less(own) for number, own in small.items()}
            opened += self._search(node, rows, of_sets)
        self.frontier.extend(opened)

    def _search(
        self, node: OpenNode, rows: np.ndarray, histograms: dict[int, Histogram]
    ) -> list[OpenNode]:
        """Search a node for each of its sets; returns what is open next."""
        again: dict[int, RoundNode] = {}
        by_column: dict[int, dict[int, Split]] = defaultdict(dict)
        searched = node.first + len(node.columns)
        in_order = None if node.first == 0 else node.columns
        dense = self._dense_of(node.columns)
        n_searched = 0
        for (number, own), row in zip(node.of_sets.items(), rows, strict=True):
            is_leaf = node.first == 0 and self._record(node, number, row)
            if is_leaf or len(node.columns) == 0:
                continue
            n_searched += 1
            split, can_be_split = self._trees[node.tree][number].split(
                own, histograms[number], dense, self._first, in_order
            )
            if split is not None:
                by_column[split[0].column][number] = split
            elif not can_be_split and searched < len(self._all_columns):
                again[number] = own
        if n_searched > 1 and node.first == 0:
            self.shared.update(shared_nodes=1, shared_rows=node.n)
        opened = []
        for column, splits in sorted(by_column.items()):
            opened += self._open_children(node, column, splits, histograms)
        if again:
            return [replace(node, of_sets=again, first=searched, pair=None), *opened]
        self._done.append(node.node)
        return opened

    def _dense_of(self, columns: np.ndarray) -> np.ndarray:
        """The dense ones among some columns."""
        if columns is self._all_columns:
            return self._dense_columns
        dense: np.ndarray = columns[self._is_dense[columns]]
        return dense

    def _record(self, node: OpenNode, number: int, sums: np.ndarray) -> bool:
        """Record a node of a set; whether it stays a leaf."""
        trees = self._trees[node.tree]
        if sums[N] == 0:
            assert node.depth == 0
            self.empty.append((node.tree, number))
            return True
        if number not in trees:
            target = self._targets[node.tree]
            trees[number] = tree_of(self._spec, self._numbers[node.tree], number, target, sums)
        is_leaf: bool = trees[number].record(node.of_sets[number], sums)
        return is_leaf

    def _open_children(
        self,
        node: OpenNode,
        column: int,
        splits: dict[int, Split],
        histograms: dict[int, Histogram],
    ) -> list[OpenNode]:
        """Children of sets that go on together; those that stay open."""
        tests = tuple((number, test) for number, (test, _, _) in splits.items())
        left, right = self._n_nodes, self._n_nodes + 1
        self._splits.append(NodeSplit(node.node, left, right, column, tests))
        self._n_nodes += 2
        opened, n_rows = [], []
        for child, side in ((left, 1), (right, 2)):
            of_sets: dict[int, RoundNode] = {each: split[side] for each, split in splits.items()}
            n = [own.n for own in of_sets.values()]
            new = OpenNode(child, node.tree, of_sets, max(n))
            n_rows.append(sum(n))
            if new.n <= self._spec.gather_rows and not self._is_last(new):
                self._gather(new)
            else:
                opened.append(new)
        if len(opened) == 2 and len(self._columns_of(opened[0])) == len(self._all_columns):
            small, large = (left, right) if n_rows[0] <= n_rows[1] else (right, left)
            pair = Pair(small, large, {each: histograms[each] for each in splits})
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
        number, sets = self._numbers[node.tree], tuple(node.of_sets)
        identity = (node.node, node.tree, number, sets, node.depth, node.path, node.n)
        rules, scales = zip(*[(tree.rules, tree.scale) for tree in trees], strict=True)
        self.gathered.append(GatheredNode(*identity, rules, scales))

    def graft(self, index: int, pieces: Sequence[PartialTree]) -> int:
        """Take the finished subtrees of a node, one for each of its sets; returns the tree."""
        node = self._put_off[index]
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
