r"""The shape of trees, read from a bit per node: inner or leaf.

With inner nodes as opening and leaves as closing brackets, and the last leaf left out, a tree in
preorder is a balanced expression, and the right child stands behind the bracket that closes its
parent::

        0                   node    0 1 2 3 4 5 6
       / \                          ( ( ) ( ) )           0 pairs with 5: right child 6
      1   6                                               1 pairs with 2: right child 3
     / \                                                  3 pairs with 4: right child 5
    2   3
       / \
      4   5

So bits that are not balanced are no tree, and every tree that is read ends.
"""

from __future__ import annotations

import numpy as np

from dtrees.core.model._pruning import ends_of


def times_below(nodes: np.ndarray, last: np.ndarray) -> np.ndarray:
    """How many of some nodes are proper ancestors of every node, int64 (n_nodes,).

    last : last node of every branch.
    """
    steps = np.bincount(nodes + 1, minlength=len(last) + 1)
    steps -= np.bincount(last[nodes] + 1, minlength=len(last) + 1)
    return np.cumsum(steps[:-1])


class Shape:
    """The shape of trees in preorder, one behind the other.

    Parameters
    ----------
    is_inner : bool (n_nodes,)
        Of all trees.
    n_nodes : int64 (n_trees,)

    Attributes
    ----------
    start : int64 (n_trees,)
        First node of every tree.
    inner, leaves : int64
        Numbers of these nodes.
    right : int64 (n_inner,)
        Right child of every inner node.
    last : int64 (n_nodes,)
        Last node of every branch.
    tree : int64 (n_nodes,)
        Number of the node's tree.

    Raises
    ------
    ValueError
        The bits are not those of such trees.
    """

    def __init__(self, is_inner: np.ndarray, n_nodes: np.ndarray) -> None:
        ends = np.cumsum(n_nodes)
        self.start = ends - n_nodes
        self.inner = np.flatnonzero(is_inner)
        self.leaves = np.flatnonzero(~is_inner)
        self.tree = np.repeat(np.arange(len(n_nodes)), n_nodes)
        open_after = np.cumsum(np.where(is_inner, 1, -1)) + self.tree
        within = np.ones(len(is_inner), dtype=bool)
        within[ends - 1] = False
        level = (open_after + ~is_inner)[within]  # equal for the brackets of a pair
        if (open_after[ends - 1] != -1).any() or level.min(initial=1) < 1:
            raise ValueError("The nodes are not those of trees in preorder.")
        if level.max(initial=0) < 2**15:
            level = level.astype(np.int16)  # sorted by counting
        pairs = np.flatnonzero(within)[np.argsort(level, kind="stable")].reshape(-1, 2)
        right = np.empty(len(is_inner), dtype=np.int64)
        right[pairs[:, 0]] = pairs[:, 1] + 1
        self.right = right[self.inner]
        last = np.arange(len(is_inner))
        last[self.inner] = self.right
        self.last = ends_of(last)

    def sums(self, of_leaves: np.ndarray) -> np.ndarray:
        """Sums over the leaves of every branch.

        Parameters
        ----------
        of_leaves : int64 (n, k)

        Returns
        -------
        int64 (n_nodes, k)
        """
        n_nodes = len(self.last)
        upto = np.zeros((n_nodes + 1, of_leaves.shape[1]), dtype=np.int64)
        upto[self.leaves + 1] = of_leaves
        np.cumsum(upto, axis=0, out=upto)
        return upto[self.last + 1] - upto[:n_nodes]

    def levels(self) -> list[np.ndarray]:
        """Places in ``inner`` by the depth of the nodes, the deepest first."""
        depth = times_below(self.inner, self.last)[self.inner]
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[::-1]
