"""Trees that grow in the same rounds: their open nodes, what is asked of blocks, and the splits."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dtrees.coding.coded import SPARSE
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale
from dtrees.core.grow._round_tree import RoundNode, RoundSearch, RoundTree
from dtrees.core.grow.assembly import join, trees_of
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.round_spec import Roots, RoundSpec, scale_of_root, weighed
from dtrees.core.model.tree import Tree
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import (
    LISTED,
    WEIGHT,
    N,
    of_sets,
    sizes_of,
    ways_of,
    without_intervals,
)
from dtrees.core.stores.blocks.messages import (
    NUMBER_BYTES,
    Counts,
    FoundSplit,
    Histogram,
    HistogramRequest,
    NodeSplit,
    SplitUpdate,
)
from dtrees.core.stores.sampled._sampled_columns import drawn_columns, n_first_draws


@dataclass(eq=False)
class OpenNode:
    """A node whose rows are spread, and that has no split yet."""

    node: int  # its number among those of all trees
    tree: int  # place of the tree among those that grow together
    of_sets: dict[int, RoundNode]  # the node as each training set has it
    n: int  # most rows that a set has here
    # draws of columns that were searched before, without finding a split; the node is recorded
    first: int = 0
    # where the sibling is spread, too, and counting one of them is enough
    pair: Pair | None = None
    # int32 (k,), that are searched in this round
    columns: np.ndarray = field(default_factory=partial(np.zeros, 0, np.int32))
    n_numbers: int = 0  # of the histograms that blocks are asked for

    @property
    def depth(self) -> int:
        """Edges from the root."""
        return int(next(iter(self.of_sets.values())).depth)

    @property
    def is_large(self) -> bool:
        """Whether its histogram is the parent's less that of its sibling."""
        return self.pair is not None and self.pair.large == self.node


def bits_of(sets: Iterable[int]) -> int:
    """A bit for each set."""
    return sum(1 << number for number in sets)


@dataclass(eq=False)
class Pair:
    """Siblings that are both spread: the larger one is the parent less the smaller one."""

    small: int  # node
    large: int
    histograms: dict[int, Histogram]  # by set: that of the parent, all columns


class WaitingNode:
    """A node whose histograms were searched, by set: `searches` and `histograms`.

    `asking` are the searches that want the codes of some intervals; `wanted` are, by column
    ascending, the intervals whose codes one of them wants, a bit each: uint64 (n,).
    """

    def __init__(
        self,
        node: OpenNode,
        searches: dict[int, RoundSearch],
        histograms: dict[int, Histogram],
    ) -> None:
        self.node = node
        self.searches = searches
        self.histograms = histograms
        self.asking = {number: each for number, each in searches.items() if each.wanted}
        wanted: dict[int, np.ndarray] = {}
        for search in self.asking.values():
            for column, alive in search.wanted.items():
                wanted[column] = wanted[column] | alive if column in wanted else alive
        self.wanted = dict(sorted(wanted.items()))


class Frontier(deque[OpenNode]):
    """Open nodes, first come, first served: depth by depth, but that no node waits for others.

    Siblings of a pair stand side by side. A node that has found nothing in the columns of its draw
    is searched once more together with the children of those that have; so the draws of the one
    cost the others no round.
    """

    def next_nodes(self, size_of: Callable[[OpenNode], int], budget: int) -> list[OpenNode]:
        """Take nodes whose histograms fit into `budget` bytes; at least one.

        `size_of` are the bytes of those of a node. Siblings of a pair are taken together.
        """
        nodes: list[OpenNode] = []
        used = 0
        while self:
            family = [self[0]]
            if family[0].pair is not None and len(self) > 1:
                family += [other for other in [self[1]] if other.pair is family[0].pair]
            size = sum(map(size_of, family))
            if nodes and used + size > budget:
                break
            used += size
            nodes += [self.popleft() for _ in family]
        return nodes


class CountingPlan:
    """How each column is counted (`_node_counts`), and what that adds up to.

    `dataset` is that of a tree; it tells how many words a cell has. `all_columns` is the very array
    that requests of all columns have, 0, 1, 2, ...; a node draws `n_drawn` of them. `first` are the
    places of the columns before each one, if each code has a cell: int64 (n_columns + 1,).
    """

    def __init__(
        self, spec: RoundSpec, dataset: Dataset, all_columns: np.ndarray, n_drawn: int
    ) -> None:
        self._all_columns = all_columns
        self._n_drawn = n_drawn
        ways = ways_of(dataset, spec.common.resolution)
        self._ways = ways, without_intervals(ways)  # by whether all is asked for by code
        self._sizes = [sizes_of(dataset, each) for each in self._ways]
        places = sizes_of(dataset)
        self.first: np.ndarray = np.concatenate([[0], np.cumsum(places)])
        self._words = int(places[0]) // (int(spec.sample.n_codes[0]) + 1)
        self._with_histogram = all_columns[ways != LISTED]
        self._n_numbers = int(self._sizes[0].sum())
        self._most_numbers = int(np.sort(self._sizes[0])[-n_drawn:].sum())
        self._is_sparse = spec.sample.storage == SPARSE
        self._n_rows = max(1, int(spec.n_rows.max(initial=0)))
        self._n_stored = spec.n_stored * min(3, self._words)  # numbers of sparse columns, of all
        self._most_stored = int(places[self._is_sparse].sum())  # rows, and of all codes

    def searched(self, columns: np.ndarray, by_code: bool) -> tuple[np.ndarray, np.ndarray]:
        """Which of some columns have a histogram, and how all columns are counted."""
        ways = self._ways[by_code]
        if columns is self._all_columns and not by_code:
            return self._with_histogram, ways
        return columns[ways[columns] != LISTED], ways

    def n_numbers(self, columns: np.ndarray, by_code: bool) -> int:
        """Numbers of the histograms of some columns."""
        if columns is self._all_columns and not by_code:
            return self._n_numbers
        return int(self._sizes[by_code][columns].sum())

    def n_listed(self, n: int, columns: np.ndarray, by_code: bool) -> int:
        """Numbers of those of some columns that are listed, of a node of n rows, about."""
        share = len(columns) / len(self._all_columns)
        stored = min(n / self._n_rows * share * self._n_stored, share * self._most_stored)
        listed = (self._ways[by_code] == LISTED) & ~self._is_sparse
        of_dense = np.minimum(n * self._words, np.diff(self.first))[columns][listed[columns]]
        return int(stored) + int(of_dense.sum())

    def bytes_of_node(self, node: OpenNode) -> int:
        """Bytes of the histograms of a node, about; of its dense columns, at most."""
        share = self._n_drawn / len(self._all_columns)
        listed = self.n_listed(node.n, self._all_columns, False)
        of_set = 8 * self._most_numbers + NUMBER_BYTES * int(share * listed)
        return of_set * len(node.of_sets)

    def n_alive(self, n: int, wanted: Mapping[int, np.ndarray]) -> int:
        """Numbers of the codes of some intervals in a node of n rows, at most."""
        found = 0
        for column, alive in wanted.items():
            n_codes = int(np.bitwise_count(alive).sum()) << int(self._ways[0][column])
            found += self._words * min(n, n_codes)
        return found


class Asked(NamedTuple):
    """What blocks are told and asked in a round."""

    update: SplitUpdate | None
    requests: list[HistogramRequest]
    heard: list[tuple[str, int]]  # what a round is, and depths, as `grow_in_rounds` tells it


# what a batch has of its specification
OF_SPEC = frozenset(["_spec", "_n_drawn", "_all_columns", "_rules", "_columns", "_plan"])

Split = tuple[FoundSplit, RoundNode, RoundNode]  # the test, and the children


class TreeBatch:
    """Trees that grow in the same rounds.

    `spec` and `numbers`, those of the trees, are as for `dtrees.core.grow.rounds.grow_in_rounds`.
    `first_node` is the number of the first node that is no root, of those of all batches that
    blocks know; None: the one after the roots.
    """

    def __init__(
        self,
        spec: RoundSpec,
        numbers: Sequence[int],
        begin: Roots,
        first_node: int | None = None,
    ) -> None:
        self.numbers = list(numbers)
        self._begin_from(spec)
        self._roots = begin.roots
        self._n_nodes = len(self._roots) if first_node is None else first_node
        self._trees: list[dict[int, RoundTree]] = [{} for _ in numbers]
        self._splits: list[NodeSplit] = []
        self._done: list[int] = []
        self._put_off: list[OpenNode] = []
        self.waiting: list[WaitingNode] = []  # searched, until codes of some intervals come
        self.gathered: list[GatheredNode] = []  # of few rows, which are finished at the end
        self.empty: list[tuple[int, int]] = []  # trees, and sets that have no row in their bags
        # shared_nodes that were searched for several sets, and shared_rows of the largest set of
        # each; trees of each pass over the blocks (passes_saved, less the passes)
        self.shared: Counter[str] = Counter()
        self.frontier = Frontier()
        self._hear: Callable[[Counts], None]  # what waits for the counts of a round
        n = int(spec.n_rows.max(initial=0))
        opened = [
            OpenNode(root.node, tree, {number: RoundNode() for number in range(spec.n_sets)}, n)
            for tree, root in enumerate(self._roots)
        ]
        if not spec.is_small:
            self.frontier.extend(opened)
            return
        assert begin.sums is not None
        weights = spec.class_weights
        for root, sums in zip(opened, begin.sums, strict=True):
            rows = sums if weights is None else weighed(sums, weights, list(root.of_sets))
            begun = [self._begin(root, number, own) for number, own in enumerate(rows)]
            if any(begun):
                of_sets = {each: root.of_sets[each] for each in np.flatnonzero(begun).tolist()}
                self._gather(replace(root, of_sets=of_sets))

    def _begin_from(self, spec: RoundSpec) -> None:
        """Set up what follows from the specification."""
        self._spec = spec
        n_columns = spec.sample.n_columns
        most = spec.common.rules.max_features
        self._n_drawn = n_columns if most is None else min(most, n_columns)
        self._all_columns = np.arange(n_columns, dtype=np.int32)
        self._rules = [spec.common.rules.of_tree(number, n_columns) for number in self.numbers]
        # what columns of each tree are drawn from: nothing is searched in it, so it has no scale
        self._columns = [Dataset(spec.sample, spec.target, own) for own in self._rules]
        self._plan = CountingPlan(spec, self._columns[0], self._all_columns, self._n_drawn)

    def packed(self) -> bytes:
        """All that has grown, between two rounds; to be continued by `unpacked`.

        Histograms of parents are left out, so open siblings are both counted.
        """
        assert not self.waiting
        state = {name: value for name, value in vars(self).items() if name not in OF_SPEC}
        state["frontier"] = Frontier(replace(node, pair=None) for node in self.frontier)
        state["_put_off"] = [replace(node, pair=None) for node in self._put_off]
        state["_trees"] = [
            {number: (own.rules, own.scale, own.pieces()[0]) for number, own in trees.items()}
            for trees in self._trees
        ]
        return pickle.dumps(state, protocol=5)

    @classmethod
    def unpacked(cls, spec: RoundSpec, packed: bytes) -> TreeBatch:
        """A batch from its `packed` form."""
        found = cls.__new__(cls)
        vars(found).update(pickle.loads(packed))
        found._begin_from(spec)
        found._trees = [
            {number: found._tree(place, number, *own) for number, own in trees.items()}
            for place, trees in enumerate(vars(found)["_trees"])
        ]
        return found

    # ---------------------------------------------------------------------------------------------
    # a round

    def ask(self, is_last: bool = False) -> Asked | None:
        """Begin a round; None: there is nothing to be asked.

        If it `is_last`, only codes that nodes wait for are asked for, so that none waits at last.
        """
        if self.waiting:
            waiting, requests = self.take_waiting()
            self._hear = partial(self.take_codes, waiting)
            heard = [("code round", min(each.node.depth for each in waiting))]
            heard += [("code request", each.node.depth) for each in waiting for _ in each.wanted]
            return Asked(None, requests, heard)
        if is_last or not self.frontier:
            return None
        nodes = self.next_nodes()
        self._hear = partial(self.take, nodes)
        heard = [("round", min(node.depth for node in nodes))]
        return Asked(self.take_update(), self.requests(nodes), heard)

    def hear(self, counts: Counts) -> None:
        """Take what blocks have counted, which ends the round."""
        self._hear(counts)
        del self._hear

    def next_nodes(self) -> list[OpenNode]:
        """The nodes of the next round."""
        nodes = self.frontier.next_nodes(self._plan.bytes_of_node, self._spec.histogram_budget)
        self._see_pass(nodes)
        return sorted(nodes, key=lambda node: node.tree)

    def _see_pass(self, nodes: Iterable[OpenNode]) -> None:
        """Count the trees of all sets that a pass over the blocks is for."""
        self.shared["passes_saved"] += len({(n.tree, own) for n in nodes for own in n.of_sets})

    def take_update(self) -> SplitUpdate:
        """What has changed since the last one."""
        update = SplitUpdate(tuple(self._roots), tuple(self._splits), tuple(self._done))
        self._roots, self._splits, self._done = [], [], []
        return update

    def requests(self, nodes: Sequence[OpenNode]) -> list[HistogramRequest]:
        """What the blocks are asked for."""
        requests = []
        for node in nodes:
            node.columns = self._columns_of(node)
            n_sets, by_code = len(node.of_sets), node.first > 0
            asked = node.columns[:0] if node.is_large else node.columns
            node.n_numbers = n_sets * self._plan.n_numbers(asked, by_code)
            sizes = node.n_numbers, n_sets * self._plan.n_listed(node.n, asked, by_code)
            columns = None if asked is self._all_columns else asked
            members = bits_of(node.of_sets)
            requests.append(HistogramRequest(node.node, members, columns, *sizes, by_code))
        return requests

    def _columns_of(self, node: OpenNode) -> np.ndarray:
        """Columns that are searched next; none where the node is a leaf whatever it adds up to."""
        if self._is_last(node):
            return self._all_columns[:0]
        if self._n_drawn == len(self._all_columns):
            return self._all_columns
        dataset, n_drawn = self._columns[node.tree], self._n_drawn
        of_any = next(iter(node.of_sets.values()))
        if node.first == 0:
            n_drawn = n_first_draws(dataset, of_any.path, of_any.above[2])
        drawn: np.ndarray = drawn_columns(dataset, of_any.path, node.first, n_drawn)
        return np.sort(drawn) if node.first == 0 else drawn

    def _is_last(self, node: OpenNode) -> bool:
        depth = self._spec.common.rules.max_depth
        return depth is not None and node.depth >= depth

    def take(self, nodes: Sequence[OpenNode], counts: Counts) -> None:
        """Search what the blocks have counted, and open the children."""
        n_sums = np.cumsum([len(node.of_sets) for node in nodes])
        n_cells = np.cumsum([node.n_numbers for node in nodes])
        sums = np.split(counts.sums, n_sums[:-1])
        stored = counts.stored_lists()
        histograms = {}
        for node, own in zip(nodes, np.split(counts.histogram, n_cells[:-1]), strict=True):
            n_sets = len(node.of_sets)
            parts = zip(own.reshape(n_sets, -1), of_sets(*next(stored), n_sets), strict=True)
            found = [Histogram(dense, *numbers) for dense, numbers in parts]
            histograms[node.node] = dict(zip(node.of_sets, found, strict=True))
        opened: list[OpenNode] = []
        weights = self._spec.class_weights
        for node, counted in zip(nodes, sums, strict=True):
            rows = counted if weights is None else weighed(counted, weights, list(node.of_sets))
            of_node, pair = histograms[node.node], node.pair
            if pair is not None and node.is_large:
                small = histograms[pair.small]
                whole = pair.histograms
                of_node = {number: whole[number].less(own) for number, own in small.items()}
            opened += self._search(node, rows, of_node)
        self.frontier.extend(opened)

    def _search(
        self, node: OpenNode, rows: np.ndarray, histograms: dict[int, Histogram]
    ) -> list[OpenNode]:
        """Search a node for each of its sets; returns what is open next."""
        in_order = None if node.first == 0 else node.columns
        dense, ways = self._plan.searched(node.columns, node.first > 0)
        searches: dict[int, RoundSearch] = {}
        trees, first = self._trees[node.tree], self._plan.first
        for (number, own), row in zip(node.of_sets.items(), rows, strict=True):
            if node.first == 0:  # it is recorded, and may stay a leaf
                if number not in trees and not self._begin(node, number, row):
                    continue
                if trees[number].record(own, row):
                    continue
            if len(node.columns) > 0:
                how = histograms[number], dense, ways, first, in_order
                searches[number] = trees[number].search(own, *how)
        found = WaitingNode(node, searches, histograms)
        if found.wanted:
            self.waiting.append(found)
            return []
        return self._split(found)

    def _split(self, found: WaitingNode) -> list[OpenNode]:
        """Split a node that is searched, for each of its sets; returns what is open next."""
        node = found.node
        again: dict[int, RoundNode] = {}
        by_column: dict[int, dict[int, Split]] = defaultdict(dict)
        searched = node.first + len(node.columns)
        for number, search in found.searches.items():
            split, can_be_split = search.split()
            if split is not None:
                by_column[split[0].column][number] = split
            elif not can_be_split and searched < len(self._all_columns):
                again[number] = node.of_sets[number]
        if len(found.searches) > 1 and node.first == 0:
            self.shared.update(shared_nodes=1, shared_rows=node.n)
        opened = []
        for column, splits in sorted(by_column.items()):
            opened += self._open_children(node, column, splits, found.histograms)
        if again:
            return [replace(node, of_sets=again, first=searched, pair=None), *opened]
        self._done.append(node.node)
        return opened

    # ---------------------------------------------------------------------------------------------
    # codes of some intervals

    def take_waiting(self) -> tuple[list[WaitingNode], list[HistogramRequest]]:
        """Nodes whose codes fit into the budget, at least one, and what blocks are asked for."""
        used = 0
        requests: list[HistogramRequest] = []
        for node in self.waiting:
            n_listed = self._plan.n_alive(node.node.n, node.wanted) * len(node.asking)
            used += NUMBER_BYTES * n_listed
            if requests and used > self._spec.histogram_budget:
                break
            columns = np.array(list(node.wanted), dtype=np.int32)
            alive = np.concatenate(list(node.wanted.values()))
            sets = bits_of(node.asking)
            request = HistogramRequest(node.node.node, sets, columns, 0, n_listed, alive=alive)
            requests.append(request)
        n = len(requests)
        taken, self.waiting = self.waiting[:n], self.waiting[n:]
        self._see_pass(each.node for each in taken)
        return taken, requests

    def take_codes(self, waiting: Sequence[WaitingNode], counts: Counts) -> None:
        """Search once more with the codes that have come, and open the children."""
        lists = counts.stored_lists()
        for node in waiting:
            found = of_sets(*next(lists), len(node.asking))
            searches = zip(node.asking.values(), found, strict=True)
            self._spec.run([partial(each.take, node.wanted, *own) for each, own in searches])
            self.frontier.extend(self._split(node))

    # ---------------------------------------------------------------------------------------------
    # nodes

    def _begin(self, root: OpenNode, number: int, sums: np.ndarray) -> bool:
        """Begin the tree of a set whose root has these sums, unless it has no row."""
        if sums[N] == 0:
            self.empty.append((root.tree, number))
            return False
        spec, weights, target = self._spec, self._spec.class_weights, self._spec.target
        if weights is not None:
            target = weights.of(target, number)
        scale = scale_of_root(spec, target, sums)
        rules = self._rules[root.tree]
        if spec.shares is not None:
            total = int(sums[WEIGHT]) * target.weight_unit
            rules = spec.shares.applied(rules, int(spec.n_rows[number]), total)
        self._trees[root.tree][number] = self._tree(root.tree, number, rules, scale)
        return True

    def _tree(
        self,
        place: int,
        number: int,
        rules: GrowthRules,
        scale: Scale,
        piece: PartialTree | None = None,
    ) -> RoundTree:
        """The tree of a set, from its records so far."""
        spec, weights, target = self._spec, self._spec.class_weights, self._spec.target
        counted = of_class = None  # without class weights blocks count
        if weights is not None:
            target = weights.of(target, number)
            counted, of_class = self._columns[place], weights.multiplier[number]
        dataset = Dataset(spec.sample, target, rules, scale, spec.values)
        return RoundTree(dataset, rules, scale, counted, of_class, piece)

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
        if (
            len(opened) == 2
            and self._n_drawn == len(self._all_columns)
            and not self._is_last(opened[0])
        ):
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
        number, sets = self.numbers[node.tree], tuple(node.of_sets)
        of_any = next(iter(node.of_sets.values()))
        identity = (node.node, node.tree, number, sets, of_any.depth, of_any.path, node.n)
        rules, scales = zip(*[(tree.rules, tree.scale) for tree in trees], strict=True)
        weights = self._spec.class_weights
        own = None if weights is None else weights.some(list(sets))
        above = None
        if self._spec.common.rules.has_constraints:
            above = tuple(each.above for each in node.of_sets.values())
        self.gathered.append(GatheredNode(*identity, rules, scales, own, above))

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
        rules = self._rules[tree]
        own, codes = spec.class_weights, spec.sample.n_codes
        units = None if own is None else [own.unit(spec.target, number) for number in growing]
        trees = trees_of(pieces, spec.target, codes, spec.thresholds, rules, units)
        return dict(zip(growing, trees, strict=True))
