r"""Grow once, decide later: every tree that is nested in a grown one ([SF] 3).

The test of a node depends on its rows and on nothing else: not on the nodes beside it, not on the
order in which nodes were opened. A tree grown to the end therefore contains, node for node, the
trees that these limits ask for, and `PruningLimits` takes away what a fit with them grows:

    max_depth                nodes at this depth are leaves
    min_samples_split        nodes of fewer rows are leaves
    min_impurity_decrease    nodes whose split gains too little are leaves
    max_leaf_nodes           splits are taken best first until there are so many leaves
    ccp_alpha                weakest links go while a leaf costs more than it saves

(``min_samples_leaf`` is not among them: it forbids single candidates, so it changes the choice.)
Limits may be combined; where their order matters, scikit-learn's is: first the three limits of a
node, then ``max_leaf_nodes``, then ``ccp``.

All of them choose a set of nodes for `truncate`. In preorder a branch is a stretch
of neighbours, so pruning is a matter of intervals:

    node        0  1  2  3  4  5  6  7  8         0
    last        8  5  4  3  4  5  8  7  8        / \
                                                1   6       pruned at 2: nodes 3
    pruned at 2       |  x  x                  / \ / \      and 4 go, 2 is a leaf
                                              2  5 7  8
                                             / \
                                            3   4
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np

from dtrees.core.model._pruning import ends_of, weakest_links
from dtrees.core.model.flat import times_below
from dtrees.core.model.tree import LEAF, LEAF_VALUES, NO_CHILD, Tree, relative_gains

# scikit-learn's tolerance when it compares a decrease with min_impurity_decrease.
EPSILON = float(np.finfo(np.float64).eps)


def truncate(tree: Tree, is_leaf: np.ndarray) -> tuple[Tree, np.ndarray]:
    """The tree in which the given nodes are leaves, and the numbers its nodes had, ascending.

    Parameters
    ----------
    tree : Tree
    is_leaf : bool (n_nodes,)
        Nodes to prune below. The tree's own leaves stay leaves whether they are marked or not;
        marks below a marked node change nothing.

    Returns
    -------
    Tree
        Compact, in preorder; the same object when nothing is pruned. O(nodes x log depth).
    kept : int64 (n_kept,)
    """
    pruned = is_leaf & (tree.test != LEAF)
    if not pruned.any():
        return tree, np.arange(tree.node_count)
    kept = np.flatnonzero(times_below(np.flatnonzero(pruned), last_of_branch(tree)) == 0)
    new_number = np.full(tree.node_count, NO_CHILD, dtype=np.int32)
    new_number[kept] = np.arange(len(kept), dtype=np.int32)
    now_leaf = (pruned | (tree.test == LEAF))[kept]

    arrays: dict[str, Any] = {
        name: array[kept] for name, array in tree.arrays().items() if name != "subset_words"
    }
    for side in ("children_left", "children_right"):
        arrays[side] = new_number[arrays[side]]
    for name, value in LEAF_VALUES.items():
        arrays[name][now_leaf] = value
    arrays["subset_offset"], arrays["subset_words"] = _compact_subsets(
        arrays["subset_offset"], tree
    )
    return replace(tree, **arrays), kept


NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class PruningLimits:
    """Which of the nested trees; without limits, the whole one.

    Attributes
    ----------
    max_depth : int, default=2**31 - 1
    min_samples_split : int, default=2
        Rows of positive weight.
    min_impurity_decrease : float, default=0.0
        Nodes are split when ``gain / root weight + 2.2e-16`` is at least this, as in scikit-learn.
    max_leaf_nodes : int or None, default=None
        The next split is always that of the open node with the highest gain; of equal gains, the
        first in preorder (an ancestor before its descendants, left before right), which can be
        said of nodes that are still growing. scikit-learn leaves equal gains to its heap.
    ccp_alpha : float, default=0.0
        Weakest links (`dtrees.core.model._pruning`) go until the next one's alpha is above
        it. 0 prunes nothing, as in scikit-learn, even where a split gained nothing.
    """

    max_depth: int = NO_LIMIT
    min_samples_split: int = 2
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    ccp_alpha: float = 0.0

    @property
    def of_nodes(self) -> PruningLimits:
        """The limits that a node meets or not, whatever the others do."""
        return replace(self, max_leaf_nodes=None, ccp_alpha=0.0)

    def prune(self, tree: Tree) -> Tree:
        """The nested tree, which is the one that is grown with these limits."""
        return self.cut_and_kept(tree)[0]

    def cut_and_kept(self, tree: Tree) -> tuple[Tree, np.ndarray]:
        """The nested tree, and the numbers of its nodes in the large one."""
        kept = np.arange(tree.node_count)
        if self.of_nodes != WHOLE:
            is_leaf = tree.n_node_samples < self.min_samples_split
            is_leaf |= tree.depth >= self.max_depth
            is_leaf |= decrease(tree) < self.min_impurity_decrease
            tree, kept = truncate(tree, is_leaf)
        if self.max_leaf_nodes is not None:
            is_leaf = np.ones(tree.node_count, dtype=bool)
            is_leaf[best_first_order(tree, self.max_leaf_nodes - 1)] = False
            tree, of_these = truncate(tree, is_leaf)
            kept = kept[of_these]
        if self.ccp_alpha > 0.0:
            links, alphas, _ = weakest_links_of(tree)
            n_broken = np.searchsorted(np.maximum.accumulate(alphas), self.ccp_alpha, "right")
            is_leaf = np.zeros(tree.node_count, dtype=bool)
            is_leaf[links[:n_broken]] = True
            tree, of_these = truncate(tree, is_leaf)
            kept = kept[of_these]
        return tree, kept

    def cut_and_leaves(self, tree: Tree, leaves: np.ndarray) -> tuple[Tree, np.ndarray]:
        """The nested tree, and its leaves for rows whose leaves in the large one are known."""
        nested, kept = self.cut_and_kept(tree)
        if nested is tree:
            return tree, leaves
        ends = np.flatnonzero(nested.test == LEAF)  # a branch is a stretch of nodes
        return nested, ends[np.searchsorted(kept[ends], leaves, "right") - 1]


WHOLE = PruningLimits()


def decrease(tree: Tree) -> np.ndarray:
    """What ``min_impurity_decrease`` is compared with."""
    return tree.gain / tree.weighted_n_node_samples[0] + EPSILON


def best_first_order(tree: Tree, n_splits: int | None = None) -> np.ndarray:
    """Inner nodes in the order in which best-first growth splits them; at most so many.

    The first k of them are the inner nodes of the best tree of k + 1 leaves.
    """
    gain, test = relative_gains(tree).tolist(), tree.test.tolist()
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    n_inner = tree.node_count // 2
    n_splits = n_inner if n_splits is None else min(n_splits, n_inner)

    frontier = [] if test[0] == LEAF else [(-gain[0], 0)]
    order: list[int] = []
    while frontier and len(order) < n_splits:
        _, node = heappop(frontier)
        order.append(node)
        for child in (left[node], right[node]):
            if test[child] != LEAF:
                heappush(frontier, (-gain[child], child))
    return np.array(order, dtype=np.int64)


def cost_complexity_path(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Every step of minimal cost-complexity pruning.

    Returns
    -------
    ccp_alphas : float64 (n_steps,)
        0, then the alpha of every weakest link; equal alphas stay separate steps.
    impurities : float64 (n_steps,)
        Impurity of the leaves after the step, weighted by their share of the root's weight.
    """
    _, alphas, costs = weakest_links_of(tree)
    return np.concatenate([[0.0], alphas]), costs


def weakest_links_of(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Links, alphas and costs of `dtrees.core.model._pruning.weakest_links`."""
    weight = tree.weighted_n_node_samples
    cost = weight * tree.impurity / weight[0]
    return weakest_links(tree.children_left, tree.children_right, last_of_branch(tree), cost)


def last_of_branch(tree: Tree) -> np.ndarray:
    """Last node of every branch, int32 (n_nodes,). O(nodes)."""
    last: np.ndarray = ends_of(tree.children_right)
    return last


def _compact_subsets(offset: np.ndarray, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and words of the subsets still in use, in the order of the nodes.

    A subset ends where the next one starts, or with the array.
    """
    starts = np.unique(tree.subset_offset[tree.subset_offset >= 0])
    ends = np.append(starts[1:], len(tree.subset_words))
    nodes = np.flatnonzero(offset >= 0)
    lengths = (ends - starts)[np.searchsorted(starts, offset[nodes])]
    new_offset = np.full_like(offset, -1)
    new_offset[nodes] = np.cumsum(lengths) - lengths
    within = np.arange(lengths.sum()) - np.repeat(new_offset[nodes], lengths)
    return new_offset, tree.subset_words[np.repeat(offset[nodes], lengths) + within]
