r"""Nested trees, which stand inside a grown one, summed up over their leaves.

A grid of limits names many trees, all of which stand inside the one that was grown
(`dtrees.core.model.pruning`, [SF] 3). Whoever wants a sum over the leaves of each of them (errors
of held-out rows, say) needs none of them. With a value for every node, a tree of one leaf has that
of the root, and each split that is made changes it by what its children have more than itself::

    values of nodes      5                                  sum over leaves
                        / \      root splits: 1 + 2 - 5     5
                       1   2     the other:   0 + 3 - 2     5 - 2     = 1 + 2
                          / \                               5 - 2 + 1 = 1 + 0 + 3
                         0   3

A limit on depth, rows or decrease is met by a node or not, and a node that meets it has ancestors
that do. So the sums of a whole grid are sums of changes over boxes, one pass over the nodes and one
over the grid. Best-first growth and weakest links take splits in an order that is the same for all
limits, so that every limit is a prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dtrees.core.model import pruning
from dtrees.core.model._pruning import least_above
from dtrees.core.model.pruning import NO_LIMIT, PruningLimits
from dtrees.core.model.tree import LEAF, Tree

ROOM = 2**22  # cells of a grid that are worth an array, beyond those that were asked for


def sums_over_branches(tree: Tree, of_leaves: np.ndarray) -> np.ndarray:
    """What every branch has in its leaves, of the same type. O(n_nodes x m); exact for integers.

    of_leaves : int64 or float64 (n_nodes, m), 0 but for leaves
    """
    before = np.zeros((tree.node_count + 1, of_leaves.shape[1]), dtype=of_leaves.dtype)
    np.cumsum(of_leaves, axis=0, out=before[1:])  # a branch is a stretch of nodes
    return before[pruning.last_of_branch(tree) + 1] - before[:-1]


class PruningGrid:
    """Limits of many nested trees, put in order once for all trees that they are asked of.

    Parameters
    ----------
    max_depth, min_samples_split : int64 (n,)
    min_impurity_decrease : float64 (n,)
    max_leaf_nodes : int64 (n,)
        0: none.
    ccp_alpha : float64 (n,)
    """

    def __init__(
        self,
        max_depth: np.ndarray,
        min_samples_split: np.ndarray,
        min_impurity_decrease: np.ndarray,
        max_leaf_nodes: np.ndarray,
        ccp_alpha: np.ndarray,
    ) -> None:
        of_nodes = max_depth, min_samples_split, min_impurity_decrease
        self._columns = *of_nodes, max_leaf_nodes, ccp_alpha
        in_order = (max_leaf_nodes > 0) | (ccp_alpha > 0)
        is_whole = ~in_order & (max_depth == NO_LIMIT) & (min_samples_split <= 2)
        is_whole &= min_impurity_decrease == 0
        self.whole = np.flatnonzero(is_whole)
        self.of_nodes = np.flatnonzero(~in_order & ~is_whole)
        self.kinds: dict[PruningLimits, list[int]] = {}  # others, by their limits of nodes
        for number in np.flatnonzero(in_order).tolist():
            self.kinds.setdefault(self[number].of_nodes, []).append(number)
        self.asked = tuple(column[self.of_nodes] for column in of_nodes)
        found = [np.unique(asked, return_inverse=True) for asked in self.asked]
        self.axes = [axis for axis, _ in found]
        self.numbers = [number.ravel() for _, number in found]

    @classmethod
    def of(cls, limits: Sequence[PruningLimits]) -> PruningGrid:
        """Put limits in order."""
        return cls(
            np.array([one.max_depth for one in limits], dtype=np.int64),
            np.array([one.min_samples_split for one in limits], dtype=np.int64),
            np.array([one.min_impurity_decrease for one in limits], dtype=np.float64),
            np.array([one.max_leaf_nodes or 0 for one in limits], dtype=np.int64),
            np.array([one.ccp_alpha for one in limits], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, i: int) -> PruningLimits:
        depth, rows, decrease, n_leaves, alpha = (column[i] for column in self._columns)
        most = int(n_leaves) if n_leaves > 0 else None
        return PruningLimits(int(depth), int(rows), float(decrease), most, float(alpha))


def sums_over_leaves(tree: Tree, values: np.ndarray, limits: PruningGrid) -> np.ndarray:
    """What values of nodes add up to over the leaves of nested trees, int64 (len(limits), m).

    `values`, int64 (n_nodes, m), are integers, so that a sum is one of the nested tree, however it
    was found.

    O(nodes + cells) for limits of nodes. With ``max_leaf_nodes`` or ``ccp_alpha``, O(nodes log
    nodes) for each combination of the others.
    """
    found = np.empty((len(limits), values.shape[1]), dtype=np.int64)
    found[limits.whole] = values[tree.test == LEAF].sum(axis=0)
    if len(limits.of_nodes) > 0:
        found[limits.of_nodes] = _in_boxes(tree, values, limits)
    for of_nodes, numbers in limits.kinds.items():
        nested, kept = of_nodes.cut_and_kept(tree)
        found[numbers] = _in_order(nested, values[kept], [limits[number] for number in numbers])
    return found


def _in_boxes(tree: Tree, values: np.ndarray, limits: PruningGrid) -> np.ndarray:
    """Sums for limits of nodes."""
    inner = np.flatnonzero(tree.test != LEAF)
    change = _changes(tree, values)[inner]
    depth, rows = tree.depth[inner], tree.n_node_samples[inner]
    decrease = _least_above(tree, pruning.decrease(tree))[inner]
    asked, axes, n_limits = limits.asked, limits.axes, len(limits.of_nodes)
    shape = [len(axis) + 1 for axis in axes]
    n_cells = int(np.prod(shape))
    if n_cells * values.shape[1] > ROOM + 8 * n_limits:  # a few cells of a large grid
        sums = np.empty((n_limits, values.shape[1]), dtype=np.int64)
        for sum_, most, least, gain in zip(sums, *asked, strict=True):
            sum_[:] = change[(depth < most) & (rows >= least) & (decrease >= gain)].sum(axis=0)
        return values[0] + sums
    box = np.zeros((n_cells, values.shape[1]), dtype=np.int64)
    corner = np.ravel_multi_index(
        (
            np.searchsorted(axes[0], depth, "right"),
            np.searchsorted(axes[1], rows, "right"),
            np.searchsorted(axes[2], decrease, "right"),
        ),
        shape,
    )
    np.add.at(box, corner, change)
    box = box.reshape(*shape, values.shape[1])
    box = box.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1, ::-1].cumsum(axis=2)[:, :, ::-1]
    by_depth, by_rows, by_decrease = limits.numbers
    return values[0] + box[by_depth, by_rows + 1, by_decrease + 1]


def _in_order(tree: Tree, values: np.ndarray, limits: Sequence[PruningLimits]) -> np.ndarray:
    """Sums for numbers of leaves and alphas, whatever the other limits."""
    found = np.empty((len(limits), values.shape[1]), dtype=np.int64)
    by_leaves: dict[int | None, list[int]] = {}
    for number, one in enumerate(limits):
        by_leaves.setdefault(one.max_leaf_nodes, []).append(number)
    most = max((n for n in by_leaves if n is not None), default=1)
    order = pruning.best_first_order(tree, most - 1)
    steps = np.vstack([values[:1], _changes(tree, values)[order]]).cumsum(axis=0)
    for n_leaves, numbers in by_leaves.items():
        alphas = np.array([limits[number].ccp_alpha for number in numbers])
        if n_leaves is not None:
            found[numbers] = steps[min(n_leaves - 1, len(steps) - 1)]
        if (alphas > 0).any():
            kept: np.ndarray | slice = slice(None)
            nested = tree
            if n_leaves is not None:
                nested, kept = PruningLimits(max_leaf_nodes=n_leaves).cut_and_kept(tree)
            of_alphas = sums_over_alphas(nested, values[kept], alphas)
            found[np.array(numbers)[alphas > 0]] = of_alphas[alphas > 0]
        if n_leaves is None and (alphas == 0).any():
            whole = values[tree.test == LEAF].sum(axis=0)
            found[np.array(numbers)[alphas == 0]] = whole
    return found


def sums_over_alphas(tree: Tree, values: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Sums for all weakest links of at most each alpha, above 0; int64 (n, m).

    values : int64 (n_nodes, m); alphas : float64 (n,). O(nodes log nodes + n log nodes).
    """
    links, strengths, _ = pruning.weakest_links_of(tree)
    gone_at = np.full(tree.node_count, len(links), dtype=np.int64)
    gone_at[links] = np.arange(len(links))
    gone_at = _least_above(tree, gone_at)
    inner = tree.test != LEAF
    steps = np.zeros((len(links) + 1, values.shape[1]), dtype=np.int64)
    np.add.at(steps, gone_at[inner], _changes(tree, values)[inner])
    left = values[0] + steps[::-1].cumsum(axis=0)[::-1]  # row k: splits that the first k spare
    n_gone = np.searchsorted(np.maximum.accumulate(strengths), alphas, "right")
    return left[n_gone]


def _changes(tree: Tree, values: np.ndarray) -> np.ndarray:
    """What the split of every node adds to a sum over leaves; 0 for leaves."""
    inner = tree.test != LEAF
    change = np.zeros_like(values)
    children = values[tree.children_left[inner]] + values[tree.children_right[inner]]
    change[inner] = children - values[inner]
    return change


def _least_above(tree: Tree, values: np.ndarray) -> np.ndarray:
    """The least value of a node and its ancestors. O(nodes)."""
    least: np.ndarray = values.copy()
    least_above(tree.children_left, tree.children_right, least)
    return least
