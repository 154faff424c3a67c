"""Counts by depth of how far the models of a cross-validation agree with a reference.

A model *still* agrees at a node of the reference when it does so there and at every node above.
Below the first node at which a model is alone, its nodes need not be looked at one by one: nodes of
a tree are in preorder, so a subtree is a slice, and counts by depth are sums over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dtrees.core.model.tree import LEAF, Tree
from dtrees.inspection.alignment import NO_GROUP, Group, walk
from dtrees.inspection.tree_formatter import TreeFormatter


@dataclass(frozen=True)
class LevelStability:
    """One level of depth. For forests, what is said is a mean over the trees.

    Attributes
    ----------
    depth : int
        Of the level; that of the root is 0.
    n_tests : float
        Nodes of the reference at this depth that ask something.
    row_share : float
        Share of the reference's training rows that come to one of them, in (0, 1].
    n_shared_nodes : float
        Nodes of the shared forest of the models at this depth, leaves included, the final model
        left out. As many as one tree has where all agree, and the number of models times that
        where none do.
    same_column : float
        Number of models that still ask about the same column as the reference, in
        [0, n_models]: a mean over its tests at this depth, weighted by rows.
    least_same_column : int
        The least over these tests.
    same_test, least_same_test : float, int
        As above, of models that still ask the very same: column, threshold or set, and the side
        of missing values.
    """

    depth: int
    n_tests: float
    row_share: float
    n_shared_nodes: float
    same_column: float
    least_same_column: int
    same_test: float
    least_same_test: int


@dataclass(eq=False)
class LevelCounts:
    """Sums by depth, over the trees of forests.

    Attributes
    ----------
    n_models, reference : int
        Models that are counted; number of the one they are compared with, which may be one of
        them or stand behind them.
    n_trees, n_rows : int
        Trees of the reference so far, and the rows of their roots.
    shared : Counter of int
        Shared nodes by depth.
    tests : dict of int to list of (rows, same column, same test)
        Of the tests of the reference, by depth: int64 (n, 3) each.
    """

    n_models: int
    reference: int
    n_trees: int = 0
    n_rows: int = 0
    shared: Counter[int] = field(default_factory=Counter)
    tests: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def add(self, formatters: list[TreeFormatter]) -> None:
        """Count one tree of every model."""
        self.n_trees += 1
        self.n_rows += int(formatters[self.reference].tree.n_node_samples[0])
        depths = [each.tree.depth for each in formatters]
        still: dict[int, set[int]] = {NO_GROUP: set(range(self.n_models))}
        for group in walk(formatters, least=2):
            if len(group.visits) == 1:
                self._add_subtree(group, formatters, depths)
                continue
            here = {visit.model: visit for visit in group.visits}
            self.shared[group.depth] += 1  # of two models one at least is not the final one
            if self.reference not in here:
                continue
            test = here[self.reference].test
            if test is None:
                continue
            same = {m for m in still[group.above] if m in here and here[m].test == test}
            still[group.number] = same
            rows = formatters[self.reference].tree.n_node_samples[here[self.reference].node]
            together = sum(m < self.n_models for m in here)
            self._count_tests(group.depth, np.array([[rows, together, len(same)]]))

    def levels(self) -> Iterator[LevelStability]:
        """What has been counted, level by level."""
        for depth in sorted(self.tests):
            rows, column, test = np.concatenate(self.tests[depth]).T
            yield LevelStability(
                depth=depth,
                n_tests=len(rows) / self.n_trees,
                row_share=float(rows.sum() / self.n_rows),
                n_shared_nodes=self.shared[depth] / self.n_trees,
                same_column=float(rows @ column / rows.sum()),
                least_same_column=int(column.min()),
                same_test=float(rows @ test / rows.sum()),
                least_same_test=int(test.min()),
            )

    def _add_subtree(
        self, group: Group, formatters: list[TreeFormatter], depths: list[np.ndarray]
    ) -> None:
        """All nodes of a model from where it is alone."""
        (visit,) = group.visits
        model, tree = visit.model, formatters[visit.model].tree
        part = slice(visit.node, end_of_subtree(tree, visit.node))
        depth = depths[model][part]
        if model < self.n_models:
            for level, n in enumerate(np.bincount(depth)[group.depth :], start=group.depth):
                self.shared[level] += int(n)
        if model != self.reference:
            return
        agree = int(model < self.n_models)  # one of the models: with itself
        asks = tree.test[part] != LEAF
        rows = tree.n_node_samples[part].astype(np.int64)
        for level in np.unique(depth[asks]).tolist():
            here = rows[asks & (depth == level)]
            numbers = np.empty((len(here), 3), dtype=np.int64)
            numbers[:, 0], numbers[:, 1:] = here, agree
            self._count_tests(level, numbers)

    def _count_tests(self, depth: int, numbers: np.ndarray) -> None:
        self.tests.setdefault(depth, []).append(numbers)


def end_of_subtree(tree: Tree, node: int) -> int:
    """The number behind the last node below a node: preorder, so its rightmost leaf."""
    while tree.test[node] != LEAF:
        node = int(tree.children_right[node])
    return node + 1
