"""Which columns a tree lives on, from the tree alone.

The importance of column j is the weighted impurity decrease of all nodes that test it::

    importance[j] = sum of gain[t] over nodes t with feature[t] == j   /   weight of the root

where the gain of a node is weight x impurity minus that of its two children. It is cheap, as the
tree knows it already, and it is about the training rows: columns with many values get more than
their due. ``sklearn.inspection.permutation_importance`` on held-out rows does not have that bias.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dtrees.core.model.gains import relative_gains
from dtrees.core.model.tree import LEAF, Tree


def impurity_importances(tree: Tree, *, normalize: bool = True) -> np.ndarray:
    """Total impurity decrease by column.

    Parameters
    ----------
    tree : Tree
    normalize : bool, default=True
        Divide by the total, so that the importances sum to one, whatever the unit of the target.

    Returns
    -------
    importances : float64 (n_columns,)
        Not negative. All zero when the tree is a single leaf, or its splits gain nothing.
        O(nodes + columns).
    """
    inner = tree.test != LEAF
    gains = relative_gains(tree) if normalize else tree.gain
    importances = np.bincount(
        tree.feature[inner], weights=gains[inner], minlength=tree.n_columns
    ).astype(np.float64)
    importances /= tree.weighted_n_node_samples[0]
    return normalized(importances) if normalize else importances


def mean_importances(trees: Iterable[Tree]) -> np.ndarray | None:
    """Mean of the importances of trees that split, float64 (n_columns,); None where none does."""
    shares = [impurity_importances(tree) for tree in trees if tree.node_count > 1]
    return normalized(np.mean(shares, axis=0)) if shares else None


def normalized(importances: np.ndarray) -> np.ndarray:
    """Importances that sum to one, or are all zero."""
    total = importances.sum()
    return importances / total if total > 0.0 else importances
