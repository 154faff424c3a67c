"""Which columns a tree lives on, told by the tree alone.

The importance of column j is the weighted impurity decrease of all nodes that test it::

    importance[j] = sum of gain[t] over nodes t with feature[t] == j   /   weight of the root

where the gain of a node is weight x impurity minus that of its two children. It is cheap, as the
tree knows it already, and it is about the training rows: columns with many values get more than
their due. ``sklearn.inspection.permutation_importance`` on held-out rows does not have that bias.
"""

from __future__ import annotations

import numpy as np

from dtrees.core.model import LEAF, Tree


def impurity_importances(tree: Tree, *, normalize: bool = True) -> np.ndarray:
    """Total impurity decrease by column.

    Parameters
    ----------
    tree : Tree
    normalize : bool, default=True
        Divide by the total, so that the importances sum to one.

    Returns
    -------
    importances : float64 (n_columns,)
        Not negative. All zero when the tree is a single leaf. O(nodes + columns).
    """
    inner = tree.test != LEAF
    importances = np.bincount(
        tree.feature[inner], weights=tree.gain[inner], minlength=tree.n_columns
    ).astype(np.float64)
    importances /= tree.weighted_n_node_samples[0]
    total = importances.sum()
    if normalize and total > 0.0:
        importances /= total
    return importances
